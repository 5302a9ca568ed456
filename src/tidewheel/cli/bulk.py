"""What is done to many jobs: they are counted, then taken page by page, and a bar shows how far it is."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from tidewheel.cli.picking import pages
from tidewheel.cli.progress import progress
from tidewheel.cli.showing import Columns
from tidewheel.cli.verb import Session
from tidewheel.clock import SystemClock
from tidewheel.errors import TideError, Unavailable
from tidewheel.model.job import Job
from tidewheel.model.statuses import Shown, shown_as
from tidewheel.store.base import JobFilter, Store

AT_ONCE: Final = 50
"""How many cancels are under way at a time: a store makes one commit of those that come together."""

Act = Callable[[Store, Sequence[UUID]], Awaitable[object]]


class Cancelled(msgspec.Struct, frozen=True):
    """What became of a job that was to be cancelled."""

    id: UUID
    state: Shown


class Cancelling(NamedTuple):
    """What became of several."""

    ends: list[Cancelled]
    refused: list[TideError]


COLUMNS: Final[Columns[Cancelled]] = {"id": lambda end: end.id, "state": lambda end: end.state}


async def cancel_all(store: Store, ids: Sequence[UUID], reason: str) -> Cancelling:
    """Cancel these; one that cannot be does not keep the others from it, but a store that is gone does."""
    found = Cancelling([], [])
    for first in range(0, len(ids), AT_ONCE):
        group = (store.cancel(job_id, reason=reason) for job_id in ids[first : first + AT_ONCE])
        for end in await asyncio.gather(*group, return_exceptions=True):
            if isinstance(end, Job):
                found.ends.append(Cancelled(end.id, shown_as(end, SystemClock().now())))
            elif isinstance(end, TideError) and not isinstance(end, Unavailable):
                found.refused.append(end)
            else:
                raise end
    return found


def count(session: Session, where: JobFilter) -> int:
    """Return how many jobs fit."""

    async def look(store: Store) -> int:
        return sum([len(page) async for page in pages(store, where)])

    return session.ask(look)


def act_on_pages(session: Session, where: JobFilter, total: int, act: Act) -> None:
    """Do something to all jobs that fit, a page at a time."""

    async def run(store: Store) -> None:
        done = 0
        async for page in pages(store, where):
            await act(store, page)
            done += len(page)
            tell("jobs", done, max(done, total))

    with progress() as tell:
        session.ask(run)
