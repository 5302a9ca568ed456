"""How many requests a key may make: a bucket of tokens, in seconds of a clock that never steps."""

import math
from typing import Final

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.bucket import Bucket, Level
from tidewheel.model.checks import shown

MOST_RATE: Final = 1_000_000.0
MOST_BURST: Final = 1_000_000


class Rate(msgspec.Struct, frozen=True):
    """So many requests a second in the long run, and so many at once after a pause."""

    per_second: float
    burst: int

    @property
    def bucket(self) -> Bucket:
        """What it allows."""
        return Bucket(1 / self.per_second, self.burst)


class Allowance(msgspec.Struct, frozen=True):
    """The answer to one request, with what the fields `RateLimit` and `Retry-After` of HTTP say."""

    allowed: bool
    left: Level[float]
    limit: int
    """Requests at once, at most."""
    remaining: int
    """How many more could be made at once now."""
    reset: int
    """Whole seconds until as many as at most could be made at once."""
    retry_after: int
    """Whole seconds until one more is allowed; 0 if this one was."""


def take(level: Level[float] | None, rate: Rate, now: float) -> Allowance:
    """Decide on a request; None is the level of a bucket that nobody has taken from. What is refused takes nothing."""
    bucket = rate.bucket
    before = bucket.full(now) if level is None else bucket.filled(level, now)
    allowed = before.whole() >= 1
    left = before.after(1) if allowed else before
    return Allowance(
        allowed=allowed,
        left=left,
        limit=rate.burst,
        remaining=left.whole(),
        reset=math.ceil(bucket.wait(left, rate.burst)),
        retry_after=0 if allowed else max(1, math.ceil(bucket.wait(before, 1))),
    )


def check_rate(per_second: float | None, burst: int | None) -> None:
    """Refuse rates that allow nothing, or anything."""
    if per_second is not None and not 0 < per_second <= MOST_RATE:
        raise Invalid("rate", f"must be more than 0 and at most {MOST_RATE:g} a second, not {shown(per_second)}")
    if burst is not None and not 1 <= burst <= MOST_BURST:
        raise Invalid("burst", f"must be between 1 and {MOST_BURST}, not {shown(burst)}")


def rate_fields(allowance: Allowance, rate: Rate, policy: str = "key") -> dict[str, str]:
    """Return what the fields of HTTP say about it: `RateLimit`, `RateLimit-Policy`, and `Retry-After` if need be.

    After draft-ietf-httpapi-ratelimit-headers: a quota in a window, here the burst and the time in which it fills.
    """
    window = max(1, math.ceil(rate.burst / rate.per_second))
    fields = {
        "RateLimit-Policy": f'"{policy}";q={rate.burst};w={window}',
        "RateLimit": f'"{policy}";r={allowance.remaining};t={allowance.reset}',
    }
    return fields if allowance.allowed else {**fields, "Retry-After": str(allowance.retry_after)}
