"""Dead letters: jobs whose policy ended without success, the groups they fall into, and what may be asked of them."""

from datetime import datetime, timedelta
from math import isfinite
from typing import Final
from uuid import UUID

import msgspec

from tidewheel.errors import Conflict, Invalid
from tidewheel.model.checks import check_instant, check_name, shown
from tidewheel.model.fingerprint import check_fingerprint
from tidewheel.model.job import Job
from tidewheel.model.outcome import Failure
from tidewheel.model.states import State

LEAST_RATE: Final = 0.001
MOST_RATE: Final = 100_000.0
LONGEST_SPREAD: Final = timedelta(days=365)
MOST_AT_ONCE: Final = 1000


class DeadFilter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters; all conditions must hold."""

    tenant: str | None = None
    kind: str | None = None
    queue: str | None = None
    fingerprint: str | None = None
    died_from: datetime | None = None
    died_before: datetime | None = None


class DeadGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Dead letters of one kind that seem to have one cause."""

    tenant: str
    kind: str
    fingerprint: str
    jobs: int
    first_seen: datetime
    last_seen: datetime
    sample: UUID
    """The youngest of them."""
    error: Failure | None
    """What the sample says."""


class Redriven(msgspec.Struct, frozen=True):
    """What came of a piece of a redrive."""

    jobs: list[UUID]
    next: UUID | None
    """Where the next piece begins (exclusive); None at the end."""
    as_of: datetime
    """The store's time: who goes on asks for what died before, or would send round what dies again meanwhile."""


def check_dead_filter(where: DeadFilter) -> DeadFilter:
    """Return a filter with its instants in UTC, or refuse it."""
    for field in ("tenant", "kind", "queue"):
        if (name := getattr(where, field)) is not None:
            check_name(field, name)
    if where.fingerprint is not None:
        check_fingerprint("fingerprint", where.fingerprint)
    since = None if where.died_from is None else check_instant("died_from", where.died_from)
    until = None if where.died_before is None else check_instant("died_before", where.died_before)
    if since is not None and until is not None and until <= since:
        raise Invalid("died_before", "must lie after died_from")
    return msgspec.structs.replace(where, died_from=since, died_before=until)


def check_rate(rate: object) -> float | None:
    """Return how many a second may become due; None stands for all at once."""
    if rate is None:
        return None
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not isfinite(rate):
        raise Invalid("rate", f"must be a number of jobs a second, not {shown(rate)}")
    if not LEAST_RATE <= rate <= MOST_RATE:
        raise Invalid("rate", f"must be between {LEAST_RATE:g} and {MOST_RATE:g} jobs a second, not {rate:g}")
    return float(rate)


def check_piece(limit: int, start: timedelta, rate: float | None) -> None:
    """Refuse pieces that are empty or too large, and those that would go on for longer than a year."""
    if not 1 <= limit <= MOST_AT_ONCE:
        raise Invalid("limit", f"must be between 1 and {MOST_AT_ONCE}, not {limit}")
    if start < timedelta(0):
        raise Invalid("start", "must not be negative")
    if start + spread(limit, rate)[-1] > LONGEST_SPREAD:
        raise Invalid("rate", "is so low that the last would run in more than a year")


def spread(number: int, rate: float | None, start: timedelta = timedelta(0)) -> list[timedelta]:
    """Return how long each of so many jobs waits, evenly spread at a rate."""
    if rate is None:
        return [start] * number
    return [start + timedelta(seconds=place / rate) for place in range(number)]


def not_sent(job: Job) -> Conflict:
    """Return why a job cannot be sent round again."""
    why = "another has its unique key, or it just went" if job.state is State.DEAD else f"it is {job.state}"
    return Conflict(f"job {job.id} was not sent round again: {why}")
