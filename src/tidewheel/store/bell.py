"""The bell that a store rings when it may be worth while to look again; a hint, never a promise."""

import asyncio
from datetime import timedelta
from typing import Final

from tidewheel.clock import Clock

SOON: Final = timedelta(seconds=2)
"""A healthy bell rings for what becomes due within this time; for the rest its owner must look, this often at least."""


class Bell:
    """Belongs to one listener, who waits on it; a ring that nobody waits for is kept until the next wait."""

    def __init__(self, clock: Clock) -> None:
        self.healthy = True
        """Whether rings can be relied on; while not, its owner should look more often by itself."""
        self._clock = clock
        self._rung = False
        self._sleep: asyncio.Task[None] | None = None

    def ring(self) -> None:
        """Wake whoever waits, now or next. To be called in the loop of the listener."""
        self._rung = True
        if self._sleep is not None:
            self._sleep.cancel()

    async def wait(self, seconds: float) -> bool:
        """Return True once the bell was rung since the last wait, or False when the time has passed."""
        if not self._rung:
            self._sleep = asyncio.ensure_future(self._clock.sleep(seconds))
            try:
                await asyncio.wait([self._sleep])
            finally:
                self._sleep.cancel()
                self._sleep = None
        rung, self._rung = self._rung, False
        return rung
