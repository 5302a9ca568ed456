"""A bucket of tokens: it fills at a steady pace up to what it holds, and whoever starts takes from it; pure.

So in any stretch of time there are at most `burst` starts more than the pace allows for it. Rates of keys, slow gates
and the requests of a client are all counted by it. Instants and intervals are in one unit, whichever that is.
"""

from math import floor
from typing import Final, Generic, NamedTuple, TypeVar

Instant = TypeVar("Instant", bound=float)

ALMOST: Final = 1e-6
"""What adding up fractions may lose of a token."""


class Level(NamedTuple, Generic[Instant]):
    """How many tokens a bucket held at an instant; below none it owes some."""

    tokens: float
    at: Instant

    def whole(self, almost: float = ALMOST) -> int:
        """Return how many starts it is good for."""
        return max(0, floor(self.tokens + almost))

    def after(self, taken: int) -> "Level[Instant]":
        """Return it after some were taken."""
        return Level(self.tokens - taken, self.at)


class Bucket(NamedTuple):
    """How fast it fills, and what it holds at most."""

    interval: float
    """The time in which one token comes."""
    burst: float
    slack: float = 0.0
    """How much later than now it may have been filled by someone who knows the time no worse. Beyond that the clock was
    set back, and filling begins anew from now."""

    def full(self, now: Instant) -> Level[Instant]:
        """Return the level of one that nobody has taken from."""
        return Level(float(self.burst), now)

    def filled(self, level: Level[Instant], now: Instant) -> Level[Instant]:
        """Return a level as it is now. A clock that stands still or steps back adds nothing."""
        if now >= level.at:
            return Level(min(float(self.burst), level.tokens + (now - level.at) / self.interval), now)
        return Level(min(float(self.burst), level.tokens), now if now < level.at - self.slack else level.at)

    def wait(self, level: Level[Instant], tokens: float) -> float:
        """Return how long it takes from the instant of a level until it would be at so many tokens."""
        return (tokens - level.tokens) * self.interval
