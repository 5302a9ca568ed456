"""Where jobs are handed in: what the tasks, jobs and chains of an app need of it."""

import random
import threading
from collections.abc import Coroutine, Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from tidewheel.clock import Clock
from tidewheel.errors import Invalid
from tidewheel.model.ids import EPOCH, MILLISECOND, IdMaker
from tidewheel.model.job import DEFAULT_TENANT, JobSpec, Submitted
from tidewheel.sdk.portal import portal
from tidewheel.sdk.stores import Place, Stores, Work
from tidewheel.store.base import Store
from tidewheel.tasks.binding import Caller
from tidewheel.tasks.definition import limit_key
from tidewheel.tasks.registry import Registry

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

    # Handing in

    async def asubmit(self, specs: Sequence[JobSpec], connection: Any = None) -> list[Submitted]:
        """Store jobs, all or none; with a connection, inside its transaction and in the caller's thread alone."""

        async def submit(store: Store) -> list[Submitted]:
            await self.set_limits(store, specs)
            return await store.submit(specs)

        if connection is None:
            return await self.use(submit)
        store = await portal().arun(self._prepared(specs))
        submitted = await store.submit_within(connection, specs, waits=True)
        await portal().arun(store.expect_commit())
        return submitted

    def submit(self, specs: Sequence[JobSpec], connection: Any = None) -> list[Submitted]:
        """Store jobs, all or none; with a connection, inside its transaction and in the caller's thread alone."""
        if connection is None:
            return self.run(self.asubmit(specs))
        store = self.run(self._prepared(specs))
        submitted = _at_once(store.submit_within(connection, specs, waits=False))
        self.run(store.expect_commit())
        return submitted

    async def _prepared(self, specs: Sequence[JobSpec]) -> Store:
        """Make ready, in the background, what the caller's transaction shall find."""
        store = await self.stores.resident()
        await self.set_limits(store, specs)
        await store.make_lanes(specs)
        return store

    async def set_limits(self, store: Store, specs: Sequence[JobSpec]) -> None:
        """Let the store know the limits of tasks with a `concurrency`, with the first job of each."""
        for kind, tenant in {(spec.kind, spec.tenant) for spec in specs if spec.limit_keys}:
            task = self.registry.get(kind)
            if task is None or task.options.concurrency is None or (kind, tenant) in self.stores.limited:
                continue
            most = {limit.key: limit.most for limit in await store.limits(tenant=tenant)}
            if most.get(limit_key(kind)) != task.options.concurrency:
                await store.set_limit(limit_key(kind), task.options.concurrency, tenant=tenant)
            self.stores.limited.add((kind, tenant))


def _at_once(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits, since all it awaits is done at once."""
    try:
        work.send(None)
    except StopIteration as done:
        answer: T = done.value
        return answer
    work.close()
    raise Invalid("connection", "cannot be used without an event loop: await the async twin of this call")
