"""A keeper of schedules that dies at a named point: `python -m tests.contract.dying <database> <now> <point>`.

The points are those of its own, `keeper:decided`, and those within a transaction of its store, `store:decided`.
"""

import asyncio
import os
import sys
from datetime import datetime

from tidewheel.keeper import Occurrences
from tidewheel.store.faults import Fault
from tidewheel.store.scheduling import SHARDS
from tidewheel.testing import FakeClock
from tidewheel.wiring import open_store

KILLED = 9


async def live(database: str, now: str, point: str) -> None:
    """Do the duties of all shards, but end the process at the first point of that name."""

    def fault_of(part: str) -> Fault:
        def fault(reached: str) -> None:
            if f"{part}:{reached}" == point:
                os._exit(KILLED)

        return fault

    clock = FakeClock(datetime.fromisoformat(now))
    store = await open_store(database, clock)
    store.fault = fault_of("store")  # type: ignore[attr-defined]
    for shard in range(SHARDS):
        await Occurrences(store, clock, shard, fault=fault_of("keeper")).run_once()
    await store.close()


if __name__ == "__main__":
    asyncio.run(live(*sys.argv[1:]))
