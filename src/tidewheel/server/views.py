"""Looking at what is there, where it costs the primary nothing: at a replica, as long as that is there and keeps up.

Only what is shown to someone is read there; whoever is about to change something reads that from the primary. What a
replica does not have may be new, so the primary is asked for it. And if the primary cannot be reached, a replica that
lags is better than nothing.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar

from tidewheel.clock import Clock
from tidewheel.errors import NotFound, TideError, Unavailable
from tidewheel.store.base import Store
from tidewheel.store.replica import ReplicaStore

MOST_LAG: Final = 2.0
"""Seconds that a replica may be behind."""
LOOK_EVERY: Final = 1.0
OPEN_EVERY: Final = 5.0
ANSWER_WITHIN: Final = 2.0
T = TypeVar("T")
_log = logging.getLogger(__name__)


class Views:
    """Where to look."""

    def __init__(
        self, primary: Store, clock: Clock, open_replica: Callable[[], Awaitable[ReplicaStore]] | None = None
    ) -> None:
        self._primary = primary
        self._clock = clock
        self._open = open_replica
        self._replica: ReplicaStore | None = None
        self._keeps_up = False
        self._watching: asyncio.Task[None] | None = None

    @property
    def keeps_up(self) -> bool:
        """Whether the replica is asked."""
        return self._keeps_up

    def start(self) -> None:
        """Watch the replica from now on, if there is one."""
        if self._open is not None:
            self._watching = asyncio.create_task(self._watch(self._open))

    async def close(self) -> None:
        """Watch no more."""
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching
        if self._replica is not None:
            with suppress(TideError):
                await self._replica.close()

    async def ask(self, question: Callable[[Store], Awaitable[T]]) -> T:
        """Return an answer of the replica, or else of the primary."""
        if self._keeps_up and self._replica is not None:
            try:
                async with asyncio.timeout(ANSWER_WITHIN):
                    return await question(self._replica)
            except NotFound:
                pass
            except (TimeoutError, Unavailable):
                self._keeps_up = False
        try:
            return await question(self._primary)
        except Unavailable as error:
            if self._replica is None:
                raise
            return await self._last_resort(question, error)

    async def _last_resort(self, question: Callable[[Store], Awaitable[T]], error: Unavailable) -> T:
        assert self._replica is not None
        try:
            async with asyncio.timeout(ANSWER_WITHIN):
                return await question(self._replica)
        except (TimeoutError, Unavailable):
            raise error from None

    async def _watch(self, open_replica: Callable[[], Awaitable[ReplicaStore]]) -> None:
        while True:
            try:
                if self._replica is None:
                    self._replica = await open_replica()
                async with asyncio.timeout(ANSWER_WITHIN):
                    keeps_up = await self._replica.lag() <= MOST_LAG
            except (TimeoutError, TideError) as error:
                keeps_up = False
                _log.debug("the replica does not answer: %s", error)
            if keeps_up != self._keeps_up:
                _log.info("lists are read from %s", "the replica" if keeps_up else "the primary")
            self._keeps_up = keeps_up
            await self._clock.sleep(OPEN_EVERY if self._replica is None else LOOK_EVERY)
