"""Claims that ask for urgent jobs alone: they get nothing else, and leave the rest as if they had not been."""

from datetime import timedelta

import pytest

from tests.builders import HOUR, MINUTE, SECOND, a_claim, a_worker, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import claim, in_order, settle, start, submit
from tidewheel.model.job import Run
from tidewheel.model.priority import Priority
from tidewheel.model.states import Cause
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store

HIGH, MEDIUM, LOW = Priority


@pytest.mark.parametrize("at_least", Priority)
async def test_only_jobs_at_least_so_urgent_are_claimed(store: Store, worker: Worker, at_least: Priority) -> None:
    ids = {level: await submit(store, priority=level) for level in reversed(Priority)}

    assert in_order(await claim(store, worker, at_least=at_least)) == [ids[n] for n in Priority if n <= at_least]
    assert in_order(await claim(store, worker)) == [ids[n] for n in Priority if n > at_least]


async def test_no_age_makes_a_job_urgent(backend: Backend, store: Store, worker: Worker) -> None:
    """Those who waited long have a share of the starts, but not of these."""
    await store.submit(some_jobs(20, priority=LOW))
    await backend.clock.advance(HOUR / 2)
    await store.submit(some_jobs(60, priority=HIGH))

    for _ in range(20):
        runs = await claim(store, worker, 3, at_least=HIGH)
        assert [run.priority for run in runs] == [HIGH] * 3
    assert await claim(store, worker, 3, at_least=HIGH) == []
    assert {run.priority for run in await claim(store, worker)} == {LOW}


async def test_with_limit_keys_it_is_the_same(store: Store, worker: Worker) -> None:
    await store.set_limit("l", 1)
    await store.submit(some_jobs(3, priority=LOW, limit_keys=("l",)))
    urgent = await submit(store, priority=HIGH, limit_keys=("l",))

    assert in_order(await claim(store, worker, at_least=MEDIUM)) == [urgent]
    assert await claim(store, worker, at_least=MEDIUM) == []


async def test_turns_of_tenants_go_on_as_if_there_had_been_no_urgent_claims(store: Store, worker: Worker) -> None:
    for tenant in "abc":
        await store.submit(some_jobs(6, tenant=tenant))

    tenants = [run.tenant for run in await _claims_with_urgent_ones_between(store, worker, 18)]

    assert tenants == [*tenants[:3]] * 6
    assert sorted(tenants[:3]) == ["a", "b", "c"]


async def test_the_share_of_the_aged_stays_theirs(backend: Backend, store: Store, worker: Worker) -> None:
    """A tenth of the starts, counted over claims: three of thirty, whatever comes in between."""
    await store.submit(some_jobs(5, priority=LOW))
    await backend.clock.advance(6 * MINUTE)
    await store.submit(some_jobs(50))

    runs = await _claims_with_urgent_ones_between(store, worker, 30)

    assert [run.priority for run in runs].count(LOW) == 3


async def _claims_with_urgent_ones_between(store: Store, worker: Worker, count: int) -> list[Run]:
    runs: list[Run] = []
    for _ in range(count):
        job_id = await submit(store, priority=HIGH, tenant="a")
        assert in_order(await claim(store, worker, at_least=HIGH)) == [job_id]
        runs += await claim(store, worker, 1)
    return runs


async def test_when_to_look_again_is_told_by_the_stores_clock(backend: Backend, store: Store, worker: Worker) -> None:
    now = backend.clock.now()
    await submit(store, delay=30 * SECOND, priority=HIGH)
    await submit(store, delay=10 * SECOND, priority=LOW)

    nothing = await store.claim(a_claim(worker.id))
    urgent = await store.claim(a_claim(worker.id, at_least=MEDIUM))
    await backend.clock.advance(10 * SECOND)
    something = await store.claim(a_claim(worker.id))

    assert (nothing.runs, nothing.now, nothing.next_due) == ([], now, now + 10 * SECOND)
    assert (urgent.runs, urgent.now, urgent.next_due) == ([], now, now + 30 * SECOND)
    assert (len(something.runs), something.now, something.next_due) == (1, now + 10 * SECOND, now + 30 * SECOND)


async def test_an_empty_store_tells_its_time(backend: Backend, store: Store, worker: Worker) -> None:
    claimed = await store.claim(a_claim(worker.id))
    assert (claimed.now, claimed.next_due) == (backend.clock.now(), None)
    await backend.clock.advance(timedelta(days=1) - HOUR * 23 - MINUTE)
    assert (await store.claim(a_claim(worker.id))).now == backend.clock.now()


async def test_runs_asked_to_stop_are_told_without_a_beat(store: Store, worker: Worker) -> None:
    other = await store.register(a_worker(ttl=HOUR))
    await store.submit(some_jobs(4))
    runs, (theirs,) = await claim(store, worker, 3), await claim(store, other)
    for run in (runs[2], runs[0], theirs):
        await store.cancel(run.job_id)

    assert await store.stopping([worker.id]) == [(worker.id, run.job_id, run.token) for run in (runs[0], runs[2])]
    assert len(await store.stopping([worker.id, other.id])) == 3
    assert await store.stopping([]) == []
    await settle(store, worker, runs[0], Cause.STOPPED)
    assert await store.stopping([worker.id]) == [(worker.id, runs[2].job_id, runs[2].token)]
    (known,) = [each for each in await store.workers() if each.id == worker.id]
    assert (known.beat, known.lease_until) == (worker.beat, worker.lease_until)


async def test_a_waiting_job_that_was_cancelled_is_no_run_to_stop(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    waiting = await submit(store)
    await store.cancel(waiting)

    assert await store.stopping([worker.id]) == []
    assert run.job_id != waiting
