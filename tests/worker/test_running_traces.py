"""Real processes that send their spans to a real collector, by OTLP."""

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.worker.running import ROOT, Worker, until

trace_service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
pytestmark = pytest.mark.slow
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SUBMITTER = "00f067aa0ba902b7"
HEADERS = {
    "traceparent": f"00-{TRACE}-{SUBMITTER}-01",
    "tracestate": "vendor=1",
    "prefer": "wait=50",
    "x-request-id": "asked-by-us",
}


class Collector(BaseHTTPRequestHandler):
    """Keeps the spans that it is sent."""

    spans: list[dict[str, Any]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        request = trace_service.ExportTraceServiceRequest.FromString(body)
        for group in request.resource_spans:
            about = {each.key: each.value.string_value for each in group.resource.attributes}
            for span in (span for scope in group.scope_spans for span in scope.spans):
                self.spans.append(
                    {
                        "name": span.name,
                        "of": about["service.instance.id"].rpartition("/")[2],
                        "id": span.span_id.hex(),
                        "trace": span.trace_id.hex(),
                        "parent": span.parent_span_id.hex(),
                        "links": [link.span_id.hex() for link in span.links],
                        "error": span.status.message,
                        "attributes": {each.key: each.value.string_value for each in span.attributes},
                    }
                )
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def collector() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    spans: list[dict[str, Any]] = []
    handler = type("Handler", (Collector,), {"spans": spans})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", spans
        server.shutdown()


def test_submit_and_runs_are_spans_of_one_trace_and_every_process_writes_json(
    tmp_path: Path, collector: tuple[str, list[dict[str, Any]]]
) -> None:
    endpoint, spans = collector
    words = ["up", "--slots", "1", "--port", "0", "--app", "tests.worker.traced_app:app", "--otel-endpoint", endpoint]
    words += ["--log-format", "json", "--log-level", "debug"]
    up = Worker([*words, "--database", f"sqlite:///{tmp_path}/tide.db"], tmp_path / "log", cwd=ROOT)
    try:
        found = until(lambda: re.search(r"answers at (http://\S+)", up.said) or up.popen.poll() is not None, "a server")
        assert isinstance(found, re.Match), up.said
        with httpx.Client(base_url=found[1], timeout=60, headers=HEADERS) as client:
            command = {"kind": "command", "args": {"argv": ["sh", "-c", "echo $TRACEPARENT $TRACESTATE"]}}
            said = client.post("/v1/jobs", json=command).json()["job"]["result"]["output"].split()
            inline = client.post("/v1/jobs", json={"kind": "traced.async"}).json()["job"]
            failed = client.post("/v1/jobs", json={"kind": "traced.plain", "retry": {"max_attempts": 1}}).json()["job"]
        up.stop()
    finally:
        up.kill()

    assert {span["trace"] for span in spans} == {TRACE}
    submits = [span for span in spans if span["name"] == "send default"]
    assert [(span["of"], span["parent"]) for span in submits] == [("server-0", SUBMITTER)] * 3
    runs = {span["attributes"]["tidewheel.kind"]: span for span in spans if span["name"] == "process default"}
    for kind, of in (("command", "host"), ("traced.async", "runner-0"), ("traced.plain", "host")):
        run = runs[kind]
        assert (run["of"], run["links"]) == (of, [run["parent"]])
        assert run["parent"] in {span["id"] for span in submits}
    assert said == [f"00-{TRACE}-{runs['command']['id']}-01", "vendor=1"]
    assert inline["result"] == f"00-{TRACE}-{runs['traced.async']['id']}-01"
    assert [span["parent"] for span in spans if span["name"] == "inner"] == [runs["traced.async"]["id"]]
    assert (
        runs["traced.plain"]["error"]
        == failed["error"]["message"]
        == f"ValueError: 00-{TRACE}-{runs['traced.plain']['id']}-01"
    )
    assert runs["traced.plain"]["attributes"]["tidewheel.outcome"] == "gave_up"
    assert runs["command"]["attributes"]["messaging.message.id"]
    check_log(up.said)


def check_log(text: str) -> None:
    """See that all of the log, by every process, is JSON, and says what it is about."""
    events = [json.loads(line) for line in text.splitlines()]
    assert {event["process"] for event in events} == {"supervisor", "server-0", "runner-0", "host", "keeper"}
    assert {"runner-0", "host"} <= {event["process"] for event in events if event.get("worker_id")}
    access = [event for event in events if event["logger"] == "tidewheel.access"]
    assert [(event["msg"], event["status"], event["tenant"]) for event in access] == [
        ("POST /v1/jobs", 200, "default")
    ] * 3
    assert {event["request_id"] for event in access} == {"asked-by-us"}
    ends = {event["msg"].split(": ")[1]: event for event in events if event["msg"].startswith("job ")}
    assert ends.keys() == {"returned", "gave_up"}
    assert all(event["job_id"] in event["msg"] and event["tenant"] == "default" for event in ends.values())
    assert {(event["kind"], event["attempt"]) for event in ends.values()} <= {
        (kind, 1) for kind in ("command", "traced.async", "traced.plain")
    }
    assert {event["trace_id"] for event in (*ends.values(), *access)} == {TRACE}
    assert {event["kind"] for event in access} == {"command", "traced.async", "traced.plain"}
    assert {event["job_id"] for event in ends.values()} <= {event["job_id"] for event in access}
