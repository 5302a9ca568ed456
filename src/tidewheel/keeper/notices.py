"""The duty that tells: what was noted becomes messages, and messages are sent until they are accepted.

Nobody waits for the slowest receiver. A channel has few messages under way at a time, and so has whoever it belongs to;
what one of them cannot use is for the others. Those that take long stay under way while the duty looks for more.
"""

import asyncio
from typing import Final, Protocol
from uuid import UUID

from tidewheel.clock import Clock
from tidewheel.model.channel import Parcel
from tidewheel.model.notification import Answer
from tidewheel.store.notifying import OutboxStore, Shares

SHARES: Final = Shares(channel=4, owner=16, all=64)
GLANCE: Final = 1.0
"""Seconds after which those under way are left alone, to look whether there is something else."""
MOST_TURNS: Final = 1000
"""How many ends are waited for before others may look whether the duty is still ours."""


class Sends(Protocol):
    """Whatever carries messages."""

    async def send(self, parcel: Parcel) -> Answer:
        """Try once, and say what came of it."""
        ...


class Postman:
    """Interrupted anywhere, the next one goes on: a message that was not closed is sent again."""

    def __init__(self, store: OutboxStore, sender: Sends, clock: Clock) -> None:
        self._store = store
        self._sender = sender
        self._clock = clock
        self._under_way: dict[asyncio.Task[None], UUID] = {}

    async def run_once(self) -> int:
        """Make messages of what happened and try those that are due; return how much there was.

        It returns when all is done, or when nothing has moved for a moment; what is then still under way goes on.
        """
        done = 0
        for _ in range(MOST_TURNS):
            begun = await self._begin()
            done += begun
            if not await self._has_ended() and not begun:
                break
        return done

    async def stop(self, patience: float = 0.0) -> None:
        """Wait so many seconds for what is under way, and let go of the rest: it is sent again by the next one."""
        if self._under_way:
            _, late = await asyncio.wait(self._under_way, timeout=patience)
            for task in late:
                task.cancel()
            await asyncio.gather(*self._under_way, return_exceptions=True)
            self._under_way.clear()

    async def _begin(self) -> int:
        happened = await self._store.spread_happenings()
        parcels = await self._store.take_deliveries(SHARES, under_way=list(self._under_way.values()))
        for parcel in parcels:
            self._under_way[asyncio.create_task(self._carry(parcel))] = parcel.channel_id
        return happened + len(parcels)

    async def _has_ended(self) -> bool:
        """Wait until something under way has come to its end; False if nothing does for a moment."""
        if not self._under_way:
            return False
        glance = asyncio.ensure_future(self._clock.sleep(GLANCE))
        try:
            await asyncio.wait((glance, *self._under_way), return_when=asyncio.FIRST_COMPLETED)
        finally:
            glance.cancel()
        ended = [task for task in self._under_way if task.done()]
        for task in ended:
            del self._under_way[task]
        for task in ended:
            task.result()
        return bool(ended)

    async def _carry(self, parcel: Parcel) -> None:
        answer = await self._sender.send(parcel)
        await self._store.close_delivery(parcel, answer)
