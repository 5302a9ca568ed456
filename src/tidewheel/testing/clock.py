"""A clock that moves only when it is told to."""

import asyncio
import heapq
from datetime import UTC, datetime, timedelta
from typing import Final

_TURNS: Final = 100
"""How many turns of the loop the woken tasks get at most before time moves on."""


class FakeClock:
    """Implements ``Clock``. A week of sleeps passes in milliseconds, in the same order each time.

    ``advance`` stops at every deadline on its way, lets what wakes there run until it sleeps or waits again, and only
    then moves on; so a loop that sleeps for a minute turns sixty times in an hour.
    """

    def __init__(self, start: datetime = datetime(2030, 1, 1, tzinfo=UTC)) -> None:
        if start.tzinfo is None:
            raise ValueError("start must be aware")
        self._epoch = start.astimezone(UTC)
        self._elapsed = timedelta()
        self._sleepers: list[tuple[timedelta, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> datetime:
        return self._epoch + self._elapsed

    def time(self) -> float:
        return self.now().timestamp()

    def monotonic(self) -> float:
        return self._elapsed.total_seconds()

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop, not a span of time
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1  # equal deadlines wake in the order in which they went to sleep
        heapq.heappush(self._sleepers, (self._elapsed + timedelta(seconds=seconds), self._count, woken))
        await woken

    @property
    def sleepers(self) -> int:
        """How many tasks sleep on this clock."""
        return sum(not woken.done() for _, _, woken in self._sleepers)

    async def advance(self, by: timedelta) -> None:
        """Let time pass, waking sleepers in the order of their deadlines."""
        if by < timedelta():
            raise ValueError("time does not run backwards; step() moves the wall clock")
        until = self._elapsed + by
        await _settle()  # tasks just created get to their first sleep
        while self._sleepers and self._sleepers[0][0] <= until:
            deadline, _, woken = heapq.heappop(self._sleepers)
            if woken.done():  # its task was cancelled
                continue
            self._elapsed = deadline
            woken.set_result(None)
            await _settle()
        self._elapsed = until

    async def set(self, instant: datetime) -> None:
        """Let time pass until that instant."""
        await self.advance(instant - self.now())

    def step(self, by: timedelta) -> None:
        """Move the wall clock alone, in either direction, as an operator or a time daemon does; nobody wakes."""
        self._epoch += by


async def _settle() -> None:
    """Give the other tasks turns until none can run.

    The loop's own queue tells when that is; a loop that does not show its queue gets all the turns.
    """
    queue = getattr(asyncio.get_running_loop(), "_ready", None)
    for _ in range(_TURNS):
        await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop, not a span of time
        if queue is not None and not queue:
            return
