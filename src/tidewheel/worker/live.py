"""One run at a host, from its claim to its outcome; with a timeout that does not count while it is paused."""

import asyncio
import math
from collections.abc import Callable

from tidewheel.clock import Clock
from tidewheel.model.job import Run
from tidewheel.model.priority import Priority
from tidewheel.model.resources import Needs
from tidewheel.tasks.definition import Preempt
from tidewheel.tasks.ending import End
from tidewheel.worker.execution import Execution
from tidewheel.worker.reports import Report
from tidewheel.worker.settler import RunKey


class LiveRun:
    """What the host knows of a run that is under way."""

    def __init__(self, run: Run, preempt: Preempt, report: Report, clock: Clock) -> None:
        self.run = run
        self.preempt = preempt
        self.report = report
        self.released = False
        """Whether to give it back instead of reporting an end."""
        self.disowned = False
        self.since = clock.monotonic()
        self.paused_at: float | None = None
        self._clock = clock
        self._execution: Execution | None = None
        self._left = 0.0
        self._armed_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
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
        return self._armed_at + self._left if self._timer is not None and not self.paused else math.inf

    def started(self, execution: Execution, timeout: float, grace: float) -> None:
        """Note that it runs; from now on its time counts. What was asked of it before is done now."""
        self._execution, self._left = execution, timeout
        self._arm(lambda: self.stop(End.TIMEOUT, grace))
        if self._to_stop is not None:
            execution.stop(*self._to_stop)

    def ended(self) -> None:
        """Note that it has ended."""
        self._disarm()

    def stop(self, end: End, grace: float) -> None:
        """Have it ended. Asked again, it gets no more time than it had: every beat repeats who is to stop."""
        if self._to_stop is not None and grace >= self._to_stop[1]:
            return
        self._disarm()
        self._to_stop = (end, grace)
        if self._execution is not None:
            self._execution.stop(end, grace)

    def pause(self) -> None:
        """Let it stand still; its time does not count meanwhile."""
        self.paused_at = self._clock.monotonic()
        if self._timer is not None:
            self._left -= self.paused_at - self._armed_at
            self._timer.cancel()
        if self._execution is not None:
            self._execution.pause()
        self.report.paused(yes=True)

    def resume(self, grace: float) -> None:
        """Let it go on."""
        self.paused_at = None
        if self._execution is not None:
            self._execution.resume()
        if self._timer is not None:
            self._arm(lambda: self.stop(End.TIMEOUT, grace))
        self.report.paused(yes=False)

    def _arm(self, overdue: Callable[[], None]) -> None:
        self._armed_at = self._clock.monotonic()
        self._timer = asyncio.get_running_loop().call_later(max(self._left, 0.0), overdue)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
