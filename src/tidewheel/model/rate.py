"""Rates: a bucket of tokens for each key, from which every start takes one; pure. Instants are microseconds."""

import re
from math import ceil
from typing import Final

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.bucket import Bucket, Level
from tidewheel.model.checks import shown

PERIODS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
MOST_PER_SECOND: Final = 1_000_000
MOST_BURST: Final = 1_000_000
SLACK: Final = 5_000_000
"""A bucket may have been filled this much later than now: whoever waited for its lock learned the time before that. If
it was filled later still, the clock was set back, and filling begins anew from now."""

_pace = re.compile(r"\s*(\d{1,9})\s*/\s*([a-z]+)\s*").fullmatch


class Pace(msgspec.Struct, frozen=True):
    """So many starts in so many seconds, and at most `burst` at once after a pause."""

    starts: int
    seconds: int
    burst: int

    def __str__(self) -> str:
        unit = next((name for name, seconds in PERIODS.items() if seconds == self.seconds), f"{self.seconds}s")
        return f"{self.starts}/{unit}"

    @property
    def bucket(self) -> Bucket:
        """What it lets start."""
        return Bucket(self.seconds * 1e6 / self.starts, self.burst, SLACK)


def parse_pace(text: object, burst: object = None, field: str = "rate") -> Pace:
    """Read a pace such as `10/s`, `100/m` or `5/h`; without a burst that of one second, but at least one."""
    found = _pace(text) if isinstance(text, str) else None
    if found is None or found[2] not in PERIODS:
        raise Invalid(field, f"must be a number of starts per s, m, h or d, such as 10/s or 100/m, not {shown(text)}")
    starts, seconds = int(found[1]), PERIODS[found[2]]
    given = max(1, -(-starts // seconds)) if burst is None else burst
    if type(given) is not int:
        raise Invalid("burst", f"must be a whole number, not {shown(given)}")
    return check_pace(Pace(starts, seconds, given), field)


def pace_of(text: object, burst: object = None) -> Pace | None:
    """Read a pace where there may be none; a burst alone means nothing."""
    if text is not None:
        return parse_pace(text, burst)
    if burst is not None:
        raise Invalid("burst", "belongs to a rate")
    return None


def check_pace(pace: Pace, field: str = "rate") -> Pace:
    """Refuse paces that would stop everything for ever, or none."""
    if pace.starts < 1:
        raise Invalid(field, f"must allow at least 1 start, not {pace.starts}; close a gate to stop a kind")
    if pace.seconds not in PERIODS.values():
        raise Invalid(field, f"must be per second, minute, hour or day, not per {pace.seconds} seconds")
    if pace.starts > MOST_PER_SECOND * pace.seconds:
        raise Invalid(field, f"must be at most {MOST_PER_SECOND} a second, not {pace}")
    if not 1 <= pace.burst <= MOST_BURST:
        raise Invalid("burst", f"must be between 1 and {MOST_BURST}, not {pace.burst}")
    return pace


def next_token(level: Level[int], pace: Pace) -> int:
    """Return when there will be one more whole token, or would be, if the bucket is full."""
    bucket = pace.bucket
    wait = min(bucket.interval, bucket.wait(level, level.whole() + 1))
    # Not a moment too early: whoever looks then must find it.
    return level.at + max(1, ceil(wait))
