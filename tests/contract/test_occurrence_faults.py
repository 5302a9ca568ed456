"""A keeper that is killed between any two writes leaves nothing half done, and the next one goes on."""

import asyncio
import sys

import pytest

from tests.builders import MINUTE, SECOND, a_claim, a_schedule
from tests.contract.backends import START, Backend
from tests.contract.dying import KILLED
from tests.contract.planning import fates
from tidewheel.keeper import Occurrences
from tidewheel.model.overlap import Overlap
from tidewheel.model.schedule import Fate
from tidewheel.model.states import State
from tidewheel.model.worker import Worker
from tidewheel.store.base import JobFilter, Store
from tidewheel.store.scheduling import SHARDS
from tidewheel.testing import FakeClock
from tidewheel.triggers import Interval

pytestmark = pytest.mark.slow

TEN = 10 * SECOND
NAMES = ("skip", "queue", "allow")


async def die_at(backend: Backend, point: str) -> None:
    """Let another process do the duties until it dies there."""
    command = (sys.executable, "-m", "tests.contract.dying", backend.place, backend.clock.now().isoformat(), point)
    process = await asyncio.create_subprocess_exec(*command)
    assert await process.wait() == KILLED


async def do_duties(store: Store, backend: Backend) -> int:
    clock = FakeClock(backend.clock.now())
    return sum([await Occurrences(store, clock, shard).run_once() for shard in range(SHARDS)])


async def make_schedules(store: Store) -> None:
    for name in NAMES:
        await store.create_schedule(a_schedule(name, Interval(TEN), kind=name, overlap=Overlap(name)))


@pytest.mark.parametrize(
    "point", ["keeper:looked", "store:occurrences", "store:jobs", "store:schedules", "keeper:recorded"]
)
async def test_killed_while_it_records_it_leaves_each_occurrence_with_its_job_or_not_at_all(
    store: Store, backend: Backend, point: str
) -> None:
    await make_schedules(store)

    await die_at(backend, point)
    await assert_whole(store)
    await do_duties(store, backend)

    await assert_whole(store)
    for name in NAMES:
        assert await fates(store, name) == [(START + n * TEN, Fate.MADE) for n in range(1, 7)]


@pytest.mark.parametrize("point", ["store:decided", "keeper:decided", "keeper:looked"])
async def test_killed_while_it_decides_it_leaves_each_decision_made_or_open(
    store: Store, backend: Backend, worker: Worker, point: str
) -> None:
    await make_schedules(store)
    await do_duties(store, backend)
    await backend.clock.advance(TEN)
    assert len((await store.claim(a_claim(worker.id))).runs) == 3
    await backend.clock.advance(TEN)

    await die_at(backend, point)
    await do_duties(store, backend)

    assert (await fates(store, "skip"))[:3] == [
        (START + TEN, Fate.MADE),
        (START + 2 * TEN, Fate.SKIPPED),
        (START + 3 * TEN, Fate.MADE),
    ]
    await assert_whole(store)


async def assert_whole(store: Store) -> None:
    """Each occurrence that was made has one job, which says so, and no job is without an occurrence."""
    jobs = {job.id: job for job in (await store.find(JobFilter(), limit=1000)).jobs}
    for schedule in await store.schedules():
        recorded = await store.occurrences(schedule.id, limit=1000)
        assert schedule.fired == len(recorded)
        assert schedule.next_fire_at == START + (len(recorded) + 1) * TEN
        for occurrence in recorded:
            assert occurrence.job_id is not None
            job = jobs.pop(occurrence.job_id)
            assert (job.schedule_id, job.due_at) == (schedule.id, occurrence.fire_at)
            assert (job.state is State.SKIPPED) == (occurrence.outcome is Fate.SKIPPED)
    assert jobs == {}


async def test_after_a_minute_without_a_keeper_nothing_is_late(store: Store, backend: Backend, worker: Worker) -> None:
    await make_schedules(store)
    await do_duties(store, backend)

    await backend.clock.advance(MINUTE)

    assert len((await store.claim(a_claim(worker.id, 100))).runs) == 2 + 6, "one each under a limit, and all without"
