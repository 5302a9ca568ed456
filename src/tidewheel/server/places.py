"""Places: how many may do at once what takes long or much, and that no one who asks takes all of them."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from tidewheel.server.problems import RETRY_AFTER, Refused

TAKEN_WITHIN: Final = 5.0
"""Seconds for which a request waits for a place; then it is told to come again."""
_KEPT: Final = 4
"""One in so many places is kept for those who have none."""


class Places:
    """A number of places, each taken in the name of someone: a tenant."""

    def __init__(self, what: str, most: int) -> None:
        self._what = what
        self._most = most
        self._taken: Counter[str] = Counter()
        self._freed = asyncio.Event()

    async def take(self, who: str) -> None:
        """Take a place, once there is one. Raises Refused if there is none for some time."""
        try:
            async with asyncio.timeout(TAKEN_WITHIN):
                while not self._room_for(who):
                    self._freed.clear()
                    await self._freed.wait()
        except TimeoutError:
            again = [("retry-after", str(RETRY_AFTER))]
            raise Refused("overloaded", f"too many {self._what} at once", headers=again) from None
        self._taken[who] += 1

    def leave(self, who: str) -> None:
        """Give a place back."""
        self._taken[who] -= 1
        self._taken += Counter()  # forgets those who have none
        self._freed.set()

    @asynccontextmanager
    async def taken(self, who: str) -> AsyncIterator[None]:
        """Have a place meanwhile."""
        await self.take(who)
        try:
            yield
        finally:
            self.leave(who)

    def _room_for(self, who: str) -> bool:
        kept = self._most // _KEPT if self._taken[who] else 0
        return self._taken.total() < self._most - kept
