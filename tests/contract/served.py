"""A store behind a server, for the contract suite: a SQLite file, a server on it in this process, and the way by HTTP.

What a server does not offer over HTTP is done by the server's own store, as its keeper would do it; so whole tests run,
and everything that is offered goes over the wire.
"""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

from tests.contract.backends import SqliteBackend
from tidewheel.blobs import Blobs
from tidewheel.blobs.memory import MemoryBackend
from tidewheel.clock import SystemClock
from tidewheel.server import Address, Service, Serving, build_app
from tidewheel.server.access import Door, Keyless
from tidewheel.server.serving import Reservation
from tidewheel.store.base import Store
from tidewheel.store.remote import RemoteStore, open_store


class ServedStore:
    """The store over HTTP, and for the rest the server's own."""

    def __init__(self, remote: RemoteStore, own: Store) -> None:
        self._remote = remote
        self._own = own

    def __getattr__(self, name: str) -> Any:
        offered = name in RemoteStore.__dict__ or any(name in kind.__dict__ for kind in RemoteStore.__mro__)
        return getattr(self._remote if offered else self._own, name)


class ServedBackend(SqliteBackend):
    """One server for all stores that a test opens."""

    name = "remote"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._stack = AsyncExitStack()
        self._own: Store | None = None
        self._url = ""

    async def _open(self) -> Store:
        if self._own is None:
            self._own = await super()._open()
            await self._serve(self._own)
        remote = await open_store(self._url, clock=self.clock)
        return cast("Store", ServedStore(remote, self._own))

    async def _serve(self, own: Store) -> None:
        self._stack.push_async_callback(own.close)
        real = SystemClock()
        door = Door(own, real, keyless=Keyless.ALWAYS)
        self._stack.push_async_callback(door.close)
        service = Service(own, Blobs(MemoryBackend()), self.clock)
        self._stack.push_async_callback(service.close)
        reserved = Reservation(Address(port=0))
        self._stack.callback(reserved.close)
        serving = Serving(build_app(service, door), service, reserved.address, real)
        await serving.start()
        self._stack.push_async_callback(serving.stop, 1)
        self._url = reserved.address.url

    async def close(self) -> None:
        await super().close()
        await self._stack.aclose()
        self._own = None
