"""With many lanes one look plans several claims; what comes in meanwhile waits for as long as ten looks take."""

from collections.abc import AsyncIterator

import pytest

from tests.builders import a_job
from tests.contract.steps import claim, submit
from tidewheel.clock import SystemClock
from tidewheel.model.priority import Priority
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store
from tidewheel.store.postgres import PostgresStore
from tidewheel.store.postgres.looking import MANY_PAIRS, PLAN_USE

TICK = 0.01


class TickingClock(SystemClock):
    """Goes on whenever it is asked."""

    def __init__(self) -> None:
        self.passed = 0.0

    def monotonic(self) -> float:
        self.passed += TICK
        return self.passed


@pytest.fixture
async def clock(store: Store) -> AsyncIterator[TickingClock]:
    assert isinstance(store, PostgresStore)
    before, ticking = store._db.clock, TickingClock()
    store._db.clock = ticking
    yield ticking
    store._db.clock = before


async def _fill_many_lanes(store: Store) -> None:
    await store.submit([a_job(f"kind-{number}") for number in range(MANY_PAIRS + 1) for _ in range(4)])


@pytest.mark.usefixtures("clock")
async def test_the_next_claim_goes_by_the_plan_of_the_one_before(store: Store, worker: Worker) -> None:
    await _fill_many_lanes(store)
    assert len(await claim(store, worker, 5)) == 5
    urgent = await submit(store, "kind-0", priority=Priority.HIGH)

    assert urgent not in [run.job_id for run in await claim(store, worker, 5)]


async def test_no_plan_is_followed_for_longer_than_ten_looks_take(
    store: Store, worker: Worker, clock: TickingClock
) -> None:
    await _fill_many_lanes(store)
    assert len(await claim(store, worker, 5)) == 5
    urgent = await submit(store, "kind-0", priority=Priority.HIGH)

    clock.passed += PLAN_USE * clock.passed  # it began with the first look, which has not taken longer than that

    assert urgent == (await claim(store, worker, 5))[0].job_id
