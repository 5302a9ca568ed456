"""Idempotency keys, by which a request may be repeated; and unique keys, by which a job is alone while active."""

from typing import Any

import pytest

from tests.builders import DAY, HOUR, a_job
from tests.contract.backends import Backend
from tests.contract.steps import claim, everything, finish, settle, start, state_of, submit
from tidewheel.errors import AlreadyActive, KeyReused
from tidewheel.model.job import Options, Submitted
from tidewheel.model.outcome import Verdict
from tidewheel.model.states import FINAL, Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store
from tidewheel.tasks.ending import options_of


async def test_a_repeated_request_answers_with_the_first_job(store: Store) -> None:
    spec = a_job(args={"n": 1}, idempotency_key="k", delay=HOUR)
    (first,) = await store.submit([spec])
    for _ in range(3):
        assert await store.submit([spec]) == [Submitted(first.job_id, created=False)]
    assert len(await everything(store)) == 1


async def test_a_repeat_from_another_span_is_the_same_request(store: Store, worker: Worker) -> None:
    span, other = (Options(traceparent=f"00-{letter * 32}-{letter * 16}-01", tracestate="v=1") for letter in "ab")
    first = await submit(store, idempotency_key="k", options=span)
    assert await submit(store, idempotency_key="k", options=other) == first
    assert await submit(store, idempotency_key="k", options=Options(traceparent="nonsense")) == first
    assert (await store.get(first)).traceparent == span.traceparent
    (run,) = await claim(store, worker)
    assert options_of(run.options) == span, "the first one is what the run gets"


async def test_a_repeat_is_known_in_every_process(backend: Backend, store: Store) -> None:
    first = await submit(store, idempotency_key="k")
    other = await backend.open()
    assert await submit(other, idempotency_key="k") == first


@pytest.mark.parametrize("other", [{"args": {"n": 2}}, {"queue": "fast"}, {"delay": HOUR}, {"unique_key": "u"}])
async def test_a_key_with_another_request_is_refused(store: Store, other: dict[str, Any]) -> None:
    await submit(store, idempotency_key="k")
    with pytest.raises(KeyReused) as refusal:
        await submit(store, idempotency_key="k", **other)
    assert refusal.value.key == "k"
    assert len(await everything(store)) == 1


@pytest.mark.native("it is for the server, which asks its own store")
async def test_a_repeat_is_known_before_it_is_submitted(store: Store) -> None:
    first, other = a_job(idempotency_key="k"), a_job(idempotency_key="k", args={"n": 2})
    await store.submit([first, a_job(idempotency_key="k", tenant="acme")])
    asked = [first, a_job(), other, a_job(idempotency_key="new"), a_job(idempotency_key="k", tenant="new")]
    assert await store.seen_before(asked) == [True, False, True, False, False]
    assert len(await everything(store)) == 2


async def test_a_key_belongs_to_its_tenant(store: Store) -> None:
    first = await submit(store, idempotency_key="k", tenant="a")
    second = await submit(store, idempotency_key="k", tenant="b")
    assert first != second


@pytest.mark.parametrize("cause", [Cause.RETURNED, Cause.GAVE_UP, Cause.STOPPED])
async def test_a_key_is_remembered_after_its_job_has_ended(store: Store, worker: Worker, cause: Cause) -> None:
    run = await start(store, worker, idempotency_key="k")
    await finish(store, worker, [run], cause)
    assert await store.submit([a_job(idempotency_key="k")]) == [Submitted(run.job_id, created=False)]


async def test_a_key_is_remembered_for_a_day_after_the_end(backend: Backend, store: Store, worker: Worker) -> None:
    run = await start(store, worker, idempotency_key="k")
    await finish(store, worker, [run])
    await backend.clock.advance(23 * HOUR)
    await store.retire(dict.fromkeys(FINAL, HOUR))
    assert await store.submit([a_job(idempotency_key="k")]) == [Submitted(run.job_id, created=False)]


async def test_a_key_may_be_used_again_when_its_job_was_retired(backend: Backend, store: Store, worker: Worker) -> None:
    """It must not answer for ever with a job that nobody can find any more."""
    run = await start(store, worker, idempotency_key="k")
    await finish(store, worker, [run])
    await backend.clock.advance(4 * DAY)
    await store.prepare_days()
    await store.retire(dict.fromkeys(FINAL, DAY))
    assert (await store.submit([a_job(idempotency_key="k")]))[0].created


async def test_an_active_job_keeps_its_key_however_old_it_is(backend: Backend, store: Store) -> None:
    first = await submit(store, idempotency_key="k", delay=30 * DAY)
    await backend.clock.advance(6 * DAY)
    await store.retire(dict.fromkeys(FINAL, HOUR))
    assert await store.submit([a_job(idempotency_key="k", delay=30 * DAY)]) == [Submitted(first, created=False)]


async def test_the_idempotency_key_is_asked_before_the_unique_key(store: Store) -> None:
    """Who repeats a request because the answer was lost must not hear that the job is in its own way."""
    spec = a_job(idempotency_key="k", unique_key="u")
    (first,) = await store.submit([spec])
    assert await store.submit([spec]) == [Submitted(first.job_id, created=False)]


async def test_a_repeated_replace_does_not_cancel_what_it_made(store: Store) -> None:
    old = await submit(store, unique_key="u")
    spec = a_job(idempotency_key="k", unique_key="u", unique="replace")
    (first,) = await store.submit([spec])
    assert await store.submit([spec]) == [Submitted(first.job_id, created=False)]
    assert (await state_of(store, old), await state_of(store, first.job_id)) == (State.CANCELLED, State.QUEUED)


async def test_reject_names_the_active_job(store: Store) -> None:
    first = await submit(store, unique_key="u")
    with pytest.raises(AlreadyActive) as refusal:
        await submit(store, unique_key="u")
    assert (refusal.value.job_id, refusal.value.key) == (first, "u")
    assert len(await everything(store)) == 1


async def test_keep_answers_with_the_active_job(store: Store, worker: Worker) -> None:
    run = await start(store, worker, unique_key="u")
    answer = await store.submit([a_job(unique_key="u", unique="keep", args={"other": True})])
    assert answer == [Submitted(run.job_id, created=False)]
    assert len(await everything(store)) == 1


async def test_replace_cancels_the_waiting_job(backend: Backend, store: Store, worker: Worker) -> None:
    old = await submit(store, unique_key="u", args={"v": 1})
    new = await submit(store, unique_key="u", args={"v": 2}, unique="replace")
    replaced = await store.get(old)
    assert (replaced.state, replaced.finished_at) == (State.CANCELLED, backend.clock.now())
    assert [run.job_id for run in await claim(store, worker)] == [new]


async def test_replace_cancels_a_limited_job(store: Store, worker: Worker) -> None:
    await store.set_limit("l", 1)
    await start(store, worker, limit_keys=("l",))
    old = await submit(store, unique_key="u", limit_keys=("l",))
    assert await claim(store, worker) == []
    assert await state_of(store, old) is State.LIMITED
    await submit(store, unique_key="u", unique="replace")
    assert await state_of(store, old) is State.CANCELLED


async def test_replace_does_not_touch_a_running_job(store: Store, worker: Worker) -> None:
    run = await start(store, worker, unique_key="u")
    with pytest.raises(AlreadyActive):
        await submit(store, unique_key="u", unique="replace")
    assert await settle(store, worker, run) is Verdict.ACCEPTED
    assert len(await everything(store)) == 1


async def test_replace_in_one_batch_leaves_the_last(store: Store) -> None:
    specs = [a_job(unique_key="u", unique="replace", args={"v": v}) for v in range(3)]
    answers = await store.submit(specs)
    states = [await state_of(store, answer.job_id) for answer in answers]
    assert states == [State.CANCELLED, State.CANCELLED, State.QUEUED]
    assert all(answer.created for answer in answers)


async def test_reject_holds_within_one_batch(store: Store) -> None:
    with pytest.raises(AlreadyActive):
        await store.submit([a_job(unique_key="u"), a_job(unique_key="u")])
    assert await everything(store) == []


async def test_a_unique_key_belongs_to_its_tenant(store: Store) -> None:
    first = await submit(store, unique_key="u", tenant="a")
    assert await submit(store, unique_key="u", tenant="b") != first
    assert await submit(store, unique_key="u", tenant="b", unique="replace") != first
    assert await state_of(store, first) is State.QUEUED


@pytest.mark.parametrize("cause", [Cause.RETURNED, Cause.GAVE_UP, Cause.STOPPED, Cause.EXPIRED])
async def test_an_ended_job_frees_its_unique_key(store: Store, worker: Worker, cause: Cause) -> None:
    run = await start(store, worker, unique_key="u")
    await finish(store, worker, [run], cause)
    assert await submit(store, unique_key="u") != run.job_id


@pytest.mark.parametrize("cause", [Cause.FAILED, Cause.SNOOZED, Cause.RELEASED, Cause.CRASHED])
async def test_a_job_that_tries_again_keeps_its_unique_key(store: Store, worker: Worker, cause: Cause) -> None:
    run = await start(store, worker, unique_key="u")
    await finish(store, worker, [run], cause)
    with pytest.raises(AlreadyActive):
        await submit(store, unique_key="u")


async def test_a_cancelled_job_frees_its_unique_key(store: Store) -> None:
    job_id = await submit(store, unique_key="u")
    await store.cancel(job_id)
    assert await submit(store, unique_key="u") != job_id


async def test_a_job_that_is_asked_to_stop_keeps_its_unique_key_until_it_has(store: Store, worker: Worker) -> None:
    run = await start(store, worker, unique_key="u")
    await store.cancel(run.job_id)
    with pytest.raises(AlreadyActive):
        await submit(store, unique_key="u")
    await settle(store, worker, run, Cause.STOPPED)
    await submit(store, unique_key="u")


async def test_a_request_that_was_answered_with_a_kept_job_is_answered_with_it_again(
    store: Store, worker: Worker
) -> None:
    holder = await start(store, worker, unique_key="u")
    spec = a_job(idempotency_key="k", unique_key="u", unique="keep")
    assert await store.submit([spec, spec]) == [Submitted(holder.job_id, created=False)] * 2
    await finish(store, worker, [holder])
    assert await store.submit([spec]) == [Submitted(holder.job_id, created=False)]
    assert [job.id for job in await everything(store)] == [holder.job_id]


async def test_a_job_of_the_same_batch_is_kept_and_remembered(store: Store, worker: Worker) -> None:
    spec = a_job(idempotency_key="k", unique_key="u", unique="keep")
    holder, kept, repeated = await store.submit([a_job(unique_key="u"), spec, spec])
    assert (holder.created, kept, repeated) == (True, Submitted(holder.job_id, created=False), kept)
    await finish(store, worker, await claim(store, worker))
    assert await store.submit([spec]) == [kept]


async def test_a_key_with_another_request_in_one_batch_is_refused(store: Store) -> None:
    with pytest.raises(KeyReused):
        await store.submit([a_job(idempotency_key="k"), a_job(idempotency_key="k", args={"n": 2})])
    assert await everything(store) == []
