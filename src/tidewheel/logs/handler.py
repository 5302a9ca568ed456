"""Python's logging, routed to the run that is under way."""

import logging
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Final, Literal, Protocol

from tidewheel.logs.lines import SHORT
from tidewheel.tasks.log_fields import USUAL_COUNT, with_fields

LARGE: Final = SHORT
"""A chunk of more characters is not only noted."""
STDOUT: Final = 1
STDERR: Final = 2
NUMBERS: Final[dict[Literal["stdout", "stderr"], int]] = {"stdout": STDOUT, "stderr": STDERR}
"""What stands in the place of a level for what was printed."""


class RunSink(Protocol):
    """Where what a run says is noted, such as a `RunLog`; any thread may do so.

    Whoever notes something extends `said` by three items: when it was said, in seconds since the epoch; the name of its
    level as a record has it, or `STDOUT` or `STDERR` for what was printed; and its text, or bytes that were printed.
    Then, if `said` has more than `room` items, or the text is `LARGE`, he calls `press`. That is all done in place, for
    a call costs more.
    """

    said: list[Any]
    room: int

    def time(self) -> float:
        """Return when it is."""

    def press(self, text: bytes | str) -> None:
        """See to it that what was noted gets on its way; this was the last of it."""


current_sink: Final[ContextVar[RunSink | None]] = ContextVar("tidewheel_log_sink", default=None)


class RunHandler(logging.Handler):
    """Hands records to the current run, with their exceptions, and what is logged outside of runs to other handlers.

    It never raises: a task does not fail for a bad log call. It has neither a lock nor filters: sinks bear several
    threads, and one run shall not wait for another.
    """

    def __init__(self, others: Sequence[logging.Handler] = ()) -> None:
        super().__init__()
        self._others = others
        self.setFormatter(logging.Formatter("%(message)s"))

    def createLock(self) -> None:  # noqa: N802 - logging's name
        self.lock = None

    def handle(self, record: logging.LogRecord) -> bool:
        sink = current_sink.get()
        if sink is None:
            return self._handle_outside(record)
        try:
            text, has_fields = record.msg, len(record.__dict__) > USUAL_COUNT
            if record.args or record.exc_info or record.stack_info or type(text) is not str:
                text = self._text(record)
            if has_fields:
                text = with_fields(record, text)
            said = sink.said
            said += (record.created, record.levelname, text)
            if len(said) > sink.room or len(text) > LARGE:
                sink.press(text)
        except Exception:  # noqa: BLE001 - whatever is wrong with the sink is none of the task's business
            return False
        return True

    def _handle_outside(self, record: logging.LogRecord) -> bool:
        for other in self._others:
            if record.levelno >= other.level:
                other.handle(record)
        return True

    def _text(self, record: logging.LogRecord) -> str:
        try:
            return self.format(record)
        except Exception as error:  # noqa: BLE001 - arguments that do not fit, or whose own code fails
            return f"{record.msg!r} (its arguments cannot be shown: {type(error).__name__})"


def keep_runs_apart() -> RunHandler:
    """Have what runs log from now on go to their own logs alone, and not to the log of this process as well.

    There it would be mixed with that of other tenants, and its secrets would not be masked.
    """
    root = logging.getLogger()
    handler = RunHandler(list(root.handlers))
    root.handlers[:] = [handler]
    return handler
