"""Slow gates: jobs start, but no faster than the rate, over all claimers together."""

from datetime import timedelta
from typing import Any

import pytest

from tests.builders import HOUR, SECOND, a_claim, a_worker, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import claim, finish, in_order, start, stores_on, submit
from tidewheel.errors import Invalid
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.job import Claimed
from tidewheel.model.priority import Priority
from tidewheel.model.states import Cause
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store

TENTH = SECOND / 10


def slow(rate: float = 10, **fields: Any) -> GateSpec:
    return GateSpec(mode=GateMode.SLOW, rate=rate, **(fields or {"kind": "echo"}))


async def test_jobs_start_at_the_rate_over_all_claimers_together(backend: Backend, store: Store) -> None:
    stores = [store, *await stores_on(backend, 1)]
    workers = [await one.register(a_worker(ttl=HOUR)) for one in stores]
    ids = [answer.job_id for answer in await store.submit(some_jobs(100))]
    await store.close_gate(slow(10))
    started, most = [], 1
    for step in range(60):  # three seconds
        for one, worker in zip(stores, workers, strict=True):
            started += in_order(await claim(one, worker))
        assert len(started) <= most, f"after {step} steps"
        await backend.clock.advance(SECOND / 20)
        most = 1 + (step + 1) // 2
    assert len(started) == 30
    assert started == ids[:30]


async def test_a_high_rate_is_kept_too(backend: Backend, store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(2_000))
    await store.close_gate(slow(500))
    started = 0
    for _ in range(50):
        started += len(await claim(store, worker, 200))
        await backend.clock.advance(SECOND / 25)
    assert 950 <= started <= 1_001


async def test_a_pause_is_not_followed_by_a_flood(backend: Backend, store: Store, worker: Worker) -> None:
    await store.close_gate(slow(50))
    await backend.clock.advance(10 * SECOND)
    await store.submit(some_jobs(100))
    assert len(await claim(store, worker, 100)) == 5  # a tenth of a second


async def test_the_answer_tells_when_the_next_job_may_start(backend: Backend, store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(3))
    await store.close_gate(slow(4))
    for _ in range(2):
        answer = await store.claim(a_claim(worker.id))
        assert len(answer.runs) == 1
        waits = [_until_next(told) for told in (answer, await store.claim(a_claim(worker.id)))]
        assert all(timedelta(0) < wait <= SECOND / 4 + timedelta(microseconds=2) for wait in waits)
        await backend.clock.advance(waits[-1])
    assert len(await claim(store, worker)) == 1
    assert (await store.claim(a_claim(worker.id))).next_due is None


def _until_next(answer: Claimed) -> timedelta:
    assert answer.now is not None
    assert answer.next_due is not None
    return answer.next_due - answer.now


async def test_others_start_at_once(store: Store, worker: Worker) -> None:
    """Also those of lower priority, and also if the claim has no more room than the slow ones would take."""
    await store.submit(some_jobs(50, "slow", priority=Priority.HIGH))
    await store.submit(some_jobs(50, "quick", priority=Priority.LOW))
    await store.close_gate(slow(10, kind="slow"))
    kinds = [run.kind for run in await claim(store, worker, 10)]
    assert kinds == ["slow"] + ["quick"] * 9
    assert {run.kind for run in await claim(store, worker, 10)} == {"quick"}


async def test_others_start_at_once_behind_many_kinds_that_are_slow(store: Store, worker: Worker) -> None:
    """So many that they alone would fill the claim."""
    for number in range(15):
        await submit(store, f"k{number}", queue="slow", priority=Priority.HIGH)
    await store.submit(some_jobs(50, "quick", priority=Priority.LOW))
    await store.close_gate(slow(10, queue="slow"))
    for slow_ones in (1, 0):
        queues = [run.queue for run in await claim(store, worker, 10, queues=("slow", "default"))]
        assert queues == ["slow"] * slow_ones + ["default"] * (10 - slow_ones)


async def test_many_kinds_behind_one_gate_share_its_rate(backend: Backend, store: Store, worker: Worker) -> None:
    for number in range(5):
        await store.submit(some_jobs(20, f"k{number}", tenant=f"t{number % 2}"))
    await store.close_gate(slow(10, queue="default"))
    started = 0
    for _ in range(20):
        started += len(await claim(store, worker, 50))
        await backend.clock.advance(TENTH)
    assert started == 20


async def test_the_slower_of_two_gates_decides(backend: Backend, store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(50))
    await store.close_gate(slow(10))
    await store.close_gate(slow(2, queue="default"))
    started = 0
    for _ in range(20):
        started += len(await claim(store, worker))
        await backend.clock.advance(TENTH)
    assert started == 4


async def test_the_order_behind_a_slow_gate_stays(backend: Backend, store: Store, worker: Worker) -> None:
    low = await submit(store, priority=Priority.LOW)
    await store.close_gate(slow(10))
    first = await submit(store)
    await backend.clock.advance(SECOND / 100)
    second, high = await submit(store), await submit(store, priority=Priority.HIGH)
    started = []
    for _ in range(4):
        started += in_order(await claim(store, worker))
        await backend.clock.advance(TENTH)
    assert started == [high, first, second, low]


async def test_who_finds_no_room_under_a_limit_uses_nothing_up(backend: Backend, store: Store, worker: Worker) -> None:
    await store.set_limit("l", 1)
    run = await start(store, worker, limit_keys=("l",))
    await store.close_gate(slow(10))
    full = await submit(store, limit_keys=("l",))
    free = await submit(store, limit_keys=("other",))
    assert in_order([*await claim(store, worker), *await claim(store, worker)]) == [free]
    await finish(store, worker, [run])
    await backend.clock.advance(TENTH)
    assert in_order(await claim(store, worker)) == [full]


async def test_a_gate_that_holds_is_stronger(store: Store, worker: Worker) -> None:
    job_id = await submit(store)
    await store.close_gate(slow(10))
    hold = await store.close_gate(GateSpec(mode=GateMode.HOLD, queue="default"))
    assert (await store.get(job_id)).gate == "hold"
    assert await claim(store, worker) == []
    await store.open_gate(hold.id)
    assert (await store.get(job_id)).gate == "slow"
    assert in_order(await claim(store, worker)) == [job_id]


async def test_another_rate_counts_from_the_next_claim_on(backend: Backend, store: Store, worker: Worker) -> None:
    """Also for one that knows the old rate."""
    other = await backend.open()
    await store.submit(some_jobs(100))
    first = await store.close_gate(slow(1))
    assert len(await claim(store, worker)) == 1
    second = await other.close_gate(slow(10))
    assert (second.id, second.rate) == (first.id, 10)
    started = 0
    for _ in range(10):
        started += len(await claim(store, worker))
        await backend.clock.advance(TENTH)
    assert started == 10
    await other.open_gate(second.id)
    assert len(await claim(store, worker, 50)) == 50


async def test_a_lane_that_appears_behind_a_slow_gate_is_slow(store: Store, worker: Worker) -> None:
    await store.close_gate(slow(10, tenant="a"))
    await store.submit(some_jobs(5, "new", tenant="a"))
    assert len(await claim(store, worker)) == 1
    assert await claim(store, worker) == []


async def test_what_is_given_back_starts_again_at_the_rate(backend: Backend, store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(2))
    await store.close_gate(slow(10))
    runs = await claim(store, worker)
    await finish(store, worker, runs, Cause.RELEASED)
    assert await claim(store, worker) == []
    await backend.clock.advance(TENTH)
    assert len(await claim(store, worker)) == 1


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf"), 1e-9, 1e9, None, True, "10"])
async def test_rates_at_which_nothing_or_everything_would_start_are_refused(store: Store, rate: float) -> None:
    with pytest.raises(Invalid) as refusal:
        await store.close_gate(GateSpec(mode=GateMode.SLOW, kind="echo", rate=rate))
    assert refusal.value.field == "rate"
    assert await store.gates() == []


async def test_a_rate_is_for_slow_gates_alone(store: Store) -> None:
    with pytest.raises(Invalid) as refusal:
        await store.close_gate(GateSpec(mode=GateMode.HOLD, kind="echo", rate=1))
    assert refusal.value.field == "rate"
    with pytest.raises(Invalid) as refusal:
        await store.close_gate(GateSpec(mode=GateMode.SLOW, kind="echo", rate=1, stop_running=True))
    assert refusal.value.field == "stop_running"
