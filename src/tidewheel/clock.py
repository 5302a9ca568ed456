"""Time is something one is handed; this is the only module that reads it from the machine.

The store's clock decides what is due and what has expired. A process's own clock is for sleeping, for measuring how
long something took, and for counting its own lease.
"""

import asyncio
import time
from datetime import UTC, datetime
from typing import Final, Protocol


class Clock(Protocol):
    """What a part needs to know of time."""

    def now(self) -> datetime:
        """Return the wall clock, aware and in UTC. It may step in either direction."""

    def time(self) -> float:
        """Return the wall clock in seconds since the epoch, for what is done very often."""

    def monotonic(self) -> float:
        """Return seconds from some fixed moment. Never steps back, and counts the time a machine was suspended."""

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds, or after one turn of the loop if they are not positive."""


# CLOCK_MONOTONIC stands still while a machine is suspended, and a lease does not.
_BOOTTIME: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", None)


class SystemClock:
    """The machine's time."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    time = staticmethod(time.time)

    def monotonic(self) -> float:
        return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
