"""Passes the store's hints on to all requests that wait in this server, over one listener of the store."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from tidewheel.clock import Clock
from tidewheel.errors import TideError
from tidewheel.store.bell import Bell
from tidewheel.store.telling import HintStore

LOOK_EVERY: Final = 60.0
TRY_AGAIN: Final = 1.0

_log = logging.getLogger(__name__)


class Doorbell:
    """Listens to the store from the first one who waits until the server ends."""

    def __init__(self, store: HintStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._bells: set[Bell] = set()
        self._task: asyncio.Task[None] | None = None
        self._heard = asyncio.Event()
        self._healthy = False

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[Bell]:
        """Give a bell of one's own."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="doorbell")
        await self._heard.wait()
        bell = Bell(self._clock)
        bell.healthy = self._healthy
        self._bells.add(bell)
        try:
            yield bell
        finally:
            self._bells.discard(bell)

    def ring(self) -> None:
        """Wake all who wait."""
        for bell in self._bells:
            bell.ring()

    async def close(self) -> None:
        """Wake all who wait, and listen no more."""
        self.ring()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            try:
                async with self._store.listen() as bell:
                    await self._pass_on(bell)
            except TideError as error:
                _log.warning("no hints for now: %s", error)
            self._tell(healthy=False)
            await self._clock.sleep(TRY_AGAIN)

    async def _pass_on(self, bell: Bell) -> None:
        while True:
            self._tell(healthy=bell.healthy)
            await bell.wait(LOOK_EVERY)
            self.ring()

    def _tell(self, *, healthy: bool) -> None:
        self._healthy = healthy
        for bell in self._bells:
            bell.healthy = healthy
        self._heard.set()
