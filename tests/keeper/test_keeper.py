"""The keeper does each chore under its duty, and outlives a store that is away."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from tests.builders import DAY, SECOND, a_claim, a_job, a_worker, outcome_of
from tidewheel.errors import NotFound, Unavailable
from tidewheel.keeper import Chore, Keeper, chores_of
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.states import State
from tidewheel.model.worker import Duty
from tidewheel.store.base import Store
from tidewheel.store.sqlite import open_store
from tidewheel.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Store]:
    store = await open_store(tmp_path / "jobs.db", clock)
    yield store
    await store.close()


async def do_all(store: Store, clock: FakeClock) -> dict[str, int]:
    return {chore.name: await chore.run_once() for chore in chores_of(store, clock)}


async def test_the_chores_keep_the_promises(store: Store, clock: FakeClock) -> None:
    (late,) = await store.submit([a_job(delay=DAY, start_by=clock.now() + SECOND)])
    await clock.advance(2 * SECOND)
    assert (await do_all(store, clock))["expiry"] == 1
    assert (await store.get(late.job_id)).state is State.EXPIRED


async def test_the_chores_tell_all_children_of_a_parent_in_one_turn(store: Store, clock: FakeClock) -> None:
    """Only the first thousand were told when it ended."""
    (parent,) = await store.submit([a_job()])
    await store.submit([a_job(after=(parent.job_id,))] * 3_500)
    await store.cancel(parent.job_id)
    done = await do_all(store, clock)
    assert done["unblocking"] >= 2_500
    assert done["blocked"] == 0
    counted = {row.state: row.jobs for row in (await store.counts()).rows}
    assert counted == {State.CANCELLED: 1, State.SKIPPED: 3_500}


async def test_finished_jobs_are_kept_for_a_week_and_others_for_a_month(store: Store, clock: FakeClock) -> None:
    worker = await store.register(a_worker(ttl=timedelta(hours=1)))
    (done,) = await store.submit([a_job()])
    claimed = await store.claim(a_claim(worker.id))
    await store.settle(worker.id, [outcome_of(run) for run in claimed.runs])
    (cancelled,) = await store.submit([a_job()])
    await store.cancel(cancelled.job_id)
    await clock.advance(6 * DAY)
    await do_all(store, clock)
    assert (await store.get(done.job_id)).state is State.SUCCEEDED
    await clock.advance(3 * DAY)
    await do_all(store, clock)
    with pytest.raises(NotFound):
        await store.get(done.job_id)
    assert (await store.get(cancelled.job_id)).state is State.CANCELLED
    await clock.advance(30 * DAY)
    await do_all(store, clock)
    with pytest.raises(NotFound):
        await store.get(cancelled.job_id)


async def test_a_gate_that_has_expired_is_opened_within_a_second(store: Store, clock: FakeClock) -> None:
    """Whatever the jitter: half a second and a tenth of that lie between two looks."""
    await store.close_gate(GateSpec(mode=GateMode.HOLD, kind="echo", lasts=10 * SECOND))
    (chore,) = (chore for chore in chores_of(store, clock) if chore.name == "gates")
    assert chore.every <= SECOND / 2
    await clock.advance(9 * SECOND)
    assert await chore.run_once() == 0
    await clock.advance(SECOND)
    assert await chore.run_once() == 1
    assert await store.gates() == []


class Counter:
    """A chore that counts how often it was done."""

    def __init__(self) -> None:
        self.done = 0

    async def __call__(self) -> int:
        self.done += 1
        return 0


async def test_one_keeper_at_a_time_does_a_chore(store: Store, clock: FakeClock) -> None:
    counter = Counter()
    chore = Chore("sweep-up", SECOND, counter)
    first, second = (Keeper(store, [chore], clock, uuid4()) for _ in range(2))
    assert await first.run_once(chore) == 0
    assert await second.run_once(chore) is None
    assert counter.done == 1


async def test_a_dead_keeper_s_duty_passes_on_within_five_seconds(store: Store, clock: FakeClock) -> None:
    chore = Chore("sweep-up", SECOND, Counter())
    first, second = (Keeper(store, [chore], clock, uuid4()) for _ in range(2))
    await first.run_once(chore)
    await clock.advance(5 * SECOND)
    assert await second.run_once(chore) == 0
    assert await first.run_once(chore) is None


class AwayAndBack:
    """A store that cannot be reached for the first two times."""

    def __init__(self) -> None:
        self.calls = 0
        self.released: list[str] = []

    async def take_duty(self, name: str, holder: UUID, ttl: timedelta) -> Duty:
        self.calls += 1
        if self.calls <= 2:
            raise Unavailable("gone fishing")
        return Duty(name, holder, FakeClock().now() + ttl, 1)

    async def release_duty(self, name: str, _holder: UUID) -> None:
        self.released.append(name)


async def test_a_keeper_outlives_an_absent_store_and_gives_its_duties_up(clock: FakeClock) -> None:
    counter, store = Counter(), AwayAndBack()
    keeper = Keeper(store, [Chore("count", SECOND, counter)], clock, uuid4())  # type: ignore[arg-type]
    task = asyncio.create_task(keeper.run())
    await clock.advance(10 * SECOND)
    assert counter.done >= 6
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert store.released == ["count"]


async def test_a_chore_that_fails_is_logged_and_tried_again_and_stops_no_other(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    good, tries = Counter(), Counter()

    async def fail() -> int:
        await tries()
        raise ZeroDivisionError("of all things")

    chores = [Chore("bad", SECOND, fail), Chore("good", SECOND, good)]
    keeper = Keeper(AwayAndBack(), chores, clock, uuid4())  # type: ignore[arg-type]
    task = asyncio.create_task(keeper.run())
    await clock.advance(10 * SECOND)
    assert min(good.done, tries.done) >= 6
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    record = next(record for record in caplog.records if record.levelname == "ERROR")
    assert "bad" in record.getMessage()
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError
