"""Cancelling: at once while a job waits, by asking while it runs, and never undone by a retry."""

from uuid import uuid4

import pytest

from tests.builders import HOUR, NOT_RETURNED, SECOND, a_worker
from tests.contract.backends import Backend
from tests.contract.steps import check_conserved, claim, finish, settle, start, submit
from tidewheel.errors import NotFound
from tidewheel.model.outcome import Verdict
from tidewheel.model.states import Cause, State
from tidewheel.model.worker import Reaped, Worker
from tidewheel.store.base import Store


@pytest.mark.parametrize("delay", [None, HOUR])
async def test_a_waiting_job_is_cancelled_at_once_and_never_starts(
    backend: Backend, store: Store, worker: Worker, delay: object
) -> None:
    job_id = await submit(store, delay=delay)
    job = await store.cancel(job_id, reason="no longer needed")
    assert (job.id, job.state, job.cancelling, job.finished_at) == (
        job_id,
        State.CANCELLED,
        False,
        backend.clock.now(),
    )
    assert job == await store.get(job_id)
    await backend.clock.advance(HOUR)
    await store.beat([worker.id])
    assert await claim(store, worker) == []
    assert await store.attempts(job_id) == []
    await check_conserved(store, [job_id])


async def test_a_running_job_is_asked_to_stop(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    job = await store.cancel(run.job_id)
    assert (job.state, job.cancelling, job.finished_at) == (State.RUNNING, True, None)
    (beat,) = await store.beat([worker.id])
    assert beat.cancelling == ((run.job_id, run.token),)
    (owned,) = await store.owned(worker.id)
    assert owned.cancelling


async def test_only_runs_that_were_asked_to_stop_are_told(store: Store, worker: Worker) -> None:
    other = await store.register(a_worker())
    run = await start(store, worker)
    await start(store, other)
    await store.cancel(run.job_id)
    beats = {beat.worker_id: beat.cancelling for beat in await store.beat([worker.id, other.id])}
    assert beats == {worker.id: ((run.job_id, run.token),), other.id: ()}
    await settle(store, worker, run, Cause.STOPPED)
    assert [beat.cancelling for beat in await store.beat([worker.id])] == [()]


async def test_a_result_that_was_reached_before_the_stop_stands(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    await store.cancel(run.job_id)
    assert await settle(store, worker, run) is Verdict.ACCEPTED
    assert (await store.get(run.job_id)).state is State.SUCCEEDED


@pytest.mark.parametrize("cause", NOT_RETURNED)
async def test_any_other_end_is_the_cancellation(store: Store, worker: Worker, cause: Cause) -> None:
    run = await start(store, worker)
    await store.cancel(run.job_id)
    assert await settle(store, worker, run, cause) is Verdict.ACCEPTED
    job = await store.get(run.job_id)
    assert (job.state, job.failures, job.losses) == (State.CANCELLED, 0, 0)
    assert await claim(store, worker) == []


@pytest.mark.parametrize("how", ["reap", "deregister"])
async def test_the_end_of_its_worker_is_the_cancellation(backend: Backend, store: Store, how: str) -> None:
    dying = await store.register(a_worker(ttl=5 * SECOND))
    run = await start(store, dying)
    await store.cancel(run.job_id)
    await backend.clock.advance(6 * SECOND)
    reaped = await (store.reap(dying.id, dying.beat) if how == "reap" else store.deregister(dying.id))
    assert reaped == Reaped(cancelled=1)
    assert (await store.get(run.job_id)).state is State.CANCELLED


async def test_a_job_that_waits_for_its_next_try_is_cancelled(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    await settle(store, worker, run, Cause.FAILED, delay=HOUR)
    assert (await store.cancel(run.job_id)).state is State.CANCELLED
    assert [attempt.cause for attempt in await store.attempts(run.job_id)] == ["failed"]


@pytest.mark.parametrize("cause", [Cause.RELEASED, Cause.SNOOZED])
async def test_a_run_that_was_given_back_is_no_attempt_of_a_job_cancelled_later(
    store: Store, worker: Worker, cause: Cause
) -> None:
    run = await start(store, worker)
    await settle(store, worker, run, cause, delay=HOUR)
    await store.cancel(run.job_id)
    assert await store.attempts(run.job_id) == []
    await store.redrive([run.job_id])
    assert await store.attempts(run.job_id) == []


async def test_asking_twice_is_asking_once(backend: Backend, store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    first = await store.cancel(run.job_id)
    await backend.clock.advance(SECOND)
    again = await store.cancel(run.job_id)
    assert (again.state, again.cancelling, again.token) == (first.state, True, first.token)
    await settle(store, worker, run, Cause.STOPPED)
    ended = await store.get(run.job_id)
    await backend.clock.advance(SECOND)
    assert await store.cancel(run.job_id) == ended


@pytest.mark.parametrize("cause", [Cause.RETURNED, Cause.GAVE_UP, Cause.EXPIRED])
async def test_a_finished_job_stays_as_it_is(backend: Backend, store: Store, worker: Worker, cause: Cause) -> None:
    run = await start(store, worker)
    await finish(store, worker, [run], cause)
    before = await store.get(run.job_id)
    await backend.clock.advance(SECOND)
    assert await store.cancel(run.job_id) == before
    assert await store.get(run.job_id) == before


async def test_an_unknown_job_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound):
        await store.cancel(uuid4())


async def test_a_job_of_another_tenant_is_not_found(store: Store, worker: Worker) -> None:
    waiting = await submit(store, tenant="theirs", delay=HOUR)
    running = (await start(store, worker, tenant="theirs")).job_id
    for job_id in (waiting, running):
        before = await store.get(job_id)
        with pytest.raises(NotFound):
            await store.cancel(job_id, tenant="mine")
        with pytest.raises(NotFound):
            await store.cancel(job_id, tenant="nobody")
        assert await store.get(job_id) == before
        assert (await store.cancel(job_id, tenant="theirs")).id == job_id


async def test_a_redriven_job_is_no_longer_asked_to_stop(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    await store.cancel(run.job_id)
    await settle(store, worker, run, Cause.STOPPED)
    assert await store.redrive([run.job_id]) == [run.job_id]
    (again,) = await claim(store, worker)
    assert not again.cancelling
    assert [beat.cancelling for beat in await store.beat([worker.id])] == [()]
    await settle(store, worker, again, Cause.FAILED)
    assert (await store.get(run.job_id)).state is State.QUEUED


async def test_the_reason_is_kept(store: Store, worker: Worker) -> None:
    waiting = await submit(store, delay=HOUR)
    job = await store.cancel(waiting, reason="sold out")
    assert job.error is not None
    assert (job.error.reason, job.error.message) == ("cancelled", "sold out")
    run = await start(store, worker)
    await store.cancel(run.job_id, reason="sold out")
    await settle(store, worker, run, Cause.STOPPED)
    ended = await store.get(run.job_id)
    assert ended.error is not None
    assert (ended.error.reason, ended.error.message) == ("cancelled", "sold out")
