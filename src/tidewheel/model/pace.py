"""Pace: letting jobs through one after the other, no faster than a rate.

A pace is remembered as one instant, `ready`: then its bucket holds one token, and the next one may pass. Whoever passes
moves it on by one interval. The bucket is small, so that a pause is not followed by a flood.
"""

from collections.abc import Hashable, Mapping
from math import floor, isfinite
from typing import Final, NamedTuple, TypeVar

from tidewheel.errors import Invalid
from tidewheel.model.bucket import Bucket, Level
from tidewheel.model.checks import shown

LEAST_RATE: Final = 1 / 86_400
MOST_RATE: Final = 100_000.0
SAVED: Final = 0.1
"""Seconds of the rate that are saved up, and one in any case."""
LOOK_AGAIN: Final = 0.02
"""Seconds between two looks for those who wait at a high rate, so that they take several at a time."""
STEP: Final = 1.0
"""An instant further ahead than one interval and these seconds was set by a clock that has since been set back."""
_ALMOST: Final = 2e-6
"""Instants are stored in microseconds, and what is computed with them is about as exact."""

Item = TypeVar("Item", bound=Hashable)
Name = TypeVar("Name", bound=Hashable)


class GatePace(NamedTuple):
    """A rate in seconds, and the instant from which on the next one may pass, in seconds too."""

    rate: float
    ready: float

    @property
    def bucket(self) -> Bucket:
        """What it lets pass."""
        return Bucket(1 / self.rate, max(1.0, floor(self.rate * SAVED)))

    def level(self, now: float) -> Level[float]:
        """Return how many may pass now; it owes some if the next one may pass later only."""
        bucket, ahead = self.bucket, self.ready - now
        if ahead > bucket.interval + STEP:
            return Level(1.0, now)
        return Level(1.0 - ahead / bucket.interval, now) if ahead > 0 else bucket.filled(Level(1.0, self.ready), now)


def check_rate(field: str, rate: object) -> None:
    """Refuse rates at which nothing would pass, or everything."""
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not isfinite(rate):
        raise Invalid(field, f"must be a number of jobs a second, not {shown(rate)}")
    if rate <= 0:
        raise Invalid(field, f"must be more than 0 a second, not {rate:g}; close a gate that holds to stop all")
    if not LEAST_RATE <= rate <= MOST_RATE:
        raise Invalid(field, f"must be between one a day and {MOST_RATE:,.0f} a second, not {rate:g} a second")


def room(pace: GatePace, now: float) -> int:
    """Return how many may pass now."""
    return pace.level(now).whole(_ALMOST * pace.rate)


def passed(pace: GatePace, count: int, now: float) -> GatePace:
    """Return the pace after so many have passed now."""
    left = pace.level(now).after(count)
    return GatePace(pace.rate, now + pace.bucket.wait(left, 1))


def look_at(pace: GatePace, now: float) -> float:
    """Return when it is worth looking again for those who did not pass."""
    bucket = pace.bucket
    worth = max(1.0, min(bucket.burst, pace.rate * LOOK_AGAIN))
    return now + bucket.wait(pace.level(now), worth)


def fit(
    wanted: Mapping[Item, int], paces_of: Mapping[Item, tuple[Name, ...]], rooms: Mapping[Name, int]
) -> dict[Item, int]:
    """Return how many of each may pass, the first first; each needs room under all of its paces that there are."""
    left = dict(rooms)
    fitting: dict[Item, int] = {}
    for item, number in wanted.items():
        own = [name for name in paces_of[item] if name in left]
        count = min([number, *(left[name] for name in own)])
        if count > 0:
            fitting[item] = count
            for name in own:
                left[name] -= count
    return fitting
