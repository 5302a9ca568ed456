"""Guests: those who take a stream or wait stay for long, and are let go once they would not be let in any more."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from tidewheel.clock import Clock
from tidewheel.errors import TideError
from tidewheel.model.session import SessionToken
from tidewheel.server.access import Door

LOOK_EVERY: Final = 0.4
"""Seconds between two looks at the keys of guests: with the time for which one is remembered, revoking one is felt
within a second."""


class Ticket(NamedTuple):
    """What someone came in with."""

    key: str | SessionToken | None = None
    address: str = ""


NO_TICKET: Final = Ticket()


class Guests:
    """Looks at each key once, however many streams it has."""

    def __init__(self, door: Door, clock: Clock) -> None:
        self._door = door
        self._clock = clock
        self._leave: dict[Ticket, list[Callable[[], object]]] = {}
        self._looking: asyncio.Task[None] | None = None

    @contextmanager
    def staying(self, ticket: Ticket, leave: Callable[[], object]) -> Iterator[None]:
        """Have `leave` called if a guest must go meanwhile."""
        self._leave.setdefault(ticket, []).append(leave)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            yield
        finally:
            self._leave[ticket].remove(leave)
            if not self._leave[ticket]:
                del self._leave[ticket]

    async def _look(self) -> None:
        """Look until the last one has gone."""
        while self._leave:
            await self._clock.sleep(LOOK_EVERY)
            for ticket in list(self._leave):
                try:
                    await self._door.recheck(ticket.key, ticket.address)
                except TideError:
                    for leave in list(self._leave.get(ticket, ())):
                        leave()
