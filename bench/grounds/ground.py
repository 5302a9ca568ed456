"""Where is measured: a ground gives fresh databases, and each of them is a place with a store and a bare loop."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from bench.jobs import LaneName
from bench.measure import Drained
from tidewheel.model.worker import WorkerSpec
from tidewheel.store.base import Store

STORES: Final = frozenset({"postgres", "sqlite"})
WORKER: Final = WorkerSpec(name="bench/runner-0", ttl=timedelta(hours=1))  # a lease that outlasts every part
HISTORY_DAYS: Final = 7
DUE_SINCE: Final = timedelta(minutes=10)
"""Loaded due jobs became due over this time: half of them count as aged."""


class Span(NamedTuple):
    """How many jobs succeeded, and how long that took from the first start to the last end."""

    jobs: int
    seconds: float


class Place(Protocol):
    """A fresh database with the shipped schema, a store open on it and a worker registered."""

    @property
    def url(self) -> str:
        """What to tell other processes that shall use it."""
        ...

    @property
    def store(self) -> Store: ...

    @property
    def worker_id(self) -> UUID: ...

    def server_cpu(self) -> float:
        """Return the seconds of CPU that the server has used so far, 0 where there is none or it cannot be seen."""
        ...

    async def bare_drain(self, jobs: int, batch: int) -> Drained:
        """Claim and complete jobs of the one lane by the shipped statements alone, without the library."""
        ...

    async def any_active(self, tenant: str) -> bool:
        """Tell whether any job of a tenant has not ended; cheap enough to be asked while others work."""
        ...

    async def span(self, lane: LaneName, since: datetime) -> Span:
        """Return what the database says of the jobs of a lane that were made since then and have succeeded."""
        ...

    async def transactions(self) -> int:
        """Return how many transactions there were in this database, asking by another one; on SQLite, how many commits.

        Nobody counts what is read of a file, and a reading asks nothing of anybody.
        """
        ...

    async def load_due(self, count: int, lanes: Sequence[LaneName]) -> None:
        """Add jobs that became due over the last minutes."""
        ...

    async def load_future(self, count: int) -> None:
        """Add jobs of the one lane that are due from tomorrow on."""
        ...

    async def load_history(self, count: int) -> None:
        """Add jobs of the one lane that succeeded during the last days, today included."""
        ...

    async def note_phrases(self) -> None:
        """Note what the jobs are found by that were added in these ways; a submit does so by itself."""
        ...

    async def tidy(self) -> None:
        """Let the database gather what it knows of its tables, as it does by itself now and then."""
        ...

    def hold_snapshot(self) -> AbstractAsyncContextManager[None]:
        """Let another connection look at this moment for as long as the context lasts."""
        ...


class Ground(Protocol):
    """A server or a folder for places. Everything on it is removed at the end."""

    @property
    def facts(self) -> Mapping[str, str]:
        """Versions and settings that a reader of the figures must know."""
        ...

    def place(self) -> AbstractAsyncContextManager[Place]: ...


def open_ground(store: str) -> AbstractAsyncContextManager[Ground]:
    """Return the ground of a store by its name; only that store is imported."""
    if store == "postgres":
        from bench.grounds.postgres import postgres_ground  # noqa: PLC0415

        return postgres_ground()
    from bench.grounds.sqlite import sqlite_ground  # noqa: PLC0415

    return sqlite_ground()
