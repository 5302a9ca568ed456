"""Where jobs are handed in: what the tasks, jobs and chains of an app need of it."""

import random
import threading
from collections.abc import Coroutine, Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from tidewheel.clock import Clock
from tidewheel.errors import Invalid
from tidewheel.model.ids import EPOCH, MILLISECOND, IdMaker
from tidewheel.model.job import DEFAULT_TENANT, JobSpec, Submitted
from tidewheel.observe.tracing import sending
from tidewheel.sdk.portal import portal
from tidewheel.sdk.stores import Place, Stores, Work
from tidewheel.store.base import Store
from tidewheel.tasks.binding import Caller
from tidewheel.tasks.registry import Registry, rules_of

T = TypeVar("T")


class Desk:
    """Takes jobs in, and answers questions about them."""

    def __init__(self, place: Place, *, tenant: str = DEFAULT_TENANT) -> None:
        self.registry = Registry()
        self.callers: dict[str, Caller] = {}
        self.tenant = tenant
        self.stores = Stores(place)
        self._ids = IdMaker(lambda: (self.now() - EPOCH) // MILLISECOND, random.SystemRandom())
        self._making_ids = threading.Lock()

    @property
    def clock(self) -> Clock:
        return self.stores.place.clock

    def now(self) -> datetime:
        return self.clock.now()

    def new_id(self) -> UUID:
        """Return an id for a job on which another of the same batch depends."""
        with self._making_ids:
            return self._ids()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a piece of the async face for the synchronous one."""
        return portal().run(work)

    async def use(self, work: Work[T]) -> T:
        """Run work with a store."""
        return await self.stores.use(work)

    async def pause(self, seconds: float) -> None:
        """Wait before looking again whether a job has ended."""
        await self.stores.pause(seconds)

    def work_for(self, database: str, blobs: str) -> None:
        """Hand in where the worker takes its jobs that runs this app, unless the app itself says where."""
        place = self.stores.place
        if place.url is None:
            self.stores.place = place._replace(url=database, blobs=place.blobs or blobs)

    # Handing in

    async def asubmit(self, specs: Sequence[JobSpec], connection: Any = None) -> list[Submitted]:
        """Store jobs, all or none; with a connection, inside its transaction and in the caller's thread alone."""
        with sending(specs) as traced:
            return await self._store(traced, connection)

    async def _store(self, specs: Sequence[JobSpec], connection: Any = None) -> list[Submitted]:
        async def submit(store: Store) -> list[Submitted]:
            await self.declare_limits(store, [spec.kind for spec in specs if spec.limit_keys])
            return await store.submit(specs)

        if connection is None:
            return await self.use(submit)
        store = await portal().arun(self._prepared(specs))
        submitted = await store.submit_within(connection, specs, waits=True)
        await portal().arun(store.expect_commit())
        return submitted

    def submit(self, specs: Sequence[JobSpec], connection: Any = None) -> list[Submitted]:
        """Store jobs, all or none; with a connection, inside its transaction and in the caller's thread alone."""
        with sending(specs) as traced:  # here, for the portal's thread knows nothing of the caller's spans
            if connection is None:
                return self.run(self._store(traced))
            store = self.run(self._prepared(traced))
            submitted = _at_once(store.submit_within(connection, traced, waits=False))
            self.run(store.expect_commit())
            return submitted

    async def _prepared(self, specs: Sequence[JobSpec]) -> Store:
        """Make ready, in the background, what the caller's transaction shall find."""
        store = await self.stores.resident()
        await self.declare_limits(store, [spec.kind for spec in specs if spec.limit_keys])
        await store.make_lanes(specs)
        return store

    async def declare_limits(self, store: Store, kinds: Iterable[str]) -> None:
        """Let the store know the limits that tasks declare, with the first job of each."""
        new = {kind for kind in kinds if kind not in self.stores.limited}
        tasks = [task for kind in new if (task := self.registry.get(kind)) is not None and task.options.limits]
        if tasks:
            await store.declare_rules([rule for task in tasks for rule in rules_of(task)])
        self.stores.limited |= new


def _at_once(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits, since all it awaits is done at once."""
    try:
        work.send(None)
    except StopIteration as done:
        answer: T = done.value
        return answer
    work.close()
    raise Invalid("connection", "cannot be used without an event loop: await the async twin of this call")
