"""Time zones by IANA name, and the instants at which their UTC offset changes."""

import re
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from tidewheel.errors import Invalid
from tidewheel.triggers.bounds import aware

LONGEST_NAME: Final = 64
NAME: Final = re.compile(r"[A-Za-z0-9_+\-]+(?:/[A-Za-z0-9_+\-]+)*")

# These depend on the machine (localtime), or count leap seconds (right/), or are copies (posix/).
NOT_PORTABLE: Final = re.compile(r"localtime|posixrules|(?:posix|right)/.*")

SIGHT: Final = timedelta(days=4)
"""The longest stretch that `first_change` is asked about.

Two offset changes of one zone are never closer than 6.9 days (a test reads the tz database to hold this), hence within
SIGHT it is enough to compare the two ends.
"""

SECOND: Final = timedelta(seconds=1)


class OffsetChange(msgspec.Struct, frozen=True):
    """One change of a zone's UTC offset."""

    at: datetime
    """The first instant of the new offset, in UTC."""
    before: timedelta
    after: timedelta

    @property
    def size(self) -> timedelta:
        """Above zero wall time is skipped, below zero it is repeated."""
        return self.after - self.before

    @property
    def wall_before(self) -> datetime:
        """What clocks show when the change comes, had they not been set."""
        return self.at.replace(tzinfo=None) + self.before

    @property
    def wall_after(self) -> datetime:
        """What clocks show once they have been set."""
        return self.at.replace(tzinfo=None) + self.after


@lru_cache(maxsize=1024)
def zone_named(name: str) -> ZoneInfo:
    """Return the zone, or refuse the name."""
    if len(name) > LONGEST_NAME:
        raise Invalid("zone", f"is longer than {LONGEST_NAME} characters")
    if not NAME.fullmatch(name):
        raise Invalid("zone", f"{name!r} is no IANA time zone name such as Europe/Berlin")
    if NOT_PORTABLE.fullmatch(name):
        raise Invalid("zone", f"{name!r} does not mean the same on every machine")
    try:
        return ZoneInfo(name)
    # Besides its own KeyError, zoneinfo lets the errors of the file system through: "Europe" is a directory.
    except (KeyError, ValueError, OSError):
        raise Invalid("zone", f"unknown time zone {name!r}") from None


def offset_at(zone: ZoneInfo, instant: datetime) -> timedelta:
    """Return how far the zone's clocks are ahead of UTC."""
    return instant.astimezone(zone).utcoffset() or timedelta(0)


def wall_at(zone: ZoneInfo, instant: datetime) -> datetime:
    """Return what the zone's clocks show, as a naive datetime."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def first_change(zone: ZoneInfo, after: datetime, until: datetime) -> OffsetChange | None:
    """Return the change in (after, until], of which SIGHT allows at most one."""
    before, later = offset_at(zone, after), offset_at(zone, until)
    if before == later:
        return None
    # Offsets change on whole seconds, so that bisecting on them finds the very instant.
    low = after.replace(microsecond=0)
    high = low + SECOND * -((low - until) // SECOND)
    while high - low > SECOND:
        middle = low + (high - low) // SECOND // 2 * SECOND
        if offset_at(zone, middle) == before:
            low = middle
        else:
            high = middle
    return OffsetChange(at=high, before=before, after=later)


def change_on_day_of(zone: ZoneInfo, instant: datetime) -> OffsetChange | None:
    """Return the change by which the zone's calendar day around an instant is longer or shorter than others.

    A day reaches from its first midnight to that of the next day. A change at midnight itself is of the day whose wall
    time is skipped: of the one that ends where its last minutes are, and of the one that begins else, even if what is
    skipped is a whole day before it.
    """
    day = wall_at(zone, instant).date()
    begins, ends = (
        datetime.combine(date, time(), tzinfo=zone).astimezone(UTC) for date in (day, day + timedelta(days=1))
    )
    change = first_change(zone, begins - SECOND, ends)
    if change is None or begins < change.at < ends:
        return change
    skipped_from = change.wall_before
    loser = change.wall_after.date() if skipped_from.time() == time() else skipped_from.date()
    return change if loser == day else None


def falls_on_change_day(zone: str, instant: datetime) -> bool:
    """Tell whether clocks are set on the zone's calendar day around the instant: previews mark such days."""
    return change_on_day_of(zone_named(zone), aware("instant", instant)) is not None
