"""A keeper as a child of a worker's supervisor."""

import asyncio
import contextlib
import uuid

from tidewheel.clock import SystemClock
from tidewheel.keeper import Keeper, chores_of, show_chores
from tidewheel.wiring import open_all
from tidewheel.worker.child import Greeting, run_child
from tidewheel.worker.link import Drain, Ready


async def _keep(greeting: Greeting) -> None:
    store, blobs = await open_all(greeting.setup)
    clock = SystemClock()
    chores = chores_of(store, clock, greeting.setup.upkeep, blobs)
    keeper = Keeper(store, chores, clock, uuid.uuid4())
    show_chores(keeper, greeting.registry)
    keeping = asyncio.ensure_future(keeper.run())
    greeting.link.send(Ready())
    async for word in greeting.words:
        if isinstance(word, Drain):
            break
    keeping.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await keeping
    await store.close()


if __name__ == "__main__":
    run_child(_keep)
