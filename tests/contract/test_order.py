"""The order of claims: strict priority, turns of tenants, first in first out, and a share for those who waited long."""

from collections import Counter

from tests.builders import MINUTE, SECOND, a_job, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import claim, drain, finish, in_order, submit
from tidewheel.model.job import JobSpec, Run
from tidewheel.model.priority import Priority
from tidewheel.model.states import Cause
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store


def _priorities(runs: list[Run]) -> list[Priority]:
    return [run.priority for run in runs]


async def test_higher_priorities_go_first(store: Store, worker: Worker) -> None:
    await store.submit([a_job(priority=priority) for priority in (2, 0, 1, 2, 0, 1)])
    runs = await claim(store, worker, 4) + await claim(store, worker, 4)
    assert _priorities(runs) == [0, 0, 1, 1, 2, 2]


async def test_higher_priorities_go_first_over_all_lanes(store: Store, worker: Worker) -> None:
    await store.submit([a_job(f"k{i}", queue=f"q{i % 2}", tenant=f"t{i % 5}", priority=i % 3) for i in range(30)])
    runs = [run for _ in range(10) for run in await claim(store, worker, 3, queues=("q0", "q1"))]
    assert _priorities(runs) == [0] * 10 + [1] * 10 + [2] * 10


async def test_equal_jobs_go_in_the_order_of_their_submission(store: Store, worker: Worker) -> None:
    ids = [answer.job_id for answer in await store.submit(some_jobs(50))]
    assert in_order(await drain(store, worker, 7)) == ids


async def test_the_time_at_which_a_job_may_run_decides_within_a_lane(
    backend: Backend, store: Store, worker: Worker
) -> None:
    delays = [5, 3, 9, 1, 7]
    ids = [await submit(store, delay=delay * SECOND) for delay in delays]
    await backend.clock.advance(10 * SECOND)
    expected = [job_id for _, job_id in sorted(zip(delays, ids, strict=True))]
    assert in_order(await drain(store, worker, 2)) == expected


async def test_a_tenant_is_served_in_order_over_all_its_lanes(backend: Backend, store: Store, worker: Worker) -> None:
    ids = []
    for i in range(20):
        ids.append(await submit(store, f"k{i % 4}", queue=f"q{i % 3}"))
        await backend.clock.advance(SECOND)
    queues = ("q0", "q1", "q2")
    assert in_order(await drain(store, worker, 3, queues=queues)) == ids
    # … and the whole in one claim, in the order in which they should start.
    again = []
    for i in range(20):
        again.append(await submit(store, f"k{i % 4}", queue=f"q{i % 3}"))
        await backend.clock.advance(SECOND)
    assert in_order(await claim(store, worker, 100, queues=queues)) == again


async def test_two_tenants_take_turns_within_a_claim(store: Store, worker: Worker) -> None:
    await store.submit([*some_jobs(200, tenant="large"), *some_jobs(20, tenant="small")])
    for _ in range(2):
        counts = Counter(run.tenant for run in await claim(store, worker, 20))
        assert counts == {"large": 10, "small": 10}


async def test_two_tenants_take_turns_from_claim_to_claim(store: Store, worker: Worker) -> None:
    """Turns are remembered: with claims of one job each, the first in the alphabet must not get them all."""
    await store.submit([*some_jobs(50, tenant="a"), *some_jobs(50, tenant="b")])
    counts = Counter([(await claim(store, worker, 1))[0].tenant for _ in range(20)])
    assert counts == {"a": 10, "b": 10}


async def test_turns_are_for_tenants_and_not_for_lanes(store: Store, worker: Worker) -> None:
    """Who spreads jobs over many kinds gets no more than who has one."""
    spread = [a_job(f"k{i % 10}", tenant="spread") for i in range(100)]
    await store.submit([*spread, *some_jobs(100, tenant="plain")])
    counts = Counter(run.tenant for run in await claim(store, worker, 40))
    assert counts == {"spread": 20, "plain": 20}


async def test_many_tenants_share_evenly(store: Store, worker: Worker) -> None:
    specs: list[JobSpec] = []
    for i in range(8):
        specs += some_jobs(10 * (i + 1), tenant=f"t{i}")
    await store.submit(specs)
    counts = Counter(run.tenant for run in await claim(store, worker, 64))
    assert counts == {f"t{i}": 8 for i in range(8)}


async def test_what_one_tenant_leaves_the_others_get(store: Store, worker: Worker) -> None:
    await store.submit([*some_jobs(3, tenant="small"), *some_jobs(100, tenant="large")])
    counts = Counter(run.tenant for run in await claim(store, worker, 50))
    assert counts == {"small": 3, "large": 47}


async def test_priority_goes_before_turns(store: Store, worker: Worker) -> None:
    await store.submit([*some_jobs(20, tenant="a", priority=Priority.LOW), *some_jobs(20, tenant="b")])
    counts = Counter(run.tenant for run in await claim(store, worker, 20))
    assert counts == {"b": 20}


async def _old_and_new(backend: Backend, store: Store) -> None:
    """Let 100 low ones wait for longer than the age at which they count as aged, and then come 500 high ones."""
    await store.submit(some_jobs(100, "old", priority=Priority.LOW))
    await backend.clock.advance(6 * MINUTE)
    await store.submit(some_jobs(500, "new", priority=Priority.HIGH))


async def test_the_aged_get_a_tenth_of_a_large_claim(backend: Backend, store: Store, worker: Worker) -> None:
    await _old_and_new(backend, store)
    counts = Counter(run.kind for run in await claim(store, worker, 100))
    assert counts == {"new": 90, "old": 10}


async def test_the_aged_get_a_tenth_of_small_claims(backend: Backend, store: Store, worker: Worker) -> None:
    """What they are owed adds up from claim to claim, so that a worker with one slot serves them, too."""
    await _old_and_new(backend, store)
    kinds = [run.kind for _ in range(60) for run in await claim(store, worker, 1)]
    assert Counter(kinds)["old"] in (5, 6, 7)


async def test_an_urgent_job_does_not_wait_for_the_aged(backend: Backend, store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(1_000, priority=Priority.LOW))
    await backend.clock.advance(60 * MINUTE)
    await store.beat([worker.id])
    urgent = await submit(store, priority=Priority.HIGH)
    assert urgent in in_order(await claim(store, worker, 10))


async def test_an_urgent_job_does_not_wait_for_the_aged_with_one_slot(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await store.submit(some_jobs(1_000, priority=Priority.LOW))
    await backend.clock.advance(30 * MINUTE)
    for _ in range(7):
        await finish(store, worker, await claim(store, worker, 1), Cause.RETURNED)
    urgent = await submit(store, priority=Priority.HIGH)
    assert urgent in in_order([*await claim(store, worker, 1), *await claim(store, worker, 1)])


async def test_the_aged_go_oldest_first_whatever_their_priority(backend: Backend, store: Store, worker: Worker) -> None:
    oldest = []
    for priority in (Priority.LOW, Priority.MEDIUM, Priority.LOW, Priority.MEDIUM):
        oldest.append(await submit(store, "old", priority=priority))
        await backend.clock.advance(SECOND)
    await backend.clock.advance(6 * MINUTE)
    await store.submit(some_jobs(500, "new", priority=Priority.HIGH))
    old = [run.job_id for _ in range(60) for run in await claim(store, worker, 1) if run.kind == "old"]
    assert old == oldest


async def test_nobody_is_aged_before_the_time(backend: Backend, store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(100, "old", priority=Priority.LOW))
    await backend.clock.advance(4 * MINUTE)
    await store.submit(some_jobs(100, "new", priority=Priority.HIGH))
    assert {run.kind for run in await claim(store, worker, 100)} == {"new"}


async def test_a_delayed_job_ages_from_when_it_may_run(backend: Backend, store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(50, "later", priority=Priority.LOW, delay=20 * MINUTE))
    await backend.clock.advance(21 * MINUTE)
    await store.submit(some_jobs(50, "new", priority=Priority.HIGH))
    assert {run.kind for run in await claim(store, worker, 50)} == {"new"}
