"""Shares: tenants by their weights, a large backlog that delays others little, and a bound for every wait."""

from collections import Counter
from datetime import timedelta

import pytest

from tests.builders import HOUR, MINUTE, SECOND, a_worker, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import claim, finish, in_order, stores_on, submit
from tidewheel.errors import Invalid
from tidewheel.model.order import AGED_SHARE, AGING
from tidewheel.model.priority import Priority
from tidewheel.model.tenant import Tenant
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store

# Weights


async def _one_and_three(store: Store, jobs: int = 400) -> None:
    await store.submit([*some_jobs(jobs, tenant="one"), *some_jobs(jobs, tenant="three")])
    assert await store.set_weight("three", 3) == Tenant("three", 3.0)


@pytest.mark.parametrize("limit", [1, 7, 100])
async def test_starts_are_shared_by_weight(store: Store, worker: Worker, limit: int) -> None:
    await _one_and_three(store)
    counts: Counter[str] = Counter()
    while counts.total() < 200:
        counts += Counter(run.tenant for run in await claim(store, worker, limit))
    assert counts["three"] / counts["one"] == pytest.approx(3, rel=0.1)


async def test_starts_are_shared_by_weight_over_all_claimers_together(backend: Backend, store: Store) -> None:
    stores = [store, *await stores_on(backend, 2)]
    workers = [await one.register(a_worker(ttl=HOUR)) for one in stores]
    await _one_and_three(store)
    counts: Counter[str] = Counter()
    for number in range(60):
        counts += Counter(run.tenant for run in await claim(stores[number % 3], workers[number % 3], 5))
    assert counts["three"] / counts["one"] == pytest.approx(3, rel=0.1)


async def test_a_new_weight_counts_from_the_next_claim_on(backend: Backend, store: Store, worker: Worker) -> None:
    """Also in a process that remembers the old one."""
    other = await backend.open()
    await _one_and_three(store)
    await claim(store, worker, 40)
    await other.set_weight("three", 1)
    await other.set_weight("one", 4)
    counts = Counter(run.tenant for run in await claim(store, worker, 100))
    assert counts == {"one": 80, "three": 20}


async def test_a_weight_may_come_before_the_first_job(backend: Backend, store: Store, worker: Worker) -> None:
    await store.set_weight("three", 3)
    await store.submit([*some_jobs(40, tenant="one"), *some_jobs(40, tenant="three")])
    assert Counter(run.tenant for run in await claim(store, worker, 40)) == {"one": 10, "three": 30}
    assert await (await backend.open()).tenants() == [Tenant("one", 1.0), Tenant("three", 3.0)]


async def test_a_small_weight_is_no_exclusion(store: Store, worker: Worker) -> None:
    await store.submit([*some_jobs(400, tenant="a"), *some_jobs(400, tenant="b")])
    await store.set_weight("b", 0.01)
    counts = Counter([run.tenant for _ in range(3) for run in await claim(store, worker, 101)])
    assert counts == {"a": 300, "b": 3}


async def test_weights_count_within_a_priority(store: Store, worker: Worker) -> None:
    await store.submit([*some_jobs(10, tenant="one"), *some_jobs(10, tenant="three", priority=Priority.LOW)])
    await store.set_weight("three", 100)
    assert Counter(run.tenant for run in await claim(store, worker, 10)) == {"one": 10}


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf"), 1e-6, 1e6, True, "3", None])
async def test_weights_by_which_someone_gets_nothing_or_everything_are_refused(store: Store, weight: float) -> None:
    with pytest.raises(Invalid) as refusal:
        await store.set_weight("one", weight)
    assert refusal.value.field == "weight"
    with pytest.raises(Invalid) as refusal:
        await store.set_weight("not a name", 1)
    assert refusal.value.field == "tenant"
    assert await store.tenants() == []


# The delay that a backlog makes


async def _delays(backend: Backend, store: Store, worker: Worker) -> list[timedelta]:
    """Let one job start every tenth of a second while a tenant submits two a second, and return how long these wait."""
    submitted, delays = {}, []
    for step in range(200):
        if step % 5 == 0:
            submitted[await submit(store, tenant="small")] = backend.clock.now()
        await backend.clock.advance(SECOND / 10)
        runs = await claim(store, worker, 1)
        delays += [backend.clock.now() - submitted.pop(run.job_id) for run in runs if run.tenant == "small"]
        await finish(store, worker, runs)
    assert len(submitted) <= 1
    return delays


async def test_a_large_backlog_of_one_tenant_delays_another_at_most_twice_as_long(
    backend: Backend, store: Store, worker: Worker
) -> None:
    alone = await _delays(backend, store, worker)
    await backend.fill(20_000, tenant="large")
    beside = await _delays(backend, store, worker)
    assert sum(beside, timedelta(0)) / len(beside) <= 2 * sum(alone, timedelta(0)) / len(alone)
    assert max(beside) <= 2 * max(alone)


# Bounded waiting


@pytest.mark.parametrize("limit", [1, 10])
async def test_a_job_of_low_priority_starts_within_its_bound_under_endless_load(
    backend: Backend, store: Store, worker: Worker, limit: int
) -> None:
    """The bound: five minutes, and then the time of ten starts for itself and each one that is older."""
    older = [await submit(store, "old", priority=Priority.LOW) for _ in range(3)]
    await backend.clock.advance(SECOND)
    patient = await submit(store, "old", priority=Priority.LOW)
    began = backend.clock.now()
    pause = 2 * SECOND  # between two claims
    bound = AGING + (len(older) + 1) / AGED_SHARE / limit * pause + 2 * pause
    started = []
    await store.submit(some_jobs(200, priority=Priority.HIGH))
    while patient not in started:
        assert backend.clock.now() - began <= bound
        runs = await claim(store, worker, limit)
        assert len(runs) == limit, "there is more to do than can be done"
        started += in_order(runs)
        await finish(store, worker, runs)
        await store.submit(some_jobs(limit, priority=Priority.HIGH))
        await backend.clock.advance(pause)
    assert [job_id for job_id in started if job_id in (*older, patient)] == [*older, patient]
    assert backend.clock.now() - began > AGING, "until then the others go first"


async def test_the_bound_holds_for_a_tenant_beside_many_others(backend: Backend, store: Store, worker: Worker) -> None:
    patient = await submit(store, tenant="patient", priority=Priority.LOW)
    began = backend.clock.now()
    while True:
        await store.submit([job for n in range(4) for job in some_jobs(3, tenant=f"t{n}", priority=Priority.HIGH)])
        runs = await claim(store, worker, 10)
        if patient in in_order(runs):
            break
        await finish(store, worker, runs)
        await backend.clock.advance(10 * SECOND)
        assert backend.clock.now() - began <= AGING + MINUTE
