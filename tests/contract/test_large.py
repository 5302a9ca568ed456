"""Large numbers: what holds for ten jobs must hold, and stay quick, for a hundred thousand."""

import asyncio
from collections import Counter

import pytest

from tests.builders import HOUR, MINUTE, SECOND, a_claim, a_worker, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import claim, finish, in_order, submit
from tidewheel.clock import SystemClock
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.priority import Priority
from tidewheel.model.states import Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import JobFilter, Store

pytestmark = [pytest.mark.large, pytest.mark.slow]

CLOCK = SystemClock()
MILLION = 1_000_000
MANY = 100_000


@pytest.mark.proof
async def test_a_gate_on_a_million_jobs_moves_no_row_and_stalls_nobody(
    backend: Backend, store: Store, worker: Worker
) -> None:
    """It is a flag on the lane: it counts from the next claim on, closing and opening take no longer than for one job.

    Others start while it closes and opens, each within a second, and behind it all is as it was.
    """
    first = await submit(store, "flood")
    await backend.fill_raw(MILLION, first)
    (head,) = await claim(store, worker, 1)
    await finish(store, worker, [head], Cause.RELEASED)
    before = await backend.written("flood")
    await backend.clock.advance(SECOND)
    for mode in (GateMode.HOLD, GateMode.SLOW):
        beside = asyncio.create_task(_others(await backend.open(), seen := asyncio.Event()))
        for _ in range(5):
            rate = 5.0 if mode is GateMode.SLOW else None
            gate = await store.close_gate(GateSpec(mode=mode, kind="flood", rate=rate))
            if mode is GateMode.HOLD:
                assert await claim(store, worker, 10, kinds=frozenset({"flood"})) == []
            await store.open_gate(gate.id)
        seen.set()
        assert max(await beside) < 1
        assert await backend.written("flood") == before, "no row of the flood was written"
    order = [run.run_at for run in await claim(store, worker, 100, kinds=frozenset({"flood"}))]
    assert (len(order), order) == (100, sorted(order))
    gate = await store.close_gate(GateSpec(mode=GateMode.HOLD, kind="flood"))
    other = await submit(store, "other")
    assert in_order(await claim(store, worker, 10)) == [other], "also a claim of all kinds stops at it"
    await store.open_gate(gate.id)
    assert len(await claim(store, worker, 10)) == 10


async def _others(store: Store, seen: asyncio.Event) -> list[float]:
    """Start jobs of another kind one by one, and return how long each took from its submit."""
    took: list[float] = []
    helper = await store.register(a_worker(ttl=HOUR))
    while not seen.is_set() or len(took) < 20:
        began = CLOCK.monotonic()
        await submit(store, "other")
        runs = await claim(store, helper, 1, kinds=frozenset({"other"}))
        took.append(CLOCK.monotonic() - began)
        await finish(store, helper, runs)
    return took


async def test_an_urgent_job_is_first_behind_many_old_ones_which_still_get_their_share(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await backend.fill_raw(MANY, await submit(store, "old", priority=Priority.LOW))
    await backend.clock.advance(20 * MINUTE)
    urgent = await submit(store, "urgent", priority=Priority.HIGH)
    assert (await claim(store, worker, 1))[0].job_id == urgent
    await store.submit(some_jobs(1_000, "urgent", priority=Priority.HIGH))
    counts = Counter([run.kind for _ in range(10) for run in await claim(store, worker, 50)])
    assert counts == {"urgent": 450, "old": 50}


async def test_two_tenants_take_turns_though_one_has_very_many_jobs(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await backend.fill_raw(MANY, await submit(store, tenant="large"))
    await store.submit(some_jobs(200, tenant="small"))
    for _ in range(4):
        counts = Counter(run.tenant for run in await claim(store, worker, 50))
        assert counts == {"large": 25, "small": 25}


async def test_many_jobs_of_the_future_are_not_looked_at(backend: Backend, store: Store, worker: Worker) -> None:
    later = await submit(store, delay=60 * MINUTE)
    await backend.fill_raw(MANY, later)
    now = await submit(store)
    assert in_order(await claim(store, worker)) == [now]
    answer = await store.claim(a_claim(worker.id))
    assert answer.next_due == (await store.get(later)).run_at


@pytest.mark.proof
async def test_many_jobs_are_worked_off_to_the_last(backend: Backend, store: Store, worker: Worker) -> None:
    count = MANY // 2
    await backend.fill_raw(count - 1, await submit(store))
    done = 0
    while runs := await claim(store, worker, 500):
        await finish(store, worker, runs)
        done += len(runs)
        await backend.clock.advance(SECOND / 10)
    assert done == count
    counted = {row.state: row.jobs for row in (await store.counts()).rows if row.state is State.SUCCEEDED}
    assert counted == {State.SUCCEEDED: count}
    page = await store.find(JobFilter(), limit=20)
    assert len(page.jobs) == 20
