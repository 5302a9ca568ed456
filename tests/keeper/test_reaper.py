"""The reaper takes back what dead workers had, and is not fooled by a clock that steps."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from tests.builders import SECOND, a_claim, a_job, a_worker
from tidewheel.keeper import Reaper
from tidewheel.model.liveness import ExpiredWorker
from tidewheel.model.states import State
from tidewheel.model.worker import Reaped
from tidewheel.store.base import Store
from tidewheel.store.sqlite import open_store
from tidewheel.testing import FakeClock

TTL = timedelta(seconds=30)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Store]:
    store = await open_store(tmp_path / "jobs.db", clock)
    yield store
    await store.close()


async def test_a_silent_worker_is_reaped_and_its_job_runs_again(store: Store, clock: FakeClock) -> None:
    worker = await store.register(a_worker(ttl=TTL))
    (answer,) = await store.submit([a_job()])
    await store.claim(a_claim(worker.id))
    reaper = Reaper(store, clock)
    reaped = 0
    for _ in range(70):
        await clock.advance(SECOND)
        reaped += await reaper.run_once()
    job = await store.get(answer.job_id)
    assert (reaped, job.state, job.losses) == (1, State.QUEUED, 1)


async def test_a_worker_that_beats_is_never_reaped(store: Store, clock: FakeClock) -> None:
    worker = await store.register(a_worker(ttl=TTL))
    reaper = Reaper(store, clock)
    for second in range(120):
        await clock.advance(SECOND)
        if second % 5 == 0:
            await store.beat([worker.id])
        assert await reaper.run_once() == 0


async def test_a_step_of_the_store_s_clock_reaps_nobody_who_beats(store: Store, clock: FakeClock) -> None:
    worker = await store.register(a_worker(ttl=TTL))
    (answer,) = await store.submit([a_job()])
    await store.claim(a_claim(worker.id))
    reaper = Reaper(store, clock)
    clock.step(timedelta(days=1))
    assert [dead.id for dead in await store.expired()] == [worker.id]
    for second in range(60):
        assert await reaper.run_once() == 0
        await clock.advance(SECOND)
        if second % 5 == 4:
            await store.beat([worker.id])
    assert (await store.get(answer.job_id)).state is State.RUNNING


async def test_a_new_reaper_watches_for_a_whole_ttl_of_its_own(store: Store, clock: FakeClock) -> None:
    await store.register(a_worker(ttl=TTL))
    await clock.advance(timedelta(hours=1))
    reaper = Reaper(store, clock)
    assert await reaper.run_once() == 0
    await clock.advance(TTL - SECOND)
    assert await reaper.run_once() == 0
    await clock.advance(2 * SECOND)
    assert await reaper.run_once() == 1


class Stubborn:
    """A store in which some workers cannot be reaped."""

    def __init__(self, workers: list[ExpiredWorker], stubborn: set[UUID]) -> None:
        self.workers = workers
        self.stubborn = stubborn
        self.reaped: list[UUID] = []

    async def expired(self) -> list[ExpiredWorker]:
        return self.workers

    async def reap(self, worker_id: UUID, _beat: int) -> Reaped:
        if worker_id in self.stubborn:
            raise RuntimeError(str(worker_id))
        self.reaped.append(worker_id)
        return Reaped()


async def test_a_worker_that_cannot_be_reaped_stops_no_other(clock: FakeClock) -> None:
    workers = [ExpiredWorker(id=uuid4(), beat=1, ttl=TTL) for _ in range(4)]
    ids = [worker.id for worker in workers]
    store = Stubborn(workers, {ids[0], ids[2]})
    reaper = Reaper(store, clock)  # type: ignore[arg-type]
    await reaper.run_once()
    await clock.advance(TTL)
    with pytest.raises(RuntimeError, match=str(ids[0])):
        await reaper.run_once()
    assert store.reaped == [ids[1], ids[3]]
