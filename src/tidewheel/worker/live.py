"""One run at a host, from its claim to its outcome; with a timeout that does not count while it is paused."""

import asyncio
import math
from collections.abc import Collection

from tidewheel.clock import Clock
from tidewheel.model.job import Run
from tidewheel.model.priority import Priority
from tidewheel.model.resources import Needs
from tidewheel.tasks.definition import Preempt
from tidewheel.tasks.ending import End
from tidewheel.worker.execution import Execution
from tidewheel.worker.reports import Report
from tidewheel.worker.settler import RunKey
from tidewheel.worker.storing import Storing


class Alarm:
    """Ends runs whose time is over. There is one timer for all: most end long before, and none is made for each."""

    def __init__(self, runs: Collection["LiveRun"], clock: Clock) -> None:
        """Look after these runs, whichever they are at the time."""
        self.clock = clock
        self._runs = runs
        self._at = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def expect(self, deadline: float) -> None:
        """Look at the runs at this time of the own clock, if not before."""
        if deadline < self._at:
            if self._timer is not None:
                self._timer.cancel()
            self._at = deadline
            left = max(0.0, deadline - self.clock.monotonic())
            self._timer = asyncio.get_running_loop().call_later(left, self._look)

    def _look(self) -> None:
        now, self._at, self._timer = self.clock.monotonic(), math.inf, None
        try:
            for run in list(self._runs):
                if run.deadline <= now:
                    run.is_overdue()
        finally:  # one that cannot be told must not keep the others from it
            self.expect(min((run.deadline for run in self._runs), default=math.inf))


class LiveRun:
    """What the host knows of a run that is under way."""

    def __init__(self, run: Run, preempt: Preempt, report: Report, alarm: Alarm) -> None:
        self.run = run
        self.preempt = preempt
        self.report = report
        self.released = False
        """Whether to give it back instead of reporting an end."""
        self.disowned = False
        self.storing = Storing()
        self.since = alarm.clock.monotonic()
        self.paused_at: float | None = None
        self._alarm = alarm
        self._clock = alarm.clock
        self._execution: Execution | None = None
        self._left = 0.0
        self._grace = 0.0
        self._counted_from: float | None = None
        """Since when its time counts; from its start to its end, or until it is told to stop."""
        self._to_stop: tuple[End, float] | None = None

    @property
    def key(self) -> RunKey:
        return self.run.job_id, self.run.token

    @property
    def priority(self) -> Priority:
        return self.run.priority

    @property
    def held(self) -> frozenset[tuple[str, str]]:
        return self.run.held

    @property
    def needs(self) -> Needs:
        return self.run.needs

    @property
    def paused(self) -> bool:
        return self.paused_at is not None

    @property
    def deadline(self) -> float:
        """When its time ends; never, while it does not count or after it was told to stop."""
        return math.inf if self._counted_from is None or self.paused else self._counted_from + self._left

    def started(self, execution: Execution, timeout: float, grace: float) -> None:
        """Note that it runs; from now on its time counts. What was asked of it before is done now."""
        self._execution, self._left, self._grace = execution, timeout, grace
        if self._to_stop is not None:
            execution.stop(*self._to_stop)
            return
        self._count()
        if self.paused:
            execution.pause()

    def ended(self) -> None:
        """Note that it has ended."""
        self._counted_from = None

    def is_overdue(self) -> None:
        """Have it ended, since its time is over."""
        self.stop(End.TIMEOUT, self._grace)

    def stop(self, end: End, grace: float) -> None:
        """Have it ended. Asked again, it gets no more time than it had: every beat repeats who is to stop."""
        if self._to_stop is not None and grace >= self._to_stop[1]:
            return
        self._counted_from = None
        self._to_stop = (end, grace)
        if self._execution is not None:
            self._execution.stop(end, grace)

    def pause(self) -> None:
        """Let it stand still; its time does not count meanwhile."""
        self.paused_at = self._clock.monotonic()
        if self._counted_from is not None:
            self._left -= self.paused_at - self._counted_from
        if self._execution is not None:
            self._execution.pause()
        self.report.paused(yes=True)

    def resume(self) -> None:
        """Let it go on."""
        self.paused_at = None
        if self._execution is not None:
            self._execution.resume()
        if self._counted_from is not None:
            self._count()
        self.report.paused(yes=False)

    def _count(self) -> None:
        self._counted_from = self._clock.monotonic()
        self._alarm.expect(self.deadline)
