"""What failed before takes at most a fifth of the starts of a queue while first attempts wait."""

from collections import Counter

import pytest

from tests.builders import HOUR, MINUTE, SECOND, a_job, a_worker, outcome_of, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import claim, state_of, submit
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.outcome import RETRIED
from tidewheel.model.states import Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store


async def fail(store: Store, worker: Worker, number: int, cause: Cause = Cause.FAILED, **fields: object) -> None:
    """Let so many jobs of the kind `calls` be due again after a failure."""
    await store.submit(some_jobs(number, "calls", **fields))
    runs = await claim(store, worker, number, kinds=frozenset({"calls"}), queues=("default", "other"))
    await store.settle(worker.id, [outcome_of(run, cause) for run in runs])


async def kinds_of(store: Store, worker: Worker, limit: int, **fields: object) -> Counter[str]:
    return Counter(run.kind for run in await claim(store, worker, limit, **fields))


@pytest.mark.parametrize("cause", RETRIED)
async def test_retries_get_a_fifth_while_first_attempts_wait(
    backend: Backend, store: Store, worker: Worker, cause: Cause
) -> None:
    await fail(store, worker, 100, cause)
    await backend.clock.advance(SECOND)
    await store.submit(some_jobs(200, "fresh"))
    await backend.clock.advance(SECOND)
    assert await kinds_of(store, worker, 30) == {"fresh": 24, "calls": 6}


async def test_first_attempts_of_the_same_kind_go_first_too(backend: Backend, store: Store, worker: Worker) -> None:
    await fail(store, worker, 100)
    await backend.clock.advance(SECOND)
    await store.submit(some_jobs(200, "calls"))
    await backend.clock.advance(SECOND)
    runs = await claim(store, worker, 30)
    assert Counter(run.failures for run in runs) == {0: 24, 1: 6}


async def test_large_claims_give_retries_no_more_than_that(backend: Backend, store: Store, worker: Worker) -> None:
    await fail(store, worker, 300)
    await backend.clock.advance(SECOND)
    await store.submit(some_jobs(900, "fresh"))
    await backend.clock.advance(SECOND)
    taken = await kinds_of(store, worker, 500)
    assert taken.total() == 500
    assert taken["calls"] <= 100


async def test_small_claims_add_up_to_the_same(backend: Backend, store: Store, worker: Worker) -> None:
    await fail(store, worker, 60)
    await backend.clock.advance(SECOND)
    await store.submit(some_jobs(200, "fresh"))
    await backend.clock.advance(SECOND)
    taken: Counter[str] = Counter()
    for _ in range(40):
        taken += await kinds_of(store, worker, 2)
    assert taken == {"fresh": 64, "calls": 16}


async def test_retries_get_everything_when_nothing_else_waits(store: Store, worker: Worker) -> None:
    await fail(store, worker, 30)
    assert await kinds_of(store, worker, 100) == {"calls": 30}


async def test_what_first_attempts_leave_goes_to_retries(backend: Backend, store: Store, worker: Worker) -> None:
    await fail(store, worker, 50)
    await backend.clock.advance(SECOND)
    await store.submit(some_jobs(5, "fresh"))
    await backend.clock.advance(SECOND)
    assert await kinds_of(store, worker, 100) == {"fresh": 5, "calls": 50}


async def test_each_queue_has_its_own_budget(backend: Backend, store: Store, worker: Worker) -> None:
    await fail(store, worker, 50, queue="other")
    await backend.clock.advance(SECOND)
    await store.submit(some_jobs(100, "fresh"))
    await backend.clock.advance(SECOND)
    assert await kinds_of(store, worker, 30, queues=("default", "other")) == {"calls": 30}


async def test_a_run_whose_worker_died_is_no_retry(backend: Backend, store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(30, "calls"))
    dying = await store.register(a_worker(ttl=5 * SECOND))
    await claim(store, dying, 30)
    await backend.clock.advance(MINUTE)
    assert await store.reap(dying.id, 0) is not None
    await backend.clock.advance(SECOND)
    await store.submit(some_jobs(100, "fresh"))
    await backend.clock.advance(SECOND)
    assert await kinds_of(store, worker, 40) == {"calls": 30, "fresh": 10}


async def test_a_job_that_was_redriven_is_no_retry(backend: Backend, store: Store, worker: Worker) -> None:
    await fail(store, worker, 30)
    runs = await claim(store, worker, 30)
    await store.settle(worker.id, [outcome_of(run, Cause.GAVE_UP) for run in runs])
    assert len(await store.redrive([run.job_id for run in runs])) == 30
    await backend.clock.advance(SECOND)
    await store.submit(some_jobs(100, "fresh"))
    await backend.clock.advance(SECOND)
    assert await kinds_of(store, worker, 40) == {"calls": 30, "fresh": 10}


async def test_a_retry_of_high_priority_waits_for_first_attempts_of_low_priority(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await fail(store, worker, 100, priority=0)
    await backend.clock.advance(SECOND)
    await store.submit(some_jobs(200, "fresh", priority=2))
    await backend.clock.advance(SECOND)
    taken: Counter[str] = Counter()
    for _ in range(10):
        taken += await kinds_of(store, worker, 10)
    assert 15 <= taken["calls"] <= 20


async def test_gates_hold_retries_and_first_attempts_alike(store: Store, worker: Worker) -> None:
    gate = await store.close_gate(GateSpec(mode=GateMode.HOLD, kind="other"))
    await fail(store, worker, 3)
    await store.close_gate(GateSpec(mode=GateMode.HOLD, kind="calls"))
    await store.submit(some_jobs(3, "calls"))
    assert await kinds_of(store, worker, 10) == {}
    await store.open_gate(gate.id)
    job_id = await submit(store, kind="other")
    (run,) = await claim(store, worker)
    assert run.job_id == job_id
    await store.close_gate(GateSpec(mode=GateMode.HOLD, kind="other"))
    await store.settle(worker.id, [outcome_of(run, Cause.FAILED)])
    assert await kinds_of(store, worker, 10) == {}, "a lane that appears later is closed, too"


async def test_jobs_that_failed_are_counted_with_the_others(store: Store, worker: Worker) -> None:
    await fail(store, worker, 3)
    await store.submit(some_jobs(2, "calls"))
    await store.take_census()
    assert [(row.kind, row.state, row.jobs) for row in (await store.counts()).rows] == [("calls", State.QUEUED, 5)]
    runs = await claim(store, worker, 10)
    await store.settle(worker.id, [outcome_of(run) for run in runs])
    await store.take_census()
    assert [(row.kind, row.state, row.jobs) for row in (await store.counts()).rows] == [("calls", State.SUCCEEDED, 5)]


async def test_a_failed_job_with_limit_keys_keeps_to_its_limit(store: Store, worker: Worker) -> None:
    await store.set_limit("l", 1)
    await fail(store, worker, 1, limit_keys=("l",))
    waiting = await submit(store, kind="calls", limit_keys=("l",))
    (run,) = await claim(store, worker, 5)
    assert {await state_of(store, waiting), run.failures} & {State.LIMITED, 1}
    await store.settle(worker.id, [outcome_of(run)])
    assert len(await claim(store, worker, 5)) == 1


async def test_a_retry_waits_for_its_delay(backend: Backend, store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(1, "calls"))
    (run,) = await claim(store, worker)
    await store.settle(worker.id, [outcome_of(run, Cause.FAILED, delay=HOUR / 2)])
    assert await claim(store, worker) == []
    await backend.clock.advance(HOUR / 2)
    assert len(await claim(store, worker)) == 1


async def fail_kinds(store: Store, worker: Worker, kinds: list[str], queue: str = "default", **fields: object) -> None:
    """Let one job of each kind be due again after a failure."""
    await store.submit([a_job(kind, queue=queue, **fields) for kind in kinds])
    runs = await claim(store, worker, len(kinds), queues=(queue,))
    await store.settle(worker.id, [outcome_of(run, Cause.FAILED) for run in runs])


async def test_retries_of_many_urgent_lanes_do_not_hide_first_attempts(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await fail_kinds(store, worker, [f"calls-{number}" for number in range(40)], priority=0)
    await backend.clock.advance(SECOND)
    await store.submit(some_jobs(50, "fresh", priority=2))
    await backend.clock.advance(SECOND)
    taken: Counter[str] = Counter()
    for _ in range(6):
        taken += await kinds_of(store, worker, 5)
    assert taken["fresh"] >= 24


async def test_retries_that_must_wait_do_not_hide_those_of_another_queue(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await fail_kinds(store, worker, [f"calls-{number}" for number in range(20)])
    await backend.clock.advance(SECOND)
    await fail_kinds(store, worker, ["free"], queue="other")
    await backend.clock.advance(SECOND)
    await store.submit(some_jobs(50, "fresh"))
    await backend.clock.advance(SECOND)
    assert (await kinds_of(store, worker, 3, queues=("default", "other")))["free"] == 1
