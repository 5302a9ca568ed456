"""Async functions in the event loop of a runner: the quickest way to run a job, and the least isolated."""

import asyncio
import contextvars
import random
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

import msgspec

from tidewheel.clock import Clock
from tidewheel.errors import Invalid
from tidewheel.logs.handler import current_sink
from tidewheel.model.job import Run
from tidewheel.model.outcome import MAX_RESULT_BYTES, Outcome
from tidewheel.tasks.binding import Caller
from tidewheel.tasks.context import Context
from tidewheel.tasks.definition import TaskDefinition
from tidewheel.tasks.ending import TOO_LONG, End, Ended, ended_by, given_back, outcome_of
from tidewheel.worker.handover import Handover
from tidewheel.worker.page import Page
from tidewheel.worker.reports import Report, Reports
from tidewheel.worker.settler import Settler
from tidewheel.worker.slots import Slot, in_steps

_SMALL: Final = MAX_RESULT_BYTES // 4
"""No character takes more than four bytes."""


class InlineTask(Protocol):
    """A task that can be called here."""

    wants_context: bool

    def call(self, context: Context | None, args: str) -> Coroutine[Any, Any, Any]:
        """Begin a call with arguments from JSON text; Invalid if they do not fit."""

    def encode(self, result: Any) -> str | None:
        """Return a result as JSON text; Invalid if it is none."""


class CallerTask:
    """A function of the app."""

    def __init__(self, task: TaskDefinition) -> None:
        self.wants_context = task.context is not None
        caller = Caller(task.function, task.context)
        self.call = caller.call
        self.encode = caller.result_text


@dataclass(frozen=True)
class Tools:
    """What a runner works with."""

    settler: Settler
    reports: Reports
    handover: Handover
    page: Page
    clock: Clock
    epoch: int


class InlineExecutor:
    """Runs one coroutine after the other for each slot, and says what became of it."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._random = random.Random()  # noqa: S311 - spreads retries, guards nothing

    async def serve(self, slot: Slot, run: Run, task: InlineTask, started_at: datetime | None) -> None:
        """Run a job to its end and hand its outcome over; nothing is said of one that was taken away."""
        report = self._tools.reports.open(run)
        try:
            ended = report.hidden(await self._attempt(slot, run, task, report))
            slot.body_ended()
            if slot.disowned:
                await report.close()
                return
            outcome = given_back(run) if slot.released else await self._outcome(run, ended, started_at)
            if report.spoke:
                await report.close_before(outcome, self._tools.settler)
            else:
                self._tools.settler.add(outcome)
        finally:
            slot.finish()

    async def _attempt(self, slot: Slot, run: Run, task: InlineTask, report: Report) -> Ended:
        mark = current_sink.set(report)
        try:
            args = run.args if "$" not in run.args else await self._tools.handover.args(run, report.hide)
            if task.wants_context:
                slot.context = await self._context(run, report)
            result = await in_steps(task.call(slot.context, args), contextvars.copy_context(), slot)
            return Ended(end=End.RETURNED, result=task.encode(result))
        except BaseException as error:  # noqa: BLE001 - whatever the task raised is its outcome
            return self._ended_by(slot, error)
        finally:
            current_sink.reset(mark)

    def _ended_by(self, slot: Slot, error: BaseException) -> Ended:
        if slot.ending is not None and isinstance(error, asyncio.CancelledError):
            return Ended(end=slot.ending, message=TOO_LONG if slot.ending is End.TIMEOUT else "")
        return ended_by(error)

    async def _context(self, run: Run, report: Report) -> Context:
        return Context(
            job_id=run.job_id,
            token=run.token,
            epoch=self._tools.epoch,
            attempt=run.attempt,
            saved=await self._tools.handover.saved(run),
            reporter=report,
        )

    async def _outcome(self, run: Run, ended: Ended, started_at: datetime | None) -> Outcome:
        outcome = outcome_of(run, ended, self._random.random(), started_at)
        if outcome.result is None or len(outcome.result) <= _SMALL:
            return outcome
        try:
            result, location = await self._tools.handover.place(run, outcome.result)
        except Invalid as error:
            return outcome_of(run, Ended(end=End.FATAL, message=str(error)), 0.0, started_at)
        return msgspec.structs.replace(outcome, result=result, result_location=location)
