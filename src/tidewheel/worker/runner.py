"""A runner: takes jobs of the user's async functions and serves them in the slots of its event loop; a `Taker`."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from tidewheel.logs.handler import current_sink
from tidewheel.model.job import Claimed, Run
from tidewheel.model.outcome import Outcome
from tidewheel.model.states import Cause
from tidewheel.observe.own_log import about
from tidewheel.store.base import ClaimRequest
from tidewheel.tasks.ending import End, given_back, options_of, refused
from tidewheel.worker.ahead import WORK_AHEAD, Pace, Waiting
from tidewheel.worker.executors.inline import InlineExecutor, InlineTask, Tools
from tidewheel.worker.loop_watch import LONGEST_SILENCE
from tidewheel.worker.reports import Report
from tidewheel.worker.settler import RunKey
from tidewheel.worker.slots import Slot, SlotTask
from tidewheel.worker.store_time import StoreTime

STRETCH: Final = 0.004
"""Seconds after which a slot that never had to wait lets the rest of the process have the loop."""
LATE_START: Final = 0.01
"""A body that begins later than this after its claim says when it began."""

_log = logging.getLogger(__name__)


class Runner:
    """Serves runs of the tasks it knows."""

    def __init__(
        self, tasks: Mapping[str, InlineTask], request: ClaimRequest, tools: Tools, *, slots: int, grace: float
    ) -> None:
        self.page = tools.page
        self.overtime = grace
        self._tasks = tasks
        self._request = request
        self._tools = tools
        self._clock = tools.clock
        self._executor = InlineExecutor(tools)
        self._slots = [Slot(self) for _ in range(slots)]
        self._idle: list[asyncio.Future[None]] = []
        self._waiting = Waiting()
        self._pace = Pace(slots, expected=WORK_AHEAD * slots)
        self._room = asyncio.Event()
        self._time = StoreTime(tools.clock)
        self._expected = 0.0
        self._closing = False

    # What a Taker does

    def attach(self, wake: Callable[[], None]) -> None:
        """Nothing here changes what is wanted while there is room."""

    def wanted(self) -> ClaimRequest | None:
        ahead = self._pace.ahead()
        room = len(self._idle) + ahead - len(self._waiting)
        if room < 1 or (self._waiting and room < (len(self._slots) + ahead) // 2):
            self._room.clear()
            return None
        return msgspec.structs.replace(self._request, limit=room)

    async def room(self) -> None:
        await self._room.wait()

    def accept(self, claimed: Claimed) -> None:
        self._time.learn(claimed)
        for run in claimed.runs:
            self._waiting.add(run)
        self._wake_one()

    def held(self) -> set[RunKey]:
        serving = {(slot.run.job_id, slot.run.token) for slot in self._slots if slot.run is not None}
        return serving | self._waiting.keys | self._tools.settler.unstored

    def disown(self, keys: Iterable[RunKey]) -> None:
        lost = set(keys)
        self._waiting.take_out(lost)
        for slot in self._serving(lost):
            _log.warning("a run is no longer this worker's, and is ended", extra=about(slot.run))
            slot.disowned = True
            self._end(slot, End.STOPPED)

    # What the supervisor asks for

    def stop(self, keys: Iterable[RunKey]) -> None:
        """End runs that were asked to stop."""
        wanted = set(keys)
        for run in self._waiting.take_out(wanted):
            self._tools.settler.add(Outcome(run.job_id, run.token, Cause.STOPPED))
        for slot in self._serving(wanted):
            self._end(slot, End.STOPPED)

    def expect(self, now: float) -> None:
        """Write on the page which run must end first: the loop is not silent for longer, whoever has it."""
        first = min((slot for slot in self._slots if slot.waits), key=lambda slot: slot.must_end_by, default=None)
        if first is None:
            self._expected = now + LONGEST_SILENCE
            self.page.expect(self._expected)
        else:
            self._expected = first.must_end_by
            first.is_expected()

    def tell_who_has_the_loop(self) -> None:
        """Write on the page whose code is being executed; called in the middle of it."""
        for slot in self._in_the_middle():
            slot.entered()

    def tell_who_exits(self) -> None:
        """Write on the page whose code is about to end this process; called in the middle of it, in any thread."""
        for slot in self._in_the_middle():
            slot.blame()

    def release_waiting(self) -> None:
        """Give back what was not started."""
        for run in self._waiting.take_all():
            self._tools.settler.add(given_back(run))

    def release_running(self) -> None:
        """Cancel what still runs, and give it back."""
        for slot in self._slots:
            if slot.run is not None:
                slot.released = True
                self._end(slot, End.STOPPED)

    def break_off_storing(self) -> None:
        """Give back what has ended, and whose result is not stored yet."""
        for slot in self._slots:
            slot.storing.break_off()

    @property
    def busy(self) -> int:
        """How many runs are being served."""
        return sum(slot.run is not None for slot in self._slots)

    # The slots

    async def serve(self) -> None:
        """Serve until cancelled."""
        tasks = {SlotTask(slot, self._serve_with(slot)): slot for slot in self._slots}
        for task, slot in tasks.items():
            slot.task = task
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
        finally:
            self._closing = True
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def on_suspended(self, slot: Slot) -> None:
        """Watch the time of a run that waits for something, and let another slot go on."""
        slot.call_after(slot.deadline - self._clock.monotonic(), lambda slot: self._end(slot, End.TIMEOUT))
        if slot.must_end_by < self._expected:
            self._expected = slot.must_end_by
            slot.is_expected()
        self._wake_one()

    async def _serve_with(self, slot: Slot) -> None:
        """Serve one run after the other in one task of the loop, whoever else cancels that."""
        while True:
            try:
                await self._serve_on(slot)
            except asyncio.CancelledError:
                if self._closing or slot.task is None:
                    raise
                # Code of an earlier run has kept the task that it ran in, as in a timeout of its own.
                while slot.task.uncancel():
                    pass

    async def _serve_on(self, slot: Slot) -> None:
        began = self._clock.monotonic()
        while True:
            now = self._clock.monotonic()
            if now - began > STRETCH:
                await self._let_others_run()
                began = now = self._clock.monotonic()
            run = self._waiting.pop()  # from here to its slot without a pause: it must always be held somewhere
            if run is not None:
                try:
                    await self._serve_one(slot, run, now)
                except asyncio.CancelledError:
                    if not self._closing:  # it had ended, and nobody could say how; an outcome that is known stands
                        self._tools.settler.add(given_back(run))
                    raise
            else:
                await self._wait_for_work()
            if slot.was_cancelled:
                await self._shake_off(slot)
            if run is None or slot.has_suspended:
                began = self._clock.monotonic()

    async def _shake_off(self, slot: Slot) -> None:
        """Hear a cancellation that a run asked for and did not wait for: it is not meant for the next one."""
        slot.was_cancelled = False
        try:
            await self._let_others_run()
        except asyncio.CancelledError:
            if self._closing or slot.task is None:
                raise
            while slot.task.uncancel():
                pass

    async def _wait_for_work(self) -> None:
        self.page.leave()
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._idle.append(woken)
        self._room.set()
        try:
            await woken
        except asyncio.CancelledError:
            if woken in self._idle:
                self._idle.remove(woken)
            else:  # it was woken, too, and someone else must go in its place
                self._wake_one()
            raise

    async def _let_others_run(self) -> None:
        self.page.leave()
        self._room.set()
        await self._clock.sleep(0)

    def _wake_one(self) -> None:
        if self._waiting and self._idle:
            self._idle.pop().set_result(None)

    async def _serve_one(self, slot: Slot, run: Run, now: float) -> None:
        task = self._tasks.get(run.kind)
        end = refused(run, self._time.seconds(now), known=task is not None)
        if task is None or end is not None:
            self._tools.settler.add(end or given_back(run))
            return
        slot.begin(run, now + options_of(run.options).timeout.total_seconds())
        late = self._time.seconds(now) - run.claimed_at.timestamp() > LATE_START
        cause = await self._executor.serve(slot, run, task, self._time.instant(now) if late else None)
        seconds = self._clock.monotonic() - now
        self._pace.note(seconds, suspended=slot.has_suspended)
        if cause is not None:
            self._tools.numbers.ended(run.kind, cause, seconds)
            if _log.isEnabledFor(logging.DEBUG):
                _log.debug("job %s: %s", run.job_id, cause, extra=about(run))

    def _serving(self, keys: set[RunKey]) -> list[Slot]:
        return [slot for slot in self._slots if slot.run is not None and (slot.run.job_id, slot.run.token) in keys]

    def _in_the_middle(self) -> list[Slot]:
        """Return the slot whose code this is called in, which may be in a task of its own, if there is one."""
        sink = current_sink.get()
        return self._serving({sink.key}) if isinstance(sink, Report) else []

    def _end(self, slot: Slot, end: End) -> None:
        """Cancel a run; if it goes on all the same, let the supervisor end this whole process."""
        if slot.cancel(end):
            slot.call_after(self.overtime, Slot.blame)
