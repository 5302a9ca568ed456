"""Python's logging, routed to the run that is under way."""

import logging
from contextlib import suppress
from contextvars import ContextVar
from typing import Final, Protocol


class LogSink(Protocol):
    """Where lines of log go, such as a `RunLog`."""

    def log(self, level: str, text: str) -> None:
        """Take what was logged, by any thread."""


current_sink: Final[ContextVar[LogSink | None]] = ContextVar("tidewheel_log_sink", default=None)


class RunHandler(logging.Handler):
    """Hands records to the current run, with their exceptions; records outside of runs are none of its business.

    One is added to the root logger of a process that runs tasks. It never raises: a task does not fail for a bad log
    call.
    """

    def __init__(self, level: int = logging.NOTSET) -> None:
        super().__init__(level)
        self.setFormatter(logging.Formatter("%(message)s"))

    def createLock(self) -> None:  # noqa: N802 - logging's name
        """Have no lock: sinks bear several threads, and one run shall not wait for another."""
        self.lock = None

    def emit(self, record: logging.LogRecord) -> None:
        sink = current_sink.get()
        if sink is not None:
            with suppress(Exception):
                sink.log(record.levelname.lower(), self._text(record))

    def _text(self, record: logging.LogRecord) -> str:
        try:
            return self.format(record)
        except Exception as error:  # noqa: BLE001 - arguments that do not fit, or whose own code fails
            return f"{record.msg!r} (its arguments cannot be shown: {type(error).__name__})"


def keep_runs_apart() -> None:
    """Have what runs log from now on go to their own logs alone, and not to the log of this process as well.

    There it would be mixed with that of other tenants, and its secrets would not be masked.
    """
    root = logging.getLogger()
    for handler in root.handlers:
        handler.addFilter(lambda record: current_sink.get() is None)  # noqa: ARG005 - logging's face
    root.addHandler(RunHandler())
