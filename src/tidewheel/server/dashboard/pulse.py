"""The pulse: how fast jobs end now, from the differences between what the counters said a moment ago and say now.

Each process keeps a minute of it for each tenant that someone looks at.
"""

from collections import OrderedDict, deque
from typing import Final, NamedTuple

from tidewheel.clock import Clock

LEAST_APART: Final = 0.5
SPAN: Final = 10.0
"""Seconds over which a rate is taken."""
MOST_KEPT: Final = 120
MOST_TENANTS: Final = 200


class Sample(NamedTuple):
    """What the counters said at a moment of the clock that never steps."""

    at: float
    ended: int
    failed: int


class Rates(NamedTuple):
    """Jobs a second; None before there are two samples."""

    ended: float | None
    failed: float | None


class Pulse:
    """Remembers samples by tenant."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._samples: OrderedDict[str, deque[Sample]] = OrderedDict()

    def feel(self, tenant: str, ended: int, failed: int) -> Rates:
        """Take a sample of how many jobs have ended, and how many of them without success, and return the rates."""
        now = self._clock.monotonic()
        kept = self._samples.setdefault(tenant, deque(maxlen=MOST_KEPT))
        self._samples.move_to_end(tenant)
        while len(self._samples) > MOST_TENANTS:
            self._samples.popitem(last=False)
        if not kept or now - kept[-1].at >= LEAST_APART:
            kept.append(Sample(now, ended, failed))
        return _rates(kept, now)


def _rates(kept: "deque[Sample]", now: float) -> Rates:
    recent = [sample for sample in kept if now - sample.at <= SPAN]
    if len(recent) < 2:  # noqa: PLR2004 - a difference is of two
        return Rates(None, None)
    first, last = recent[0], recent[-1]
    seconds = last.at - first.at
    # Old jobs are removed meanwhile, so that counters may also fall.
    return Rates(max(0, last.ended - first.ended) / seconds, max(0, last.failed - first.failed) / seconds)
