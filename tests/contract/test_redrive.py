"""Redriving: a finished job goes round again, as the same job."""

from datetime import timedelta
from uuid import uuid4

import pytest

from tests.builders import HOUR, MINUTE, SECOND, a_job, a_worker
from tests.contract.backends import Backend
from tests.contract.steps import check_conserved, claim, finish, in_order, settle, start, state_of, submit
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.job import Submitted
from tidewheel.model.outcome import Verdict
from tidewheel.model.states import Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store


async def test_a_dead_job_is_queued_again_and_due_now(backend: Backend, store: Store, worker: Worker) -> None:
    run = await start(store, worker, args={"a": 1}, labels={"x": "y"}, run_at=backend.clock.now() - HOUR)
    for cause in (Cause.FAILED, Cause.CRASHED):
        await settle(store, worker, run, cause)
        (run,) = await claim(store, worker)
    await settle(store, worker, run, Cause.GAVE_UP)
    dead = await store.get(run.job_id)
    await backend.clock.advance(MINUTE)
    assert await store.redrive([run.job_id]) == [run.job_id]
    job, now = await store.get(run.job_id), backend.clock.now()
    assert (job.state, job.failures, job.losses, job.token) == (State.QUEUED, 0, 0, dead.token)
    assert (job.run_at, job.updated_at) == (now, now)
    assert (job.finished_at, job.error, job.result) == (None, None, None)
    assert (job.args, job.labels, job.created_at) == (dead.args, dead.labels, dead.created_at)
    await check_conserved(store, [run.job_id])


async def test_tokens_go_on_rising(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    tokens = [run.token]
    for _ in range(3):
        await settle(store, worker, run, Cause.GAVE_UP)
        await store.redrive([run.job_id])
        (run,) = await claim(store, worker)
        tokens.append(run.token)
    assert tokens == sorted(set(tokens))


async def test_the_last_attempt_becomes_one_of_its_record(backend: Backend, store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    await settle(store, worker, run, Cause.FAILED)
    (run,) = await claim(store, worker)
    await backend.clock.advance(SECOND)
    await settle(store, worker, run, Cause.GAVE_UP)
    before = await store.attempts(run.job_id)
    assert [attempt.cause for attempt in before] == ["failed", "gave_up"]
    await backend.clock.advance(SECOND)
    await store.redrive([run.job_id])
    assert await store.attempts(run.job_id) == before
    (run,) = await claim(store, worker)
    await settle(store, worker, run)
    assert [attempt.cause for attempt in await store.attempts(run.job_id)] == ["failed", "gave_up", "returned"]


async def test_a_job_that_never_ran_has_no_attempt_to_keep(store: Store) -> None:
    job_id = await submit(store)
    await store.cancel(job_id)
    await store.redrive([job_id])
    assert await store.attempts(job_id) == []


async def test_a_job_cancelled_between_two_tries_keeps_each_attempt_once(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    await settle(store, worker, run, Cause.FAILED)
    await store.cancel(run.job_id)
    await store.redrive([run.job_id])
    assert [attempt.cause for attempt in await store.attempts(run.job_id)] == ["failed"]


async def test_every_end_but_success_can_be_redriven(backend: Backend, store: Store, worker: Worker) -> None:
    dead, stopped, late = [(await start(store, worker)) for _ in range(3)]
    await settle(store, worker, dead, Cause.GAVE_UP)
    await settle(store, worker, stopped, Cause.STOPPED)
    await settle(store, worker, late, Cause.EXPIRED)
    cancelled = await submit(store, delay=HOUR)
    await store.cancel(cancelled)
    expired = await submit(store, delay=HOUR, start_by=backend.clock.now() + SECOND)
    await backend.clock.advance(2 * SECOND)
    await store.expire()
    dropped = await submit(store, "dropped")
    gate = await store.close_gate(GateSpec(mode=GateMode.DROP, kind="dropped"))
    await store.drop_gated()
    await store.open_gate(gate.id)
    ids = {dead.job_id, stopped.job_id, late.job_id, cancelled, expired, dropped}
    assert set(await store.redrive(list(ids))) == ids
    assert set(in_order(await claim(store, worker))) == ids


async def test_what_cannot_be_redriven_is_left_out(store: Store, worker: Worker) -> None:
    done = await start(store, worker)
    await finish(store, worker, [done])
    running = await start(store, worker)
    waiting = await submit(store, delay=HOUR)
    dead = await start(store, worker)
    await settle(store, worker, dead, Cause.GAVE_UP)
    asked = [uuid4(), done.job_id, running.job_id, dead.job_id, waiting]
    assert await store.redrive(asked) == [dead.job_id]
    assert await state_of(store, done.job_id) is State.SUCCEEDED
    assert await state_of(store, running.job_id) is State.RUNNING
    assert await store.redrive([]) == []


async def test_a_job_is_redriven_once_however_often_it_is_named(store: Store) -> None:
    job_id = await submit(store)
    await store.cancel(job_id)
    assert await store.redrive([job_id, job_id]) == [job_id]
    assert await store.redrive([job_id]) == []
    await check_conserved(store, [job_id])


async def test_a_start_deadline_that_has_passed_is_removed(backend: Backend, store: Store, worker: Worker) -> None:
    """Else the job would expire again at once."""
    soon, far = backend.clock.now() + SECOND, backend.clock.now() + HOUR
    passed = await submit(store, start_by=soon)
    ahead = await submit(store, start_by=far)
    await backend.clock.advance(MINUTE)
    assert await store.expire() == 1
    await store.cancel(ahead)
    await store.redrive([passed, ahead])
    assert ((await store.get(passed)).start_by, (await store.get(ahead)).start_by) == (None, far)
    assert await store.expire() == 0
    assert len(await claim(store, worker)) == 2


async def test_a_unique_key_that_is_taken_keeps_a_job_where_it_is(store: Store) -> None:
    old = await submit(store, unique_key="u")
    await store.cancel(old)
    new = await submit(store, unique_key="u")
    assert await store.redrive([old]) == []
    assert await state_of(store, old) is State.CANCELLED
    await store.cancel(new)
    got = await store.redrive([old, new])
    assert len(got) == 1, "the two want the same key"
    await check_conserved(store, [old, new])


async def test_a_tenant_cannot_redrive_what_is_not_theirs(store: Store) -> None:
    mine, theirs = await submit(store, tenant="mine"), await submit(store, tenant="theirs")
    await store.cancel(mine)
    await store.cancel(theirs)
    assert await store.redrive([mine, theirs], tenant="mine") == [mine]
    assert await store.redrive([theirs], tenant="nobody") == []
    assert await state_of(store, theirs) is State.CANCELLED


async def test_an_idempotency_key_still_answers_with_the_job(store: Store) -> None:
    job_id = await submit(store, idempotency_key="k")
    await store.cancel(job_id)
    await store.redrive([job_id])
    assert await store.submit([a_job(idempotency_key="k")]) == [Submitted(job_id, created=False)]


async def test_limits_hold_for_redriven_jobs(store: Store, worker: Worker) -> None:
    await store.set_limit("l", 1)
    runs = [await start(store, worker, limit_keys=("l",))]
    await settle(store, worker, runs[0], Cause.GAVE_UP)
    other = await start(store, worker, limit_keys=("l",))
    await store.redrive([runs[0].job_id])
    assert await claim(store, worker) == []
    assert await state_of(store, runs[0].job_id) is State.LIMITED
    await finish(store, worker, [other])
    assert in_order(await claim(store, worker)) == [runs[0].job_id]


@pytest.mark.parametrize("cause", [Cause.RETURNED, Cause.GAVE_UP, Cause.FAILED])
async def test_the_outcome_of_a_run_before_the_redrive_changes_nothing(
    backend: Backend, store: Store, worker: Worker, cause: Cause
) -> None:
    dying = await store.register(a_worker(ttl=timedelta(seconds=5)))
    old = await start(store, dying)
    await backend.clock.advance(5 * SECOND)
    await store.reap(dying.id, dying.beat, max_losses=1)
    await store.redrive([old.job_id])
    assert await settle(store, dying, old, cause) is Verdict.STALE
    (run,) = await claim(store, worker)
    assert await settle(store, dying, old, cause) is Verdict.STALE
    assert await settle(store, worker, run) is Verdict.ACCEPTED


async def test_a_redriven_job_that_is_finished_again_is_listed_once(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    for _ in range(3):
        await settle(store, worker, run, Cause.GAVE_UP)
        await check_conserved(store, [run.job_id])
        await store.redrive([run.job_id])
        (run,) = await claim(store, worker)
    await finish(store, worker, [run])
    await check_conserved(store, [run.job_id])
    assert len(await store.attempts(run.job_id)) == 4
