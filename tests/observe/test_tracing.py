"""Traces where OpenTelemetry is used, and what they cost where it is not: nothing, not even its import."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tidewheel.errors import Invalid
from tidewheel.observe import tracing
from tidewheel.observe.tracing import check_endpoint

ROOT = Path(__file__).parents[2]
UNTRACED = """
import sys
import tidewheel.cli.children.host, tidewheel.cli.children.runner, tidewheel.cli.children.server
from tidewheel import App
from tidewheel.testing import in_memory

app = App()

@app.task
async def nothing() -> None: ...

with in_memory(app) as test:
    nothing.enqueue()
    assert len(test.run_inline()) == 1
print([name for name in sys.modules if name.partition(".")[0] == "opentelemetry"])
"""
BY_VARIABLES = """
import logging, os, sys
from tidewheel.observe import tracing

logging.basicConfig(format="%(message)s", stream=sys.stdout)
tracing.start(None, "w/runner-0")()
assert not tracing.is_active()  # nobody said where to send spans

os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = "http://127.0.0.1:1"
sys.modules["opentelemetry"] = None
tracing.start(None, "w/runner-0")()  # not installed: told, and gone on without
del sys.modules["opentelemetry"]

os.environ["OTEL_TRACES_EXPORTER"] = "none"
tracing.start(None, "w/runner-0")()
assert not tracing.is_active()

del os.environ["OTEL_TRACES_EXPORTER"]
end = tracing.start(None, "w/runner-0")
from opentelemetry import trace
ours = trace.get_tracer_provider()
assert dict(ours.resource.attributes)["service.name"] == "tidewheel"
tracing.start("http://127.0.0.1:1", "again")()  # what is there belongs to others, and is left alone
assert trace.get_tracer_provider() is ours
end()
"""


def run(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False, env={"PATH": ""}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_submit_is_a_span_below_that_of_its_caller_and_the_job_remembers_it() -> None:
    pytest.importorskip("opentelemetry.sdk")
    found = json.loads(run("-m", "tests.observe.traced_program"))
    one, many, checkout, sync, thread = found["spans"]

    assert [span["name"] for span in (checkout, thread)] == ["checkout", "in a thread"]
    assert {span["name"] for span in (one, many, sync)} == {"send default"}
    assert {span["kind"] for span in (one, many, sync)} == {"PRODUCER"}
    assert one["parent"] == many["parent"] == checkout["traceparent"].split("-")[2]
    assert sync["parent"] == thread["traceparent"].split("-")[2], "also when another thread speaks to the store"
    assert (found["job"], found["many"], found["sync"]) == (
        one["traceparent"],
        many["traceparent"],
        sync["traceparent"],
    )
    assert found["body"] == checkout["traceparent"], "a client of a server says where it is"
    assert many["attributes"] == {
        "messaging.system": "tidewheel",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "default",
        "messaging.batch.message_count": 2,
    }


def test_without_opentelemetry_nothing_of_it_is_imported() -> None:
    assert run("-c", UNTRACED) == "[]\n"


def test_the_variables_of_opentelemetry_count_and_a_missing_package_is_told_once() -> None:
    pytest.importorskip("opentelemetry.sdk")
    assert run("-c", BY_VARIABLES) == "sending spans needs OpenTelemetry: pip install 'tidewheel[otel]'\n"


def test_an_endpoint_that_is_none_or_cannot_be_used_is_told_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_endpoint(None) is None
    with pytest.raises(Invalid, match="otel-endpoint: must be the http"):
        check_endpoint("collector:4317")
    monkeypatch.setattr(tracing, "find_spec", lambda _: None)  # as where the extra is not installed
    with pytest.raises(Invalid, match=r"pip install 'tidewheel\[otel\]'"):
        check_endpoint("http://127.0.0.1:4318")
