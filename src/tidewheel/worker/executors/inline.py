"""Async functions in the event loop of a runner: the quickest way to run a job, and the least isolated."""

import asyncio
import contextvars
import logging
import random
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from tidewheel.clock import Clock
from tidewheel.errors import Invalid, TideError
from tidewheel.logs.handler import current_sink
from tidewheel.model.job import Run
from tidewheel.model.outcome import MAX_RESULT_BYTES, Outcome
from tidewheel.model.states import Cause
from tidewheel.observe.own_log import concern
from tidewheel.observe.tracing import is_active, run_span, trace_in
from tidewheel.tasks.binding import Caller
from tidewheel.tasks.context import Context
from tidewheel.tasks.definition import TaskDefinition
from tidewheel.tasks.ending import TOO_LONG, End, Ended, ended_by, given_back, options_of, outcome_of
from tidewheel.worker.counting import RunNumbers
from tidewheel.worker.execution import AGAIN_AFTER, Away
from tidewheel.worker.handover import Handover
from tidewheel.worker.page import Page
from tidewheel.worker.reports import Report, Reports
from tidewheel.worker.settler import Settler
from tidewheel.worker.slots import Slot, in_steps

if TYPE_CHECKING:
    from tidewheel.observe.otel import RunSpan

_SMALL: Final = MAX_RESULT_BYTES // 4
"""No character takes more than four bytes."""

_log = logging.getLogger(__name__)


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
    numbers: RunNumbers


class InlineExecutor:
    """Runs one coroutine after the other for each slot, and says what became of it."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._random = random.Random()  # noqa: S311 - spreads retries, guards nothing

    async def serve(self, slot: Slot, run: Run, task: InlineTask, started_at: datetime | None) -> Cause | None:
        """Run a job to its end, hand its outcome over and return its cause; None for one that was taken away."""
        report = self._tools.reports.open(run)
        span = run_span(run, trace_in(options_of(run.options))) if is_active() else None
        concern(run, None if span is None else span.trace)
        try:
            ended = await self._attempt(slot, run, task, report, span)
            slot.body_ended()
            outcome = await self._settle(slot, run, report, report.hidden(ended), started_at)
            if span is not None:
                span.end(Cause.LOST if outcome is None else outcome.cause, None if outcome is None else outcome.error)
        except Exception as error:  # noqa: BLE001 - one run must not end the others
            _log.exception("job %s could not be run", run.job_id)
            ended = Ended(end=End.ERROR, message=f"the worker could not run it: {error}")
            outcome = outcome_of(run, ended, self._random.random(), started_at)
            self._tools.settler.add(outcome)
            return outcome.cause
        else:
            return None if outcome is None else outcome.cause
        finally:
            concern(None)
            slot.finish()

    async def _settle(
        self, slot: Slot, run: Run, report: Report, ended: Ended, started_at: datetime | None
    ) -> Outcome | None:
        if slot.disowned and not slot.released:
            await report.close()
            return None
        outcome = (
            given_back(run, slot.again_after) if slot.released else await self._outcome(slot, run, ended, started_at)
        )
        if report.spoke:
            slot.left()
            await report.close_before(outcome, self._tools.settler)
        else:
            self._tools.settler.add(outcome)
        return outcome

    async def _attempt(self, slot: Slot, run: Run, task: InlineTask, report: Report, span: "RunSpan | None") -> Ended:
        slot.report = report  # before all that may have to wait, or a timeout of that could not cancel it
        mark = current_sink.set(report)
        try:
            args = run.args
            if run.token > 1 or "$" in args:
                slot.left()  # what follows may have to wait
                args = await self._tools.handover.args(run, report.hide)
            if task.wants_context:
                slot.context = await self._context(run, report, span)
            report.keep_quiet()
            context = contextvars.copy_context()
            if span is not None:
                context.run(span.enter)
            result = await in_steps(task.call(slot.context, args), context, slot)
            return Ended(end=End.RETURNED, result=task.encode(result))
        except BaseException as error:  # noqa: BLE001 - whatever the task raised is its outcome
            return self._ended_by(slot, error)
        finally:
            current_sink.reset(mark)

    def _ended_by(self, slot: Slot, error: BaseException) -> Ended:
        if slot.ending is not None and isinstance(error, asyncio.CancelledError):
            return Ended(end=slot.ending, message=TOO_LONG if slot.ending is End.TIMEOUT else "")
        if isinstance(error, Away):
            slot.put_off(AGAIN_AFTER)
        return ended_by(error)

    async def _context(self, run: Run, report: Report, span: "RunSpan | None") -> Context:
        return Context(
            job_id=run.job_id,
            token=run.token,
            epoch=self._tools.epoch,
            attempt=run.attempt,
            saved=await self._tools.handover.saved(run),
            reporter=report,
            trace=trace_in(options_of(run.options)) if span is None else span.trace,
        )

    async def _outcome(self, slot: Slot, run: Run, ended: Ended, started_at: datetime | None) -> Outcome:
        outcome = outcome_of(run, ended, self._random.random(), started_at)
        if outcome.result is None or len(outcome.result) <= _SMALL:
            return outcome
        slot.left()
        try:
            placed = await slot.storing.see_through(self._tools.handover.place(run, outcome.result))
        except Invalid as error:
            return outcome_of(run, Ended(end=End.FATAL, message=str(error)), 0.0, started_at)
        except TideError as error:
            return outcome_of(run, Ended(end=End.ERROR, message=str(error)), self._random.random(), started_at)
        if placed is None:
            return given_back(run)
        result, location = placed
        return msgspec.structs.replace(outcome, result=result, result_location=location)
