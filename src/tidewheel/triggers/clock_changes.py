"""Lays a cron pattern over the real time line, by Debian's rule for changed clocks.

A zone's time line consists of stretches of constant UTC offset. Within a stretch the n-th match on the wall clock is
the n-th instant, and nothing special happens. Between two stretches:

====================  ==========================================  ======================================
the clocks are set    fixed pattern (no ``*`` first)              wildcard pattern
====================  ==========================================  ======================================
forward, under 3 h    what was skipped fires once, at the change  what was skipped does not fire
back, under 3 h       what is repeated does not fire again        what is repeated fires again
3 h or more           as a wildcard: the new wall time counts     as always: the wall time counts
====================  ==========================================  ======================================

So the steady beat of a wildcard such as ``*/10 * * * *`` is kept in elapsed time, and a daily job runs once a day.

cronsim means to follow the same rule, but cannot be trusted with zones. Asked from inside a repeated hour it returns an
instant of the past. It searches by hours from a rewound minute: it loses matches where clocks change by half an hour
(Australia/Lord_Howe), fires in a skipped midnight (America/Havana), and does not return at all where they changed at
half past (``*/10 3`` in Asia/Hong_Kong, October 1976). And it knows no limit of three hours: the jobs of a day that
never was (30 December 2011 in Pacific/Apia) fire on the next. Hence it is asked about wall clocks only.
"""

from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from tidewheel.triggers.bounds import JUST_BEFORE, NOTHING
from tidewheel.triggers.pattern import Pattern
from tidewheel.triggers.zones import SIGHT, OffsetChange, first_change, offset_at, wall_at

CORRECTION: Final = timedelta(hours=3)
"""From here on a change is no daylight saving but a correction of the zone."""

FAR: Final = SIGHT / 2
"""Wall clocks of one zone never differ by more than this, whatever the season: real offsets span 27 hours."""

PATIENCE_IN_YEARS: Final = 50
"""The rarest day, a 29 February on a given weekday, returns within 40 years."""


class Place(msgspec.Struct, frozen=True):
    """Where on the time line the search stands: matches after ``wall`` are still to come."""

    instant: datetime
    wall: datetime
    offset: timedelta


def next_match(pattern: Pattern, zone: ZoneInfo, after: datetime) -> datetime | None:
    """Return the first instant strictly after ``after`` at which the pattern fires, None if there is none in sight.

    A wildcard that lies wholly in a gap, such as ``*/5 2 * 3 SUN#2`` in New York, is what the patience is for.
    """
    place = _standing_at(pattern, zone, after)
    while True:
        wall = pattern.next_wall(place.wall)
        if wall is None or wall.year > after.year + PATIENCE_IN_YEARS:
            return None
        due = (wall - place.offset).replace(tzinfo=after.tzinfo)
        near = due - place.instant <= SIGHT
        change = first_change(zone, place.instant, due if near else place.instant + FAR)
        if change is not None and _fires_at(change, pattern, wall):
            return change.at
        if change is None and near:
            return due
        place = _closer_to(due, zone) if change is None else _past(change, pattern)


def _standing_at(pattern: Pattern, zone: ZoneInfo, after: datetime) -> Place:
    wall = wall_at(zone, after)
    if pattern.fixed:
        # Within a repeated hour all that it holds has fired the first time.
        change = first_change(zone, after - CORRECTION, after)
        if change is not None and _repeats(change):
            wall = max(wall, change.wall_before - JUST_BEFORE)
    return Place(instant=after, wall=wall, offset=offset_at(zone, after))


def _closer_to(due: datetime, zone: ZoneInfo) -> Place:
    """Leap over changes that cannot matter, as there is no match near them."""
    instant = due - FAR
    return Place(instant=instant, wall=wall_at(zone, instant), offset=offset_at(zone, instant))


def _past(change: OffsetChange, pattern: Pattern) -> Place:
    wall = change.wall_before if pattern.fixed and _repeats(change) else change.wall_after
    return Place(instant=change.at, wall=wall - JUST_BEFORE, offset=change.after)


def _fires_at(change: OffsetChange, pattern: Pattern, wall: datetime) -> bool:
    """Tell whether the change skipped the wall time of a fixed pattern."""
    return pattern.fixed and NOTHING < change.size < CORRECTION and change.wall_before <= wall < change.wall_after


def _repeats(change: OffsetChange) -> bool:
    return -CORRECTION < change.size < NOTHING
