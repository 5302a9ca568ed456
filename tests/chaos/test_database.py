"""The database dies or hangs under load."""

import asyncio
import random

import pytest

from harness.arena import Arena
from harness.load import Load
from harness.nemesis import hung_postgres, kill_postgres
from harness.witness import boottime
from tests.chaos.verdict import safe
from tidewheel.model.states import State

pytestmark = [pytest.mark.chaos, pytest.mark.slow]


ENOUGH = 50


async def test_postgres_is_killed_under_load_and_nothing_acknowledged_is_lost() -> None:
    async with Arena("postgres") as arena:
        rng = random.Random(19)
        load = Load(arena, random.Random(1), rate=100)
        long = await arena.submit("nap", seconds=1)
        await arena.runs(long)
        until = boottime() + 8
        working = asyncio.create_task(load.run(lambda: boottime() > until and load.acknowledged >= 2 * ENOUGH))

        for _ in range(2):
            await asyncio.sleep(rng.uniform(0.5, 1.5))  # noqa: TID251 - the load shall be under way
            await kill_postgres(arena, rng)
        await working
        back = await arena.submit("quick")
        [done] = await arena.ended(back)

        assert done.state is State.SUCCEEDED
        await safe(arena, kills=2, acknowledged=ENOUGH, executions=ENOUGH)


@pytest.mark.proof
async def test_postgres_hangs_for_three_leases_and_no_two_runs_overlap() -> None:
    async with Arena("postgres") as arena:
        jobs = [await arena.submit(kind, seconds=4) for kind in ("doze", "nap", "command")]
        for job in jobs:
            await arena.runs(job)
        supervisors = [worker.supervisor.name for worker in arena.cluster.running]

        await hung_postgres(arena, 6)
        done = await arena.ended(*jobs)

        assert {job.state for job in done} == {State.SUCCEEDED}
        assert [worker.supervisor.name for worker in arena.cluster.running] == supervisors, "they wait, and live"
        await safe(arena, faults=1, executions=4)
