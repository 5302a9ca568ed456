"""The final read: every job as the store shows it, with the store's instants put on the host's clock."""

import time
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from harness.checker.records import Final as Ended
from harness.witness import boottime
from tidewheel.model.job import Job
from tidewheel.model.states import ACTIVE
from tidewheel.store.base import JobFilter, Store

PAGE: Final = 500
RESOLUTION: Final = 0.001
"""Databases keep microseconds, and read the clock a moment before or after a task does."""


class Offset(NamedTuple):
    """What to subtract from the wall clock to get the host's boot clock, and how far that may be off."""

    seconds: float
    error: float = 0.0

    @classmethod
    def now(cls) -> "Offset":
        """Read both clocks; the best of some tries, for we may be interrupted between two readings."""
        return min((cls._read() for _ in range(20)), key=lambda offset: offset.error)

    @classmethod
    def _read(cls) -> "Offset":
        before, wall, after = boottime(), time.time(), boottime()
        return cls(wall - (before + after) / 2, after - before)

    def against(self, later: "Offset") -> "Offset":
        """Return this offset with the error that a later reading shows: the wall clock is steered, and may step."""
        return Offset(self.seconds, self.error + later.error + abs(later.seconds - self.seconds) + RESOLUTION)

    def place(self, instant: datetime) -> float:
        """Return an instant of the wall clock on the boot clock."""
        return instant.timestamp() - self.seconds


async def active(store: Store) -> int:
    """Return how many jobs have not ended."""
    return sum([1 async for _ in _jobs(store, JobFilter(states=frozenset(ACTIVE)))])


async def read_all(store: Store, offset: Offset) -> list[Ended]:
    """Return all jobs as they are now."""
    return [await _ended(store, job, offset) async for job in _jobs(store, JobFilter())]


async def _jobs(store: Store, where: JobFilter) -> AsyncIterator[Job]:
    after: UUID | None = None
    while True:
        page = await store.find(where, limit=PAGE, after=after)
        for job in page.jobs:
            yield job
        if page.next is None:
            return
        after = page.next


async def _ended(store: Store, job: Job, offset: Offset) -> Ended:
    retried = job.failures + job.losses > 0  # most have but one attempt, and need not be asked about
    return Ended(
        job=str(job.id),
        key=job.idempotency_key,
        state=job.state.value,
        token=job.token,
        due=offset.place(job.due_at),
        finished=None if job.finished_at is None else offset.place(job.finished_at),
        failures=job.failures,
        losses=job.losses,
        max_attempts=job.retry.max_attempts,
        attempts=len(await store.attempts(job.id)) if retried else min(job.token, 1),
        reason=None if job.error is None else job.error.reason,
        result_token=_token_in(job.result),
        limit_keys=job.limit_keys,
        parents=tuple(str(parent) for parent in job.after),
    )


def _token_in(result: Any) -> int | None:
    return result if isinstance(result, int) and not isinstance(result, bool) else None
