"""The stores of an app: one in the background of the process, and one in each event loop that asked for its own.

A store belongs to the loop it was opened in. Loops come and go (a web framework may make one for each request), so what
is not opened on purpose lives in the background, where it is opened once and never left behind.
"""

import asyncio
import os
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple, TypeVar

from tidewheel.blobs import Blobs
from tidewheel.clock import Clock, SystemClock
from tidewheel.errors import Invalid, Unavailable
from tidewheel.sdk.portal import leak, portal
from tidewheel.store.base import Store
from tidewheel.tasks.context import JOB_ID_VARIABLE
from tidewheel.wiring import DEFAULT_URL, blobs_url, open_blobs, open_store

OTHERWISE: Final = "enqueue in an async function, which runs in the worker itself, or see `tide worker --env`"

T = TypeVar("T")
Work = Callable[[Store], Coroutine[Any, Any, T]]
Loop = asyncio.AbstractEventLoop


class Place(NamedTuple):
    """Where an app keeps its jobs, and by which clock."""

    url: str | None
    """None stands for where the worker takes its jobs that runs the app, for TIDE_DATABASE, or a file right here."""
    clock: Clock = SystemClock()
    blobs: str | None = None
    """None stands for TIDE_BLOBS, or a folder beside the database."""
    key: str | None = None
    """What opens a server; None stands for TIDE_KEY."""
    max_args_bytes: int | None = None
    """How large the arguments of a job may be; None stands for TIDE_MAX_ARGS_BYTES. A server goes by its own."""

    @property
    def database(self) -> str:
        """The URL. Raises Invalid in a task that was told of none: a file of its own would be gone with its folder."""
        named = self.url or os.environ.get("TIDE_DATABASE")
        if named is None and JOB_ID_VARIABLE in os.environ:
            raise Invalid("database", f"this task was not told of one: name it in App(…), {OTHERWISE}")
        return named or DEFAULT_URL

    async def open(self) -> Store:
        """Open a store there."""
        try:
            return await open_store(self.database, self.clock, self.key, self.max_args_bytes)
        except Unavailable as error:
            if JOB_ID_VARIABLE in os.environ:
                raise Unavailable(f"{error}; a task in a process of its own may not reach it: {OTHERWISE}") from error
            raise

    def open_blobs(self) -> Blobs:
        """Open the place for what is too large for a store."""
        return open_blobs(blobs_url(self.database, self.blobs or os.environ.get("TIDE_BLOBS")), self.key, self.clock)


class Stores:
    """Opens stores when they are needed."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.limited: set[str] = set()
        """The kinds whose limits the store was told."""
        self._resident: Store | None = None
        self._opening = asyncio.Lock()
        self._own: dict[Loop, tuple[Store, int]] = {}
        _all.add(self)

    async def use(self, work: Work[T]) -> T:
        """Run work with the store of this loop, if it has one, or else in the background."""
        own = self._own.get(asyncio.get_running_loop())
        if own is not None:
            return await work(own[0])
        return await portal().arun(self._use_resident(work))

    async def pause(self, seconds: float) -> None:
        """Wait for what may happen in the store meanwhile."""
        await self.place.clock.sleep(seconds)

    async def resident(self) -> Store:
        """Return the store in the background; only to be called there."""
        async with self._opening:
            if self._resident is None:
                self._resident = await self.place.open()
                portal().moved_in(self)
            return self._resident

    async def enter(self) -> None:
        """Open a store in this loop."""
        loop = asyncio.get_running_loop()
        if loop in self._own:
            store, entered = self._own[loop]
            self._own[loop] = (store, entered + 1)
        else:
            self._own[loop] = (await self.place.open(), 1)

    async def exit(self) -> None:
        """Close the store of this loop when the last who opened it has gone."""
        loop = asyncio.get_running_loop()
        store, entered = self._own.pop(loop)
        if entered > 1:
            self._own[loop] = (store, entered - 1)
        else:
            await store.close()

    async def close(self) -> None:
        """Close the store of this loop and the one in the background."""
        store, _ = self._own.pop(asyncio.get_running_loop(), (None, 0))
        if store is not None:
            await store.close()
        if self._resident is not None:
            await portal().arun(self.leave())

    async def leave(self) -> None:
        """Close the store in the background; only to be called there."""
        async with self._opening:
            store, self._resident = self._resident, None
            portal().moved_out(self)
            if store is not None:
                await store.close()

    async def _use_resident(self, work: Work[T]) -> T:
        return await work(await self.resident())

    def abandon(self) -> None:
        """Leave everything to the parent, in a process that was forked off."""
        for thing in (self._resident, self._own):
            leak(thing)
        self._resident, self._own, self._opening = None, {}, asyncio.Lock()


_all: Final[weakref.WeakSet[Stores]] = weakref.WeakSet()


def _abandon_all() -> None:
    for stores in list(_all):
        stores.abandon()


os.register_at_fork(after_in_child=_abandon_all)
