"""Buckets of requests, one for each who asks, in the memory of one process."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

import msgspec

from tidewheel.clock import Clock
from tidewheel.model.request_rate import Allowance, Bucket, Rate, take

MOST_REMEMBERED: Final = 10_000


class Throttle:
    """Remembers who took how much; of too many the one who asked longest ago is forgotten.

    Each process counts for itself: behind several servers a rate is that many times higher at most.
    """

    def __init__(self, clock: Clock, *, most: int = MOST_REMEMBERED) -> None:
        self._clock = clock
        self._most = most
        self._buckets: OrderedDict[Hashable, Bucket] = OrderedDict()

    def take(self, who: Hashable, rate: Rate, cost: int = 1) -> Allowance:
        """Decide on a request of someone."""
        answer = take(self._buckets.get(who), rate, self._clock.monotonic(), cost)
        self._buckets[who] = answer.bucket
        self._buckets.move_to_end(who)
        while len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return answer

    def give_back(self, who: Hashable, cost: int = 1) -> None:
        """Return what was taken for something that does not count after all."""
        if bucket := self._buckets.get(who):
            self._buckets[who] = msgspec.structs.replace(bucket, tokens=bucket.tokens + cost)
