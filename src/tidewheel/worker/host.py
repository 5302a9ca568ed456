"""A host: takes jobs that run in processes of their own, for its slots and resources; a `Taker` without user code."""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from tidewheel.errors import Invalid, TideError
from tidewheel.model.job import Claimed, Run
from tidewheel.model.outcome import Outcome
from tidewheel.model.priority import Priority
from tidewheel.model.resources import Resources, fits
from tidewheel.model.states import Cause
from tidewheel.model.trace import Trace
from tidewheel.observe.own_log import about, concern
from tidewheel.observe.tracing import run_span, trace_in
from tidewheel.store.base import ClaimRequest
from tidewheel.tasks.ending import End, Ended, ended_by, given_back, options_of, outcome_of, refused
from tidewheel.tasks.registry import CatalogueEntry
from tidewheel.tasks.signals import Fatal
from tidewheel.worker.ahead import Pace, Waiting
from tidewheel.worker.capacity import Unstarted, free_of
from tidewheel.worker.child import Workshop
from tidewheel.worker.execution import AGAIN_AFTER, Away, Execution, HostTask, Order
from tidewheel.worker.live import Alarm, LiveRun
from tidewheel.worker.loop_watch import LONGEST_SILENCE
from tidewheel.worker.preempt import most_giving, next_to_resume, preempt_of, room_maker
from tidewheel.worker.reports import Report
from tidewheel.worker.reserving import Reservation
from tidewheel.worker.settler import RunKey
from tidewheel.worker.store_time import StoreTime

LOOK_EVERY: Final = 0.5
"""Seconds between two looks at who has been paused or kept waiting for long."""

GATHER: Final = 0.001
"""Seconds in which short runs free some more slots, so that one claim serves them all."""

LONG_RUN: Final = 1.0
"""Seconds that a run is expected to take as long as nothing is known: nothing is claimed ahead then."""

STANDSTILL: Final = 0.1
"""Seconds without a free slot after which what was claimed ahead is given back: others may have room for it."""

_log = logging.getLogger(__name__)


class Host:
    """Serves runs of the kinds it knows."""

    def __init__(self, tasks: Mapping[str, HostTask], workshop: Workshop, request: ClaimRequest) -> None:
        self._tasks = tasks
        self._workshop = workshop
        self._request = request
        self._clock = workshop.clock
        self._slots = workshop.setup.slots
        self._grace = workshop.setup.grace.total_seconds()
        self._total: Resources = workshop.setup.offer.resources
        self._longest_pause = workshop.setup.longest_pause.total_seconds()
        self._reservation = Reservation(
            workshop.store, workshop.setup.offer, workshop.setup.reserve_after, workshop.clock
        )
        self._live: dict[RunKey, LiveRun] = {}
        self._waiting = Waiting()
        self._pace = Pace(self._slots, expected=LONG_RUN)
        self._making_way: dict[RunKey, asyncio.Event] = {}
        """Those whose end an urgent run waits for, since it needs what they hold."""
        self._standstill: asyncio.TimerHandle | None = None
        self._moved_at = 0.0
        """When a run was taken or left last."""
        self._serving: set[asyncio.Task[None]] = set()
        self._random = random.Random()  # noqa: S311 - spreads retries, guards nothing
        self._changed = asyncio.Event()
        self._wake: Callable[[], None] = self._changed.set
        self._alarm = Alarm(self._live.values(), workshop.clock)
        self._time = StoreTime(workshop.clock)
        self._expected = 0.0

    # What a Taker does

    def attach(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    def wanted(self) -> ClaimRequest | None:
        if limit := self._wish():
            request = msgspec.structs.replace(self._request, limit=limit)
            return self._reservation.apply(request, self._free())
        weakest = None if self._waiting else most_giving(self._staying(), self._free)
        if weakest is None:
            self._changed.clear()
            return None
        free = self._free(weakest)
        return msgspec.structs.replace(self._request, limit=1, free=free, at_least=Priority(weakest.priority - 1))

    async def room(self) -> None:
        await self._changed.wait()
        await self._clock.sleep(GATHER)

    def accept(self, claimed: Claimed) -> None:
        self._time.learn(claimed)
        for run in claimed.runs:
            self._reservation.taken(run.needs)
            has_slot = self._running < self._slots
            weakest = None if has_slot and self._fits(run) else room_maker(self._staying(), run, self._free)
            gone = None if weakest is None else self._push_aside(weakest, run)
            if has_slot or weakest is not None:
                self._start(self._enter(run), gone)
            else:
                self._waiting.add(run)
        self._watch_standstill()

    def held(self) -> set[RunKey]:
        return self._live.keys() | self._waiting.keys | self._workshop.settler.unstored

    def disown(self, keys: Iterable[RunKey]) -> None:
        lost = set(keys)
        self._waiting.take_out(lost)
        for live in self._named(lost):
            _log.warning("a run is no longer this worker's, and is ended", extra=about(live.run))
            live.disowned = True
            live.stop(End.STOPPED, 0)

    # What the supervisor asks for

    async def serve(self) -> None:
        """Let paused runs go on that have waited long enough, and keep room for large ones, until cancelled."""
        while True:
            await self._clock.sleep(LOOK_EVERY)
            for live in list(self._live.values()):
                if live.paused_at is not None and self._clock.monotonic() - live.paused_at > self._longest_pause:
                    live.resume()
            if self._live and await self._reservation.look(self._request, self._free()):
                self._wake()

    def stop(self, keys: Iterable[RunKey]) -> None:
        """End runs that were asked to stop."""
        wanted = set(keys)
        for run in self._waiting.take_out(wanted):
            self._workshop.settler.add(Outcome(run.job_id, run.token, Cause.STOPPED))
        for live in self._named(wanted):
            if live.paused:
                live.resume()
            live.stop(End.STOPPED, self._grace)

    def expect(self, now: float) -> None:
        """Write on the page which run must end first; without user code the loop is never silent for long."""
        self._expected = now + LONGEST_SILENCE
        first = min(self._live.values(), key=lambda live: live.deadline, default=None)
        if first is None or not self._expects(first):
            self._workshop.page.expect(self._expected)

    def _expects(self, live: LiveRun) -> bool:
        """Write on the page that this run must end first, if it must."""
        until = live.deadline + self._grace
        if until >= self._expected:
            return False
        self._expected = until
        self._workshop.page.expect(until, live.run.job_id.bytes, live.run.token)
        return True

    def tell_who_has_the_loop(self) -> None:
        """No run has it, ever."""

    def release_waiting(self) -> None:
        """Give back what was not started."""
        for run in self._waiting.take_all():
            self._workshop.settler.add(given_back(run))

    def release_running(self) -> None:
        """End what still runs, and give it back."""
        for live in self._live.values():
            live.released = True
            live.stop(End.STOPPED, 0)

    def break_off_storing(self) -> None:
        """Give back what has ended, and whose files or result are not stored yet."""
        for live in self._live.values():
            live.storing.break_off()

    @property
    def busy(self) -> int:
        """How many runs are under way."""
        return len(self._live)

    # One run

    def _enter(self, run: Run) -> LiveRun:
        entry = self._tasks[run.kind].entry if run.kind in self._tasks else None
        live = LiveRun(run, preempt_of(run, entry), self._open(run), self._alarm)
        self._live[live.key] = live
        return live

    def _start(self, live: LiveRun, after: asyncio.Event | None = None) -> None:
        serving = asyncio.create_task(self._serve_in_turn(live, after))
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)

    async def _serve_in_turn(self, live: LiveRun | None, after: asyncio.Event | None) -> None:
        """Serve a run, then in its place those that wait, one after the other."""
        if after is not None:
            await after.wait()
        while live is not None:
            try:
                await self._serve(live)
            finally:
                live = self._leave(live)

    async def _serve(self, live: LiveRun) -> None:
        run = live.run
        concern(run)  # for this task, which serves one run at a time
        now = self._time.seconds(self._clock.monotonic())
        try:
            is_unwanted = live.disowned or live.released  # before it began
            outcome = given_back(run) if is_unwanted else refused(run, now, known=run.kind in self._tasks)
            if outcome is None:
                outcome = await self._carry_out(live)
                self._workshop.numbers.ended(run.kind, outcome.cause, self._clock.monotonic() - live.since)
                _log.debug("job %s: %s", run.job_id, outcome.cause)
            if live.disowned:
                return
            await live.report.close()
            self._workshop.settler.add(outcome)
        except Exception as error:  # noqa: BLE001 - one run must not end the others
            _log.exception("job %s could not be run", run.job_id)
            ended = Ended(end=End.ERROR, message=f"the worker could not run it: {error}")
            self._workshop.settler.add(outcome_of(run, ended, self._random.random()))

    async def _carry_out(self, live: LiveRun) -> Outcome:
        """Run a job, in a span if there are any here."""
        trace = trace_in(options_of(live.run.options))
        span = run_span(live.run, trace)
        if span is not None:
            concern(live.run, span.trace)
        try:
            outcome = await self._execute(live, trace if span is None else span.trace)
        except Away as away:
            _log.warning("job %s is given back: %s", live.run.job_id, away)
            outcome = given_back(live.run, AGAIN_AFTER)
        if span is not None:
            span.end(outcome.cause, outcome.error)
        return outcome

    async def _execute(self, live: LiveRun, trace: Trace | None) -> Outcome:
        run, task = live.run, self._tasks[live.run.kind]
        try:
            order = await self._order(live, task.entry, trace)
        except Fatal as error:
            return self._judge(live, ended_by(error))
        except TideError as error:
            return self._judge(live, Ended(end=End.ERROR, message=str(error)))
        page, started_at = self._workshop.page, self._time.instant(self._clock.monotonic())
        page.begun(run.job_id.bytes, run.token)  # before it can do any harm
        try:
            return await self._see_through(live, await task.executor.start(order, live.report), started_at)
        finally:
            page.over(run.job_id.bytes, run.token)

    async def _see_through(self, live: LiveRun, execution: Execution, started_at: datetime) -> Outcome:
        run = live.run
        try:
            live.started(execution, options_of(run.options).timeout.total_seconds(), self._grace)
            self._expects(live)  # before the next turn of the loop, which may never come
            ended = await execution.wait()
            live.ended()
            if live.disowned or (live.released and ended.end is End.STOPPED):  # what ended by itself has ended
                return given_back(run)
            if ended.end is End.UNKNOWN:
                _log.warning("job %s is given back: %s", run.job_id, ended.message)
            outcome = await live.storing.see_through(self._finish(live, ended, started_at))
            return given_back(run) if outcome is None else outcome
        finally:
            execution.close()

    async def _finish(self, live: LiveRun, ended: Ended, started_at: datetime) -> Outcome:
        """Store what the run leaves behind, and return its outcome."""
        run, handover = live.run, self._workshop.handover
        outcome = self._judge(live, ended, started_at)
        try:
            await handover.keep_files(run, ended.files)
            result, location = await handover.place(run, outcome.result)
        except Invalid as error:
            return self._judge(live, Ended(end=End.FATAL, message=str(error), usage=ended.usage), started_at)
        except TideError as error:
            return self._judge(live, Ended(end=End.ERROR, message=str(error), usage=ended.usage), started_at)
        if location is None:
            return outcome
        return msgspec.structs.replace(outcome, result=result, result_location=location)

    def _judge(self, live: LiveRun, ended: Ended, started_at: datetime | None = None) -> Outcome:
        return outcome_of(live.run, live.report.hidden(ended), self._random.random(), started_at)

    async def _order(self, live: LiveRun, entry: CatalogueEntry, trace: Trace | None) -> Order:
        run, handover = live.run, self._workshop.handover
        return Order(
            job_id=run.job_id,
            token=run.token,
            epoch=self._workshop.store.epoch,
            attempt=run.attempt,
            kind=run.kind,
            args=await handover.args(run, live.report.hide),
            saved=await handover.saved(run),
            isolation=entry.isolation,
            memory=run.needs.resources.get("memory"),
            trace=trace,
        )

    # Slots and resources

    @property
    def _running(self) -> int:
        return len(self._live) - sum([live.paused_at is not None for live in self._live.values()])

    def _wish(self) -> int:
        """Return how many more runs are wanted; none as long as they are too few for a claim."""
        room = self._slots - self._running
        ahead = self._pace.ahead()
        more = room + ahead - len(self._waiting)
        return max(more, 1) if room > 0 or more > (self._slots + ahead) // 2 else 0

    def _named(self, keys: Iterable[RunKey]) -> list[LiveRun]:
        return [self._live[key] for key in keys if key in self._live]

    def _open(self, run: Run) -> Report:
        return self._workshop.reports.open(run)

    def _staying(self) -> list[LiveRun]:  # who was told to make way is counted, and not told again
        return [live for live in self._live.values() if not live.released]

    def _free(self, aside: LiveRun | None = None) -> dict[str, int]:
        waiting = (Unstarted(run.needs) for run in self._waiting)
        return free_of(self._total, (*self._live.values(), *waiting), aside)

    def _fits(self, run: Run) -> bool:
        return not run.needs.resources or fits(run.needs, self._free())

    def _push_aside(self, weakest: LiveRun, run: Run) -> asyncio.Event | None:
        """Make a slot free for an urgent run; return what is set when it may begin, if that is not at once."""
        _log.info("job %s makes way for job %s", weakest.run.job_id, run.job_id, extra=about(weakest.run))
        if weakest.preempt == "pause":
            weakest.pause()
            return None
        weakest.released = True
        weakest.stop(End.STOPPED, 0)
        return None if self._fits(run) else self._making_way.setdefault(weakest.key, asyncio.Event())

    def _leave(self, live: LiveRun) -> LiveRun | None:
        """Return who has the place next, unless a paused one goes on in it, and look for more."""
        del self._live[live.key]
        if (gone := self._making_way.pop(live.key, None)) is not None:
            gone.set()
        self._pace.note(self._clock.monotonic() - live.since, suspended=True)
        entered = self._fill()
        for other in entered[1:]:
            self._start(other)
        self._watch_standstill()
        if not self._waiting or self._wish():
            self._changed.set()
        self._wake()
        return entered[0] if entered else None

    def _fill(self) -> list[LiveRun]:
        """Let paused runs go on, or those enter that wait, while there are slots; return the latter."""
        entered = []
        while self._running < self._slots:
            paused = next_to_resume(self._live.values()) if self._running < len(self._live) else None
            if paused is not None and ((urgent := self._waiting.most_urgent) is None or paused.priority <= urgent):
                paused.resume()
            elif (run := self._waiting.pop()) is not None:
                entered.append(self._enter(run))
            else:
                break
        return entered

    def _watch_standstill(self) -> None:
        """Count anew how long no slot has become free, while there is something that waits for one."""
        self._moved_at = self._clock.monotonic()
        if self._waiting and self._standstill is None:
            self._standstill = asyncio.get_running_loop().call_later(STANDSTILL, self._look_for_standstill)

    def _look_for_standstill(self) -> None:
        """Give back what waits, or look again later: most often something has moved, and no timer is set for each."""
        self._standstill = None
        left = self._moved_at + STANDSTILL - self._clock.monotonic()
        if not self._waiting:
            return
        if left > 0:
            self._standstill = asyncio.get_running_loop().call_later(left, self._look_for_standstill)
            return
        self._pace.forget()
        self.release_waiting()
        self._changed.set()
        self._wake()
