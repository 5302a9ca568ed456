"""Real servers in a thread of their own, so that a browser can be driven from the tests."""

import asyncio
import secrets
import threading
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tidewheel.blobs import Blobs, open_blobs
from tidewheel.clock import SystemClock
from tidewheel.model.access import Actor, Role
from tidewheel.model.api_key import ENTROPY, ApiKey, KeySpec, make_key
from tidewheel.server import Address, Service, Serving, build_app
from tidewheel.server.access import Door, Keyless
from tidewheel.server.serving import Reservation
from tidewheel.store.base import Store
from tidewheel.store.sealing import KEY_BYTES, Keyring
from tidewheel.store.sqlite import open_store

CLOCK = SystemClock()
ROOT = Actor(role=Role.ADMIN, name="root")
T = TypeVar("T")


@dataclass
class Site:
    """A server, and what is behind it."""

    url: str
    store: Store
    blobs: Blobs
    loop: asyncio.AbstractEventLoop
    file: Path
    """Where its store is."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something in the loop of the server."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    def key(self, role: Role, tenant: str | None = "default") -> tuple[str, ApiKey]:
        """Make a key."""
        made = make_key(secrets.token_bytes(ENTROPY))
        spec = KeySpec(name=f"{role}-key", role=role, tenant=tenant)
        return made.text, self.run(self.store.create_key(spec, made.proof, by=ROOT))


@contextmanager
def sites(folder: Path, *doors: Keyless) -> Iterator[list[Site]]:
    """Serve one database for each kind of door."""
    found: list[Site] = []
    ready, failed = threading.Event(), list[BaseException]()
    stop: list[Any] = []
    for number in range(len(doors)):
        (folder / str(number)).mkdir()

    async def serve() -> None:
        done = asyncio.Event()
        stop.extend((asyncio.get_running_loop(), done))
        async with AsyncExitStack() as stack:
            for number, keyless in enumerate(doors):
                found.append(await _open(stack, folder / str(number), keyless))
            ready.set()
            await done.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001 - told to the test
            failed.append(error)
            ready.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(30)
    if failed:
        raise failed[0]
    try:
        yield found
    finally:
        loop, done = stop
        loop.call_soon_threadsafe(done.set)
        thread.join(30)


async def _open(stack: AsyncExitStack, folder: Path, keyless: Keyless) -> Site:
    store = await open_store(folder / "tide.db", keyring=Keyring([secrets.token_bytes(KEY_BYTES)]))
    stack.push_async_callback(store.close)
    blobs = open_blobs((folder / "blobs").as_uri())
    service, door = Service(store, blobs, CLOCK), Door(store, CLOCK, keyless=keyless)
    stack.push_async_callback(door.close)
    stack.push_async_callback(service.close)
    reserved = Reservation(Address(port=0))
    stack.callback(reserved.close)
    serving = Serving(build_app(service, door), service, reserved.address, CLOCK)
    await serving.start()
    stack.push_async_callback(serving.stop, 1)
    return Site(reserved.address.url, store, blobs, asyncio.get_running_loop(), folder / "tide.db")
