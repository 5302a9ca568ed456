"""What was claimed before it could start: a few milliseconds of work, so that nobody waits for the next claim."""

from collections import deque
from collections.abc import Collection, Iterator
from typing import Final

from tidewheel.model.job import Run
from tidewheel.model.priority import Priority
from tidewheel.worker.settler import RunKey

WORK_AHEAD: Final = 0.02
"""Seconds of expected work that may be claimed before it can start."""
MOST_AHEAD: Final = 400
_MEMORY: Final = 0.05
"""How much of the estimate the newest run makes up."""


class Waiting:
    """Runs that were claimed and not started yet, the most urgent first."""

    def __init__(self) -> None:
        self._by_priority = tuple(deque[Run]() for _ in Priority)

    def __len__(self) -> int:
        return sum(map(len, self._by_priority))

    def __iter__(self) -> Iterator[Run]:
        return (run for queue in self._by_priority for run in queue)

    @property
    def keys(self) -> set[RunKey]:
        """Which runs these are."""
        return {(run.job_id, run.token) for run in self}

    @property
    def most_urgent(self) -> Priority | None:
        """The priority of the next one."""
        return next((priority for priority, queue in zip(Priority, self._by_priority, strict=True) if queue), None)

    def add(self, run: Run) -> None:
        """Take one more."""
        self._by_priority[run.priority].append(run)

    def pop(self) -> Run | None:
        """Return the next one."""
        for queue in self._by_priority:
            if queue:
                return queue.popleft()
        return None

    def take_out(self, keys: Collection[RunKey]) -> list[Run]:
        """Remove and return those of these runs that are here."""
        out = [run for run in self if (run.job_id, run.token) in keys]
        if out:
            for queue in self._by_priority:
                kept = [run for run in queue if (run.job_id, run.token) not in keys]
                queue.clear()
                queue.extend(kept)
        return out

    def take_all(self) -> list[Run]:
        """Remove and return all."""
        out = list(self)
        for queue in self._by_priority:
            queue.clear()
        return out


class Pace:
    """An estimate of how long a run keeps a slot or the loop busy, and from it how much to claim ahead."""

    def __init__(self, slots: int, *, expected: float) -> None:
        """Begin with what a run is expected to take, in seconds of one slot."""
        self._slots = slots
        self._expected = self._seconds = expected / slots

    def note(self, seconds: float, *, suspended: bool) -> None:
        """Note one run; those that suspend share the time with others."""
        own = seconds / self._slots if suspended else seconds
        self._seconds += _MEMORY * (own - self._seconds)

    def forget(self) -> None:
        """Begin anew: what comes now is not like what went before."""
        self._seconds = self._expected

    def ahead(self) -> int:
        """Return how many runs are `WORK_AHEAD` of work."""
        return min(MOST_AHEAD, int(WORK_AHEAD / max(self._seconds, 1e-6)))
