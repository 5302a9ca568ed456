"""Hints over HTTP: one long answer of the server rings the bells of all who listen here."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from tidewheel.clock import Clock
from tidewheel.errors import TideError, Unavailable
from tidewheel.store.bell import Bell
from tidewheel.store.remote.transport import Transport

SILENCE: Final = 40.0
"""Seconds without a word after which the stream counts as lost; a server says something every 15."""
FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0


class Listeners:
    """Listens to the server while anyone listens here."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._bells: set[Bell] = set()
        self._task: asyncio.Task[None] | None = None
        self._tried = asyncio.Event()
        self._healthy = False
        self._closed = False
        self._random = random.Random()  # noqa: S311 - spreads retries, guards nothing

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[Bell]:
        """See `store.telling.HintStore.listen`."""
        if self._closed:
            raise Unavailable("the store was closed")
        bell = Bell(self._clock)
        self._bells.add(bell)
        if self._task is None:
            self._tried.clear()
            self._task = asyncio.create_task(self._stay_connected(), name="hints")
        try:
            await self._tried.wait()
            bell.healthy = self._healthy
            yield bell
        finally:
            self._bells.discard(bell)
            if not self._bells:
                await self._stop()

    async def close(self) -> None:
        """Listen no more."""
        self._closed = True
        await self._stop()
        self._note_health(healthy=False)

    async def _stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _stay_connected(self) -> None:
        pause = FIRST_PAUSE
        while True:
            with contextlib.suppress(TideError):
                async with self._transport.stream("/v1/hints", silence=SILENCE) as answer:
                    pause = FIRST_PAUSE
                    async for line in answer.aiter_lines():
                        self._hear(line)
            self._note_health(healthy=False)
            self._tried.set()
            await self._clock.sleep(pause * self._random.uniform(0.5, 1.0))
            pause = min(2 * pause, LONGEST_PAUSE)

    def _hear(self, line: str) -> None:
        if line == "event: doubt":
            self._note_health(healthy=False)
        elif line == "event: hint":
            self._healthy = True
            for bell in self._bells:
                bell.healthy = True
                bell.ring()
            self._tried.set()

    def _note_health(self, *, healthy: bool) -> None:
        self._healthy = healthy
        for bell in self._bells:
            bell.healthy = healthy
            bell.ring()
