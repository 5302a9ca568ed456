"""A worker of one tenant is given that tenant's jobs alone, and leaves the others as if it had not been."""

from tests.builders import HOUR, SECOND, a_claim, a_job, a_worker, needing, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import claim, drain, stores_on, submit
from tidewheel.model.priority import Priority
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store


async def test_only_jobs_of_its_tenant_are_taken(store: Store, worker: Worker) -> None:
    await store.submit([*some_jobs(5, tenant="ada"), *some_jobs(5, tenant="bob", priority=Priority.HIGH)])
    own = await claim(store, worker, 100, tenant="ada")
    assert [run.tenant for run in own] == ["ada"] * 5
    assert await claim(store, worker, 100, tenant="ada") == []
    assert await claim(store, worker, 100, tenant="carl") == []
    assert [run.tenant for run in await claim(store, worker, 100)] == ["bob"] * 5


async def test_what_comes_later_is_found_by_both(backend: Backend) -> None:
    here, there = await stores_on(backend, 2)
    bound, free = [await there.register(a_worker(ttl=HOUR)) for _ in range(2)]
    for turn in range(3):
        await here.submit([a_job(f"k{turn}", tenant="bob"), a_job(f"k{turn}", tenant="ada")])
        assert [run.tenant for run in await claim(there, bound, tenant="ada")] == ["ada"]
        assert [run.tenant for run in await claim(there, free)] == ["bob"]


async def test_the_same_worker_may_ask_in_both_ways(store: Store, worker: Worker) -> None:
    await store.submit([*some_jobs(50, tenant="ada"), *some_jobs(50, tenant="bob")])
    await drain(store, worker, 7, tenant="bob")
    assert {run.tenant for run in await drain(store, worker, 7)} == {"ada"}


async def test_the_time_of_another_tenants_job_is_not_told(backend: Backend, store: Store, worker: Worker) -> None:
    await submit(store, tenant="bob", delay=SECOND)
    assert (await store.claim(a_claim(worker.id, tenant="ada"))).next_due is None
    await backend.clock.advance(SECOND)
    assert await claim(store, worker, tenant="ada") == []


async def test_a_large_job_of_another_tenant_has_nothing_kept_for_it(backend: Backend, store: Store) -> None:
    worker = await store.register(a_worker(ttl=HOUR))
    await submit(store, tenant="bob", needs=needing({"gpu": 2}))
    await backend.clock.advance(40 * SECOND)
    request = a_claim(worker.id, free={"gpu": 0})
    assert await store.oldest_unfit(request, {"gpu": 2}) is not None
    assert await store.oldest_unfit(a_claim(worker.id, free={"gpu": 0}, tenant="ada"), {"gpu": 2}) is None


async def test_a_plan_for_all_tenants_over_many_lanes_is_none_for_one(store: Store, worker: Worker) -> None:
    await store.submit([a_job(f"k{n}", tenant=tenant) for n in range(200) for tenant in ("ada", "bob")])
    for _ in range(10):
        await claim(store, worker, 5)
        assert {run.tenant for run in await claim(store, worker, 5, tenant="ada")} == {"ada"}
