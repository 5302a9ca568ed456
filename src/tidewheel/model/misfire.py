"""Misfire: what becomes of the occurrences of a schedule whose time passed while nobody could make their jobs.

An occurrence that is *late*, by no more than the grace, runs under every policy: a restart or a failover loses nothing.
Beyond the grace it was *missed*, and the policy decides:

    latest   the newest one runs, unless a late one runs in its place
    all      all of them run, oldest first
    skip     none of them runs

No policy starts more than `most` at once; the newest are kept. What does not run is recorded with its reason.
"""

from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Literal, assert_never, get_args

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import MAX_DELAY, check_count, check_duration, duration_text, shown

MAX_CATCH_UP: Final = 1000

MisfirePolicy = Literal["latest", "all", "skip"]


class Misfire(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a schedule catches up."""

    policy: MisfirePolicy = "latest"
    most: int = 100
    """How many occurrences one catch-up starts at the most, late ones included."""
    grace: timedelta = timedelta(minutes=15)
    """Up to this lateness an occurrence runs as if nothing had happened."""


class Missed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An occurrence that does not run, and why."""

    fire_at: datetime
    reason: str


class CatchUp(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What to run and what to record as missed, both oldest first; together all that was asked about."""

    run: tuple[datetime, ...] = ()
    missed: tuple[Missed, ...] = ()


def plan_catch_up(missed: Sequence[datetime], policy: Misfire, now: datetime) -> CatchUp:
    """Decide which of the occurrences without a job still run; equal instants count once, future ones as on time.

    Whatever the policy, those that run are the newest of all, so that the answer is one cut through the ordered times.
    """
    times = sorted(set(missed))
    wanted = _first_wanted(times, policy, now)
    first = max(wanted, len(times) - policy.most)
    over_limit = f"more than {policy.most} occurrences to catch up with"
    too_late = _too_late(policy)
    left_out = (
        Missed(fire_at=at, reason=over_limit if index >= wanted else too_late) for index, at in enumerate(times[:first])
    )
    return CatchUp(run=tuple(times[first:]), missed=tuple(left_out))


def check_misfire(misfire: Misfire, field: str = "misfire") -> Misfire:
    """Refuse limits and graces that make no sense."""
    if misfire.policy not in get_args(MisfirePolicy):
        raise Invalid(
            f"{field}.policy", f"must be one of {', '.join(get_args(MisfirePolicy))}, not {shown(misfire.policy)}"
        )
    check_count(f"{field}.most", misfire.most, 1, MAX_CATCH_UP)
    check_duration(f"{field}.grace", misfire.grace, timedelta(0), MAX_DELAY)
    return misfire


def _first_wanted(times: Sequence[datetime], policy: Misfire, now: datetime) -> int:
    """Return the index of the oldest occurrence that the policy would run."""
    first_late = bisect_left(times, now - policy.grace)
    match policy.policy:
        case "skip":
            return first_late
        case "latest":
            return max(min(first_late, len(times) - 1), 0)
        case "all":
            return 0
        case unknown:
            assert_never(unknown)


def _too_late(policy: Misfire) -> str:
    late = f"more than {duration_text(policy.grace)} late"
    return f"{late}, and a later occurrence runs instead" if policy.policy == "latest" else late
