"""The duty that tells: what was noted becomes messages, and messages are sent until they are accepted."""

import asyncio
from typing import Final, Protocol

from tidewheel.model.channel import Parcel
from tidewheel.model.notification import Answer
from tidewheel.store.notifying import OutboxStore

AT_ONCE: Final = 20
"""How many messages are on their way at a time: a slow receiver holds up no more than these."""


class Sends(Protocol):
    """Whatever carries messages."""

    async def send(self, parcel: Parcel) -> Answer:
        """Try once, and say what came of it."""
        ...


class Postman:
    """Interrupted anywhere, the next one goes on: a message that was not closed is sent again."""

    def __init__(self, store: OutboxStore, sender: Sends) -> None:
        self._store = store
        self._sender = sender

    async def run_once(self) -> int:
        """Make messages of what happened and try those that are due; return how much there was."""
        happened = await self._store.spread_happenings()
        parcels = await self._store.take_deliveries(limit=AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for parcel in parcels:
                group.create_task(self._carry(parcel))
        return happened + len(parcels)

    async def _carry(self, parcel: Parcel) -> None:
        answer = await self._sender.send(parcel)
        await self._store.close_delivery(parcel, answer)
