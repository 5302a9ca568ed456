"""Room for jobs that come otherwise than by a submit: those of a schedule, and those that are sent round again."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tidewheel.errors import OutcomeUnknown, TideError
from tidewheel.server.access import Quotas


class Room:
    """How much of the room of a tenant is taken."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        """How many there is room for."""
        self.used = 0
        """How many came, as whoever took it says in the end."""


@asynccontextmanager
async def room_for(quotas: Quotas, tenant: str, jobs: int, *, size: int = 0) -> AsyncIterator[Room]:
    """Have room for so many jobs of a tenant, each with arguments of that size. Raises TooMany and Invalid."""
    await quotas.check(tenant, [size] * jobs)
    async with _giving_back(quotas, tenant, Room(jobs)) as room:
        yield room


@asynccontextmanager
async def room_up_to(quotas: Quotas, tenant: str | None, jobs: int) -> AsyncIterator[Room]:
    """Have room for as many jobs of a tenant as there is, up to so many; who acts for all tenants is not held back.

    Raises TooMany if there is none.
    """
    if tenant is None:
        yield Room(jobs)
        return
    async with _giving_back(quotas, tenant, Room(await quotas.take_up_to(tenant, jobs))) as room:
        yield room


@asynccontextmanager
async def _giving_back(quotas: Quotas, tenant: str, room: Room) -> AsyncIterator[Room]:
    """Return what is not used. Whoever does not know what became of it keeps it, until the jobs are counted again."""
    try:
        yield room
    except OutcomeUnknown:
        raise
    except TideError:
        quotas.give_back(tenant, room.jobs)
        raise
    quotas.give_back(tenant, room.jobs - room.used)
