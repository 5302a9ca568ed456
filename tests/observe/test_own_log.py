"""The log of a process about itself: one line an event, with what it is about, and never a secret."""

import io
import json
import logging
import re
from collections.abc import Callable, Iterator
from contextvars import copy_context

import pytest

from tests.builders import a_run
from tidewheel.errors import Invalid
from tidewheel.model.job import Options
from tidewheel.model.trace import Trace
from tidewheel.observe.own_log import LogSetup, TextFormatter, about, announce, concern, log_setup, note, write_log

KEY = "tide_abcdefgh_" + "x" * 49
Write = Callable[[LogSetup], io.StringIO]


@pytest.fixture
def write(monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Have a log written to a text."""
    root = logging.getLogger()
    own = logging.getLogger("tidewheel")
    before, level, own_level = list(root.handlers), root.level, own.level

    def begin(setup: LogSetup) -> io.StringIO:
        out = io.StringIO()
        monkeypatch.setattr("sys.stderr", out)
        write_log(setup, process="runner-0", worker="w/runner-0", worker_id="0197")
        return out

    yield begin
    root.handlers[:] = before
    root.setLevel(level)
    own.setLevel(own_level)


def test_json_is_one_object_a_line_with_what_the_event_is_about(write: Write) -> None:
    out = write(LogSetup("json", "debug"))

    def request() -> None:
        note(request_id="r-1")
        note(tenant="acme")
        logging.getLogger("tidewheel.access").debug("GET %s", "/x", extra={"status": 200, "endpoint": "get_job"})

    copy_context().run(request)
    logging.getLogger("tidewheel.worker.host").warning("two\nlines", extra={"job_id": "j-1"})
    logging.getLogger("tidewheel").error("it failed", exc_info=ValueError("broken"))
    first, second, third = map(json.loads, out.getvalue().splitlines())

    about = {"process": "runner-0", "worker": "w/runner-0", "worker_id": "0197"}
    assert about.items() <= first.items()
    assert (first["level"], first["msg"], first["logger"]) == ("debug", "GET /x", "tidewheel.access")
    assert (first["request_id"], first["tenant"], first["status"], first["endpoint"]) == ("r-1", "acme", 200, "get_job")
    assert (second["msg"], second["job_id"]) == ("two\nlines", "j-1")
    assert "request_id" not in second, "what one request noted is not of another"
    assert third["error"].endswith("ValueError: broken")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first["ts"])


def test_an_event_of_a_run_says_which_job_attempt_and_trace_it_is_about(write: Write) -> None:
    out = write(LogSetup("json"))
    log = logging.getLogger("tidewheel.worker.host")
    run = a_run(Options(traceparent=f"00-{'a' * 32}-{'b' * 16}-01"), kind="mail", tenant="acme", failures=2)
    other = a_run(kind="report")

    def attempt() -> None:
        concern(run)
        log.warning("waits")
        log.warning("another makes way", extra=about(other))
        concern(run, Trace(f"00-{'c' * 32}-{'d' * 16}-01"))
        log.warning("in a span of its own")
        concern(None)
        log.warning("over")

    copy_context().run(attempt)
    log.warning("something else")
    waits, away, spans, *rest = map(json.loads, out.getvalue().splitlines())

    expected = {"job_id": str(run.job_id), "kind": "mail", "tenant": "acme", "attempt": 3, "trace_id": "a" * 32}
    assert expected.items() <= waits.items()
    assert {"job_id": str(other.job_id), "kind": "report", "attempt": 1}.items() <= away.items()
    assert spans["trace_id"] == "c" * 32
    assert not [event for event in rest if "job_id" in event or "trace_id" in event]
    assert about(None) == {}


def test_text_is_one_line_an_event_and_nobody_can_make_up_a_second_one(write: Write) -> None:
    out = write(LogSetup())
    log = logging.getLogger("tidewheel.server")
    log.info("hello\n2026-01-01 error: made up", extra={"job_id": "j\n1"})
    log.debug("not at this level")
    logging.getLogger("httpx").info("HTTP Request: POST https://hooks.example.com/secret")
    logging.getLogger("httpx").warning("is heard")
    lines = out.getvalue().splitlines()

    assert len(lines) == 2
    assert lines[0].endswith("hello\\n2026-01-01 error: made up job_id=j\\n1")
    assert re.match(r"\S+Z info +runner-0\[\d+\] hello", lines[0])
    wrong = logging.makeLogRecord({"msg": "bad %d", "args": ("arguments",)})
    assert "'bad %d' (its arguments cannot be shown: TypeError)" in TextFormatter({}).format(wrong)


@pytest.mark.parametrize("form", ["text", "json"])
def test_keys_and_passwords_are_never_written(write: Write, form: str) -> None:
    out = write(log_setup(form, "info"))
    error = OSError(f"cannot reach postgresql://tide:pass-word@db/tide?password=pass-word with {KEY}")
    logging.getLogger("tidewheel").error("failed: %s", error, exc_info=error)
    text = out.getvalue()

    assert "pass-word" not in text
    assert KEY not in text
    assert "tide_abcdefgh_***" in text, "which key it was may be known"
    assert "postgresql://tide:***@db/tide" in text


def test_a_password_with_an_at_sign_is_masked_whole(write: Write) -> None:
    out = write(log_setup("text", "info"))
    logging.getLogger("tidewheel").error("cannot reach postgresql://tide:p@ss@word@db/tide for me@example.org")
    assert "cannot reach postgresql://tide:***@db/tide for me@example.org" in out.getvalue()


def test_a_word_to_people_is_an_event_where_the_log_is_for_machines(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    out = write(LogSetup("json"))
    announce(LogSetup("json"), "takes jobs")
    announce(LogSetup(), "takes jobs")

    assert json.loads(out.getvalue())["msg"] == "takes jobs"
    assert capsys.readouterr().out == "takes jobs\n"


def test_a_log_is_set_up_once_however_often_that_is_asked(write: Write) -> None:
    write(LogSetup())
    write(LogSetup("json"))
    assert sum(isinstance(one.formatter, TextFormatter) for one in logging.getLogger().handlers) == 1


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("xml", "info"), "log-format: must be text or json"),
        (("text", "loud"), "log-level: must be debug, info, warning or error, not 'loud'"),
    ],
)
def test_what_is_no_format_and_no_level_is_refused(words: tuple[str, str], why: str) -> None:
    with pytest.raises(Invalid, match=why):
        log_setup(*words)


def test_the_level_is_that_of_the_own_log_and_of_nobody_else(write: Write) -> None:
    out = write(LogSetup(level="error"))
    logging.getLogger("shop").warning("of a library")
    logging.getLogger("tidewheel.worker").warning("of ours")
    logging.getLogger("shop").error("wrong")

    assert logging.getLogger("shop").isEnabledFor(logging.INFO)
    assert not logging.getLogger("tidewheel.worker").isEnabledFor(logging.WARNING)
    assert [line.endswith("wrong") for line in out.getvalue().splitlines()] == [True]
    write(LogSetup(level="debug"))
    assert not logging.getLogger("shop").isEnabledFor(logging.DEBUG)
    assert logging.getLogger("tidewheel.worker").isEnabledFor(logging.DEBUG)
