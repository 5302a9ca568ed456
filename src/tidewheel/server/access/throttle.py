"""Buckets of requests, one for each who asks, in the memory of one process."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

from tidewheel.clock import Clock
from tidewheel.model.bucket import Level
from tidewheel.model.request_rate import Allowance, Rate, take

MOST_REMEMBERED: Final = 10_000


class Throttle:
    """Remembers who took how much; of too many the one who asked longest ago is forgotten.

    Each process counts for itself: behind several servers a rate is that many times higher at most.
    """

    def __init__(self, clock: Clock, *, most: int = MOST_REMEMBERED) -> None:
        self._clock = clock
        self._most = most
        self._levels: OrderedDict[Hashable, Level[float]] = OrderedDict()

    def take(self, who: Hashable, rate: Rate) -> Allowance:
        """Decide on a request of someone."""
        answer = take(self._levels.get(who), rate, self._clock.monotonic())
        self._levels[who] = answer.left
        self._levels.move_to_end(who)
        while len(self._levels) > self._most:
            self._levels.popitem(last=False)
        return answer

    def give_back(self, who: Hashable) -> None:
        """Return what was taken for something that does not count after all."""
        if level := self._levels.get(who):
            self._levels[who] = level.after(-1)
