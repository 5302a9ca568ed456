"""Needs: a worker is handed only what fits into what it has free."""

from datetime import timedelta

import msgspec

from tests.builders import HOUR, a_claim, a_job, needing, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import claim, in_order, submit
from tidewheel.model.priority import Priority
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store


async def test_a_job_too_large_for_what_is_free_waits_and_hides_nothing(store: Store, worker: Worker) -> None:
    large = await submit(store, needs=needing({"cpu": 4000}), priority=Priority.HIGH)
    small = await submit(store, needs=needing({"cpu": 1000}), priority=Priority.LOW)
    assert in_order(await claim(store, worker, free={"cpu": 2000})) == [small]
    assert in_order(await claim(store, worker, free={"cpu": 4000})) == [large]


async def test_one_claim_does_not_take_more_than_is_free(store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(10, needs=needing({"cpu": 1000, "gpu": 1})))
    assert len(await claim(store, worker, free={"cpu": 9000, "gpu": 3})) == 3
    assert len(await claim(store, worker, free={"cpu": 2500, "gpu": 9})) == 2


async def test_different_needs_share_what_is_free(store: Store, worker: Worker) -> None:
    specs = [a_job(f"k{i % 4}", needs=needing({"cpu": 1000 * (1 + i % 3)})) for i in range(30)]
    await store.submit(specs)
    runs = await claim(store, worker, 30, free={"cpu": 10_000})
    taken = [(await store.get(run.job_id)).needs.resources["cpu"] for run in runs]
    assert 8_000 <= sum(taken) <= 10_000


async def test_a_resource_that_the_worker_does_not_have_is_not_there(store: Store, worker: Worker) -> None:
    await submit(store, needs=needing({"gpu": 1}))
    assert await claim(store, worker, free={"cpu": 8000}) == []
    assert await claim(store, worker, free={}) == []


async def test_a_worker_without_bounds_takes_what_comes(store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(3, needs=needing({"cpu": 64_000})))
    assert len(await claim(store, worker, free=None)) == 3


async def test_a_job_without_needs_fits_everywhere(store: Store, worker: Worker) -> None:
    job_id = await submit(store)
    assert in_order(await claim(store, worker, free={})) == [job_id]


async def test_a_worker_must_have_the_labels(store: Store, worker: Worker) -> None:
    job_id = await submit(store, needs=needing(zone="eu", disk="ssd"))
    for labels in ({}, {"zone": "eu"}, {"zone": "us", "disk": "ssd"}):
        assert await claim(store, worker, labels=labels) == []
    assert in_order(await claim(store, worker, labels={"zone": "eu", "disk": "ssd", "more": "yes"})) == [job_id]


async def test_what_does_not_fit_does_not_wake_anybody(backend: Backend, store: Store, worker: Worker) -> None:
    await submit(store, needs=needing({"gpu": 1}), delay=timedelta(seconds=1))
    await submit(store, delay=HOUR)
    answer = await store.claim(a_claim(worker.id, free={"cpu": 1000}))
    assert answer.next_due == backend.clock.now() + HOUR


async def test_the_oldest_job_that_fits_only_the_whole_worker_is_told(
    backend: Backend, store: Store, worker: Worker
) -> None:
    large, other = needing({"cpu": 4000}, zone="a"), needing({"cpu": 3000}, zone="a")
    for needs in (needing({"cpu": 9000}), needing({"cpu": 4000}, zone="b"), needing({"cpu": 1000}), needing()):
        await submit(store, needs=needs)  # too large, elsewhere, or fits
    await submit(store, needs=large, queue="other")
    await submit(store, needs=large, kind="other")
    request = a_claim(worker.id, kinds=frozenset({"echo"}), free={"cpu": 2000}, labels={"zone": "a"})
    assert await store.oldest_unfit(request, {"cpu": 4000}) is None
    await backend.clock.advance(timedelta(seconds=5))
    await submit(store, needs=large, delay=timedelta(seconds=1), priority=Priority.LOW)
    await submit(store, needs=other, delay=timedelta(seconds=2))
    assert await store.oldest_unfit(request, {"cpu": 4000}) is None, "neither is due"
    await backend.clock.advance(timedelta(seconds=4))
    assert await store.oldest_unfit(request, {"cpu": 4000}) == (large, timedelta(seconds=3))
    assert await store.oldest_unfit(request, {"cpu": 3000}) == (other, timedelta(seconds=2))
    roomy = msgspec.structs.replace(request, free={"cpu": 4000})
    assert await store.oldest_unfit(roomy, {"cpu": 4000}) is None, "both fit"
    runs = await claim(store, worker, 9, free={"cpu": 9000}, labels={"zone": "a"}, needs=large)
    assert [run.needs for run in runs] == [large, large]
    assert len(await claim(store, worker, 9, free={"cpu": 9000}, labels={"zone": "a"})) > 1, "the others are there"


async def test_a_run_tells_what_it_needs(store: Store, worker: Worker) -> None:
    needs = needing({"cpu": 1000}, zone="a")
    await submit(store, needs=needs)
    await submit(store)
    runs = await claim(store, worker, free={"cpu": 2000}, labels={"zone": "a"})
    assert [run.needs for run in runs] == [needs, needing()]
    assert [run.needs for run in await store.owned(worker.id)] == [needs, needing()]
