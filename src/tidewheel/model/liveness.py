"""Liveness: who is dead, told by two clocks, and until when the holder of a lease may trust it.

The store says whose lease has passed by its own clock. That alone is not enough: when the clock of the database steps
forward, all leases seem to have passed at once. So the reaper also watches each of them on its own monotonic clock, and
calls a worker dead only after seeing the same beat number for a whole lease. The holder in turn stops before either of
them could call it dead, even if its clock runs slow.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final
from uuid import UUID

import msgspec

CLOCK_RATE_ERROR: Final = 0.01
"""How much slower than true the clock of a holder may run."""
MARGIN_SHARE: Final = 0.05
MAX_MARGIN: Final = timedelta(seconds=1)
"""Time to end the work before the lease does: a share of the lease, and this much at the most."""


class ExpiredWorker(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A worker whose lease has passed by the clock of the store."""

    id: UUID
    beat: int
    """The number of its last beat."""
    ttl: timedelta


class Watched(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A beat that the reaper saw, and since when on its own monotonic clock, in seconds."""

    beat: int
    since: float


def observe(
    watched: Mapping[UUID, Watched], expired: Iterable[ExpiredWorker], now: float
) -> tuple[list[ExpiredWorker], dict[UUID, Watched]]:
    """Return who is dead now, and what to remember until the next look.

    Who is no longer expired is forgotten; another beat begins a new watch. The dead stay watched, so that they are
    found again should their reaping fail.
    """
    dead: list[ExpiredWorker] = []
    still: dict[UUID, Watched] = {}
    for worker in expired:
        seen = watched.get(worker.id)
        if seen is None or seen.beat != worker.beat:
            seen = Watched(beat=worker.beat, since=now)
        still[worker.id] = seen
        if now - seen.since >= worker.ttl.total_seconds():
            dead.append(worker)
    return dead, still


def holder_deadline(sent_at: float, ttl: timedelta) -> float:
    """Return until when a worker may trust a lease that was granted by a beat sent at `sent_at`, on the same clock.

    Counted from before the beat was sent, since the store granted it no earlier than that.
    """
    seconds = ttl.total_seconds()
    margin = min(MAX_MARGIN.total_seconds(), MARGIN_SHARE * seconds)
    return sent_at + seconds * (1 - CLOCK_RATE_ERROR) - margin
