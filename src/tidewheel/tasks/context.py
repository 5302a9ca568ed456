"""What a task may know and say while it runs. It gets one by naming a parameter of this type."""

import logging
from typing import Any, Final, Protocol
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_json, shown
from tidewheel.model.note import MAX_CHECKPOINT
from tidewheel.model.trace import Trace

JOB_ID_VARIABLE: Final = "TIDE_JOB_ID"
"""A variable that commands, and tasks in processes of their own, have."""


_log: Final = logging.getLogger("tide.task")
"""Not below our own logger, whose level is that of the log of the worker."""


class Reporter(Protocol):
    """Where the words of a task go: to the store, by way of whoever runs it."""

    def log(self, level: str, text: str) -> None:
        """Keep one line of log."""

    def progress(self, fraction: float, message: str) -> None:
        """Keep how far the run has come; only the last one counts."""

    def checkpoint(self, data: str) -> None:
        """Keep JSON text for the next attempt; only the last one counts, and it is stored before the outcome is."""


class Context:
    """One attempt at a job, as its task sees it."""

    def __init__(
        self,
        *,
        job_id: UUID,
        token: int,
        epoch: int,
        attempt: int,
        saved: str | None,
        reporter: Reporter,
        trace: Trace | None = None,
    ) -> None:
        self.job_id = job_id
        self.token = token
        self.epoch = epoch
        self.number = attempt
        """1 for the first try, 2 for the second, …"""
        self.traceparent = None if trace is None else trace.traceparent
        """The span of this run, or else of the submit, as W3C Trace Context writes it: for what the task calls."""
        self.tracestate = None if trace is None else trace.tracestate
        self._saved = saved
        self._reporter = reporter
        self._cancelled = False
        self.log = _log

    @property
    def attempt(self) -> tuple[int, int]:
        """The fencing token `(epoch, token)`: rises with every attempt, so that others can refuse what is old."""
        return self.epoch, self.token

    @property
    def cancelled(self) -> bool:
        """Whether this run was asked to stop; a task that sees it should end soon, before it is ended."""
        return self._cancelled

    def request_stop(self) -> None:
        """Let `cancelled` be true from now on."""
        self._cancelled = True

    @property
    def saved(self) -> Any:
        """What the last `checkpoint` of an earlier attempt kept; None if there is none."""
        return None if self._saved is None else msgspec.json.decode(self._saved)

    def progress(self, fraction: float, message: str = "") -> None:
        """Tell how far the run has come, from 0 to 1."""
        if not 0 <= fraction <= 1:
            raise Invalid("fraction", f"must be between 0 and 1, not {shown(fraction)}")
        self._reporter.progress(float(fraction), message)

    def checkpoint(self, data: Any) -> None:
        """Keep data (JSON) that the next attempt finds in `saved`, should this one fail or be lost."""
        self._saved = check_json("checkpoint", data, max_bytes=MAX_CHECKPOINT)
        self._reporter.checkpoint(self._saved)
