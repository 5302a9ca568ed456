"""How long to wait before trying again what the store could not answer."""

import random
from typing import Final

from tidewheel.clock import Clock

_spread: Final = random.Random()  # noqa: S311 - spreads retries, guards nothing


class Patience:
    """Pauses that double from one failure to the next, each shortened by chance so that not all come back at once."""

    def __init__(self, clock: Clock, *, first: float, longest: float) -> None:
        self._clock = clock
        self._first = self._next = first
        self._longest = longest

    async def pause(self) -> None:
        """Wait, longer each time."""
        seconds, self._next = self._next, min(2 * self._next, self._longest)
        await self._clock.sleep(seconds * _spread.uniform(0.5, 1.0))

    def renew(self) -> None:
        """Begin anew with the first pause: it went well."""
        self._next = self._first
