"""What an instant or a duration must look like before a trigger accepts it."""

from datetime import UTC, datetime, timedelta
from typing import Final

from tidewheel.errors import Invalid

# The tz database is honest from 1970 on, and arithmetic near year 9999 overflows: what lies outside is refused.
EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(9000, 1, 1, tzinfo=UTC)

EPOCH: Final = EARLIEST
JUST_BEFORE: Final = timedelta(microseconds=1)
NOTHING: Final = timedelta(0)
LONGEST: Final = timedelta(days=36_525)
"""No duration is longer than a century."""


def aware(field: str, value: object) -> datetime:
    """Return the instant in UTC; a local time without a zone is no instant."""
    if not isinstance(value, datetime):
        raise Invalid(field, "is not a date and time")
    if value.utcoffset() is None:
        raise Invalid(field, "has no time zone; give an offset such as +00:00")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise Invalid(field, "is out of range") from None


def instant(field: str, value: object) -> datetime:
    """Return the instant in UTC, or refuse one that no trigger can reach."""
    utc = aware(field, value)
    if not EARLIEST <= utc <= LATEST:
        raise Invalid(field, f"must lie between the years {EARLIEST.year} and {LATEST.year}")
    return utc


def duration(field: str, value: object, least: timedelta = NOTHING) -> timedelta:
    """Return the duration if it is at least ``least`` and at most a century."""
    if not isinstance(value, timedelta):
        raise Invalid(field, "is not a duration")
    if value < NOTHING:
        raise Invalid(field, "is negative")
    if value < least:
        raise Invalid(field, f"must be at least {least.total_seconds():g} s")
    if value > LONGEST:
        raise Invalid(field, f"must be at most {LONGEST.days} days")
    return value


def count(field: str, value: object, least: int, most: int) -> int:
    """Return the whole number if it lies in the range; ``True`` is no number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise Invalid(field, "is not a whole number")
    if not least <= value <= most:
        raise Invalid(field, f"must lie between {least} and {most}")
    return value
