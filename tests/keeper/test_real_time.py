"""What the keeper promises in seconds, by the clock on the wall."""

import asyncio
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from tests.builders import a_job
from tidewheel.clock import SystemClock
from tidewheel.keeper import Chore, Keeper, chores_of
from tidewheel.model.states import State
from tidewheel.store.base import Store
from tidewheel.store.sqlite import open_store

CLOCK = SystemClock()
PATIENCE = 30.0

OTHER = """
import asyncio, sys, uuid
from datetime import timedelta
from tidewheel.clock import SystemClock
from tidewheel.keeper import Chore, Keeper
from tidewheel.store.sqlite import open_store

async def main():
    store = await open_store(sys.argv[1])
    async def tell():
        print("mine", flush=True)
        return 0
    chores = [Chore(f"part/{n}", timedelta(hours=1), tell) for n in range(4)]
    await Keeper(store, chores, SystemClock(), uuid.UUID(int=1)).run()

asyncio.run(main())
"""


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await open_store(tmp_path / "jobs.db")
    yield store
    await store.close()


async def test_a_job_expires_within_a_second_of_its_deadline(store: Store) -> None:
    expired = asyncio.Event()

    def told(chore: Chore) -> Chore:
        async def run_once() -> int:
            done = await chore.run_once()
            if done:
                expired.set()
            return done

        return chore._replace(run_once=run_once)

    chores = [told(chore) if chore.name == "expiry" else chore for chore in chores_of(store, CLOCK)]
    keeping = asyncio.create_task(Keeper(store, chores, CLOCK, uuid4()).run())
    deadline = CLOCK.now() + timedelta(seconds=1)
    (late,) = await store.submit([a_job(delay=timedelta(hours=1), start_by=deadline)])
    await asyncio.wait_for(expired.wait(), PATIENCE)
    job = await store.get(late.job_id)
    assert job.state is State.EXPIRED
    assert job.finished_at is not None
    assert timedelta(0) <= job.finished_at - deadline < timedelta(seconds=1)
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)


async def test_the_chores_of_a_killed_process_are_another_s_within_five_seconds(store: Store, tmp_path: Path) -> None:
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OTHER, str(tmp_path / "jobs.db"), stdout=asyncio.subprocess.PIPE
    )
    assert other.stdout is not None
    for _ in range(4):
        assert await asyncio.wait_for(other.stdout.readline(), PATIENCE) == b"mine\n"
    done: dict[int, float] = {}
    all_done, two_done = asyncio.Event(), asyncio.Event()

    def part(number: int) -> Chore:
        async def note() -> int:
            done[number] = CLOCK.monotonic()
            (all_done if len(done) == 4 else two_done if len(done) == 2 else asyncio.Event()).set()
            return 0

        return Chore(f"part/{number}", timedelta(hours=1), note)

    keeping = asyncio.create_task(Keeper(store, [part(n) for n in range(4)], CLOCK, UUID(int=2)).run())
    await asyncio.wait_for(two_done.wait(), PATIENCE)
    other.kill()
    killed = CLOCK.monotonic()
    await asyncio.wait_for(all_done.wait(), PATIENCE)
    assert max(done.values()) - killed < 5
    await other.wait()
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
