"""The log that a process of this program writes about itself, to its standard error: as text or as JSON.

What tasks write is none of it: that goes to the logs of their runs. Events say what they are about by fields beside the
message: those of the process, those of the request or chore under way (`note`), those of the run under way (`concern`),
and those that `extra` names; of a run that is not under way here, `extra=about(run)`.
"""

import logging
import re
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.job import Run
from tidewheel.model.trace import Trace
from tidewheel.observe.tracing import trace_in
from tidewheel.tasks.ending import options_of

Format = Literal["text", "json"]
Level = Literal["debug", "info", "warning", "error"]

FIELDS: Final = (
    *("request_id", "trace_id", "tenant", "job_id", "kind", "attempt", "schedule", "chore", "worker_id"),
    *("endpoint", "status", "seconds"),
)
_QUIET: Final = ("apprise", "asyncio", "httpcore", "httpx", "opentelemetry", "urllib3")
"""Libraries that tell of every call, with addresses that may hold secrets; of them only what goes wrong is written."""
_SECRETS: Final = (
    (re.compile(r"(tide_[a-z2-7]{8}_)[0-9A-Za-z]{20,}"), r"\1***"),
    (re.compile(r"(://[^/\s:@]*:)[^\s/]+@"), r"\1***@"),  # to the last @: a password may have some itself
    (re.compile(r"(?i)(password=)[^&\s'\"]+"), r"\1***"),
)
_noted: ContextVar[Mapping[str, str] | None] = ContextVar("tidewheel_log_fields", default=None)
_concerned: ContextVar[tuple[Run, Trace | None] | None] = ContextVar("tidewheel_log_run", default=None)
_encode = msgspec.json.Encoder(enc_hook=str).encode
_log = logging.getLogger("tidewheel")


class LogSetup(msgspec.Struct, frozen=True):
    """How a process writes its log."""

    format: Format = "text"
    level: Level = "info"


def log_setup(format_name: str, level: str) -> LogSetup:
    """Return how to write a log. Raises Invalid."""
    for field, value, known in (("log-format", format_name, Format), ("log-level", level, Level)):
        words = known.__args__  # type: ignore[attr-defined] # mypy takes it for a special form
        if value not in words:
            raise Invalid(field, f"must be {', '.join(words[:-1])} or {words[-1]}, not {value!r:.40}")
    return msgspec.convert({"format": format_name, "level": level}, LogSetup)


def write_log(setup: LogSetup, **fields: str) -> None:
    """Write the log of this process so from now on; every event has these fields."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter(fields) if setup.format == "json" else TextFormatter(fields))
    handler.addFilter(lambda record: record.levelno >= logging.WARNING or record.name.partition(".")[0] not in _QUIET)
    root = logging.getLogger()
    for old in [one for one in root.handlers if isinstance(one.formatter, TextFormatter)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.INFO)  # for all others: what tasks log is none of this log, and must not depend on its level
    handler.setLevel(setup.level.upper())
    _log.setLevel(setup.level.upper())


def note(**fields: str) -> None:
    """Have the events of what is under way, such as a request, have these fields, too."""
    _noted.set({**(_noted.get() or {}), **fields})


def concern(run: Run | None, trace: Trace | None = None) -> None:
    """Have the events of what is under way say which run they are about, until it is None.

    `trace` is the place of the run in a trace, if that is another one than the job was submitted with.
    """
    _concerned.set(None if run is None else (run, trace))


def about(run: Run | None, trace: Trace | None = None) -> dict[str, Any]:
    """Return the fields of an event that is about a run."""
    if run is None:
        return {}
    fields = {"job_id": str(run.job_id), "kind": run.kind, "tenant": run.tenant, "attempt": run.attempt}
    found = trace or trace_in(options_of(run.options))
    return fields if found is None else {**fields, "trace_id": found.trace_id}


def announce(setup: LogSetup, text: str) -> None:
    """Tell whoever started the program: as a line for people, or as an event of the log where that is for machines."""
    if setup.format == "json":
        _log.info("%s", text)
    else:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


class TextFormatter(logging.Formatter):
    """One line an event, for people; a traceback follows in lines that begin with spaces."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__()
        self._fields = fields

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        event = self.event(record)
        head = f"{event.pop('ts')} {event.pop('level'):7} {event.pop('process', '-')}[{event.pop('pid')}]"
        message, error = event.pop("msg"), event.pop("error", None)
        for name in ("logger", *self._fields):
            event.pop(name, None)
        line = " ".join(
            [head, _one_line(message), *(f"{name}={_one_line(str(value))}" for name, value in event.items())]
        )
        return line if error is None else line + "\n    " + error.replace("\n", "\n    ")

    def event(self, record: logging.LogRecord) -> dict[str, Any]:
        """Return an event as fields, without secrets."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        event: dict[str, Any] = {
            "ts": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "msg": _without_secrets(_message_of(record)),
            "logger": record.name,
            "pid": record.process,
            **self._fields,
            **(_noted.get() or {}),
            **about(*(_concerned.get() or (None,))),
            **{name: value for name in FIELDS if (value := getattr(record, name, None)) is not None},
        }
        if record.exc_info is not None and record.exc_info[0] is not None:
            event["error"] = _without_secrets(self.formatException(record.exc_info))
        return event


class JsonFormatter(TextFormatter):
    """One object a line, for machines."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return _encode(self.event(record)).decode()


def _message_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception as error:  # noqa: BLE001 - arguments that do not fit, or whose own code fails
        return f"{record.msg!r} (its arguments cannot be shown: {type(error).__name__})"


def _without_secrets(text: str) -> str:
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


def _one_line(text: str) -> str:
    """Let nobody make up a second event by a message of several lines."""
    return (
        text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r") if "\n" in text or "\r" in text else text
    )
