"""Settling: a run ends once, by its own worker and token, and moves its job by the transition table."""

import json
from uuid import uuid4

import msgspec
import pytest

from tests.builders import MINUTE, NOT_RETURNED, SECOND, a_worker, outcome_of, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import check_conserved, claim, finish, in_order, settle, start, state_of, submit
from tidewheel.errors import Invalid
from tidewheel.model.job import Attempt, Run
from tidewheel.model.outcome import (
    MAX_LOSSES,
    MAX_RESULT_BYTES,
    REPORTABLE,
    Failure,
    Outcome,
    Verdict,
    own_location,
)
from tidewheel.model.states import FINAL, Cause, State, end_of_run, move
from tidewheel.model.worker import Worker
from tidewheel.store.base import JobFilter, Store

ACCEPTED, REPEATED, STALE = Verdict.ACCEPTED, Verdict.REPEATED, Verdict.STALE
BROKEN = Failure(reason="error", message="boom", detail='Traceback:\n  "x"')


@pytest.mark.parametrize("cause", sorted(REPORTABLE))
@pytest.mark.parametrize("cancelled", [False, True])
async def test_every_end_moves_the_job_as_the_table_says(
    backend: Backend, store: Store, worker: Worker, cause: Cause, *, cancelled: bool
) -> None:
    run = await start(store, worker)
    if cancelled:
        await store.cancel(run.job_id)
    await backend.clock.advance(SECOND)
    assert await settle(store, worker, run, cause, delay=MINUTE) is ACCEPTED
    job, now = await store.get(run.job_id), backend.clock.now()
    assert job.state is move(State.RUNNING, end_of_run(cause, cancelling=cancelled))
    assert (job.token, job.updated_at, job.last_ended_at, job.cancelling) == (run.token, now, now, False)
    if job.state in FINAL:
        assert (job.finished_at, job.last_worker) == (now, worker.id)
    else:
        assert (job.finished_at, job.run_at, job.due_at) == (None, now + MINUTE, run.due_at)
    if not cancelled:
        assert job.failures == (cause in (Cause.FAILED, Cause.GAVE_UP))
        assert job.losses == (cause is Cause.CRASHED)
    assert await store.owned(worker.id) == []
    await check_conserved(store, [run.job_id])


async def test_a_result_is_kept(backend: Backend, store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    began = backend.clock.now() + SECOND
    await backend.clock.advance(3 * SECOND)
    result = '{"ok": [1, "ü", null]}'
    place = own_location(run.job_id, run.token)
    await settle(store, worker, run, result=result, result_location=place, started_at=began)
    job = await store.get(run.job_id)
    assert (job.state, job.result, job.result_location) == (State.SUCCEEDED, {"ok": [1, "ü", None]}, place)
    assert (job.last_started_at, job.last_ended_at, job.error) == (began, backend.clock.now(), None)


@pytest.mark.parametrize("cause", [Cause.RETURNED, Cause.FAILED])
async def test_a_result_is_nowhere_but_at_the_place_of_its_own_run(store: Store, worker: Worker, cause: Cause) -> None:
    other, *runs = [await start(store, worker) for _ in range(5)]
    places = [
        own_location(other.job_id, other.token),
        own_location(runs[1].job_id, runs[1].token + 1),
        f"blob:sha256/ab/{'c' * 62}",
        f"blob:outputs/{runs[3].job_id}/1/files/result.json",
    ]
    for run, place in zip(runs, places, strict=True):
        assert await settle(store, worker, run, cause, result=None, result_location=place) is Verdict.UNSTORABLE
        job = await store.get(run.job_id)
        assert (job.state, job.result_location) == (State.DEAD, None)
        assert job.error is not None
        assert "result_location" in job.error.message


async def test_a_result_may_be_nothing(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    assert await settle(store, worker, run, result=None) is ACCEPTED
    assert (await store.get(run.job_id)).result is None


async def test_the_end_of_a_job_keeps_its_error(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    await settle(store, worker, run, Cause.GAVE_UP, error=BROKEN)
    job = await store.get(run.job_id)
    assert (job.state, job.error, job.failures) == (State.DEAD, BROKEN, 1)


async def test_failed_and_crashed_tries_leave_attempts(backend: Backend, store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    expected = []
    for cause in (Cause.FAILED, Cause.CRASHED, Cause.SNOOZED, Cause.RELEASED, Cause.FAILED, Cause.RETURNED):
        await backend.clock.advance(SECOND)
        error = BROKEN if cause in (Cause.FAILED, Cause.CRASHED) else None
        assert await settle(store, worker, run, cause, error=error) is ACCEPTED
        attempt = Attempt(
            job_id=run.job_id,
            token=run.token,
            worker_id=worker.id,
            started_at=run.claimed_at,
            ended_at=backend.clock.now(),
            cause=cause.value,
            error=error,
        )
        if cause not in (Cause.SNOOZED, Cause.RELEASED):
            expected.append(attempt)
        if cause is not Cause.RETURNED:
            (run,) = await claim(store, worker)
    assert await store.attempts(run.job_id) == expected


async def test_failures_and_losses_are_counted_apart(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    for cause in (Cause.FAILED, Cause.CRASHED, Cause.FAILED, Cause.CRASHED, Cause.FAILED):
        await settle(store, worker, run, cause)
        (run,) = await claim(store, worker)
    assert (run.failures, run.losses) == (3, 2)


async def test_the_third_crash_quarantines_the_job(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    for _ in range(MAX_LOSSES - 1):
        await settle(store, worker, run, Cause.CRASHED)
        (run,) = await claim(store, worker)
    assert await settle(store, worker, run, Cause.CRASHED) is ACCEPTED
    job = await store.get(run.job_id)
    assert (job.state, job.losses, job.failures) == (State.DEAD, 3, 0)
    assert job.error is not None
    attempts = await store.attempts(run.job_id)
    assert len(attempts) == 3
    assert await store.attempts(run.job_id, limit=2) == attempts[1:], "the last ones"
    assert await store.attempts(run.job_id, limit=2, before=attempts[1].token) == attempts[:1]
    assert await store.attempts(run.job_id, limit=1, before=attempts[2].token) == attempts[1:2]
    assert await claim(store, worker) == []


async def test_a_delay_holds_the_next_try_back(backend: Backend, store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    await settle(store, worker, run, Cause.FAILED, delay=10 * SECOND)
    await backend.clock.advance(9 * SECOND)
    assert await claim(store, worker) == []
    await backend.clock.advance(SECOND)
    assert in_order(await claim(store, worker)) == [run.job_id]


@pytest.mark.parametrize("cause", sorted(REPORTABLE))
@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_repeated_outcome_is_known_and_changes_nothing(
    backend: Backend, store: Store, worker: Worker, cause: Cause, *, cancelled: bool
) -> None:
    """The answer was lost on its way, and the worker says it again."""
    run = await start(store, worker)
    if cancelled:
        await store.cancel(run.job_id)
    assert await settle(store, worker, run, cause) is ACCEPTED
    before, attempts = await store.get(run.job_id), await store.attempts(run.job_id)
    await backend.clock.advance(SECOND)
    assert await settle(store, worker, run, cause) is REPEATED
    assert await store.get(run.job_id) == before
    assert await store.attempts(run.job_id) == attempts


async def test_a_repeated_third_crash_is_known(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    for _ in range(2):
        await settle(store, worker, run, Cause.CRASHED)
        (run,) = await claim(store, worker)
    assert await settle(store, worker, run, Cause.CRASHED) is ACCEPTED
    assert await settle(store, worker, run, Cause.CRASHED) is REPEATED
    assert (await store.get(run.job_id)).losses == 3


async def test_a_repeated_failure_is_known_after_the_next_claim(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    await settle(store, worker, run, Cause.FAILED)
    (again,) = await claim(store, worker)
    assert await settle(store, worker, run, Cause.FAILED) is REPEATED
    job = await store.get(run.job_id)
    assert (job.state, job.failures, job.token) == (State.RUNNING, 1, again.token)


async def test_of_two_outcomes_of_one_run_the_first_counts(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    verdicts = await store.settle(worker.id, [outcome_of(run), outcome_of(run)])
    assert verdicts[0] is ACCEPTED
    assert verdicts[1] in (REPEATED, STALE)
    await check_conserved(store, [run.job_id])


@pytest.mark.parametrize("cause", sorted(REPORTABLE))
async def test_a_stale_token_changes_nothing(store: Store, worker: Worker, cause: Cause) -> None:
    """Also from the very worker that holds the newer one."""
    old = await start(store, worker)
    await settle(store, worker, old, Cause.RELEASED)
    (new,) = await claim(store, worker)
    before = await store.get(new.job_id)
    assert await settle(store, worker, old, cause) is not ACCEPTED
    assert await store.get(new.job_id) == before
    assert await settle(store, worker, new) is ACCEPTED


@pytest.mark.parametrize("cause", sorted(REPORTABLE))
async def test_another_worker_changes_nothing(store: Store, worker: Worker, cause: Cause) -> None:
    run = await start(store, worker)
    other = await store.register(a_worker())
    before = await store.get(run.job_id)
    assert await settle(store, other, run, cause) is STALE
    assert await store.get(run.job_id) == before


async def test_a_token_from_the_future_or_an_unknown_job_is_stale(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    made_up = [Outcome(run.job_id, run.token + 1, Cause.RETURNED), Outcome(uuid4(), 1, Cause.FAILED)]
    assert await store.settle(worker.id, made_up) == [STALE, STALE]
    assert await state_of(store, run.job_id) is State.RUNNING


async def test_a_waiting_job_cannot_be_settled(store: Store, worker: Worker) -> None:
    job_id = await submit(store)
    assert await store.settle(worker.id, [Outcome(job_id, 0, Cause.RETURNED)]) == [STALE]
    assert await state_of(store, job_id) is State.QUEUED


async def _lose(backend: Backend, store: Store, losses: int = 3) -> tuple[Worker, Run]:
    dying = await store.register(a_worker(ttl=5 * SECOND))
    run = await start(store, dying)
    await backend.clock.advance(6 * SECOND)
    assert await store.reap(dying.id, dying.beat, max_losses=losses) is not None
    return dying, run


@pytest.mark.parametrize("cause", sorted(REPORTABLE))
@pytest.mark.parametrize("losses", [1, 3])
async def test_the_outcome_of_a_lost_run_is_stale_and_not_a_repetition(
    backend: Backend, store: Store, cause: Cause, losses: int
) -> None:
    """The store wrote an end of this very run, but not this one: who hears `repeated` would believe it was kept."""
    dying, run = await _lose(backend, store, losses)
    before = await store.get(run.job_id)
    quarantined_by_a_crash = cause is Cause.CRASHED and losses == 1  # looks the same, and is as good as kept
    assert await settle(store, dying, run, cause) is STALE or quarantined_by_a_crash
    assert await store.get(run.job_id) == before


async def test_the_outcome_of_a_run_that_was_handed_back_is_stale(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    await store.deregister(worker.id)
    assert await settle(store, worker, run) is STALE
    assert await state_of(store, run.job_id) is State.QUEUED


async def test_a_late_result_does_not_overwrite_that_of_the_next_run(
    backend: Backend, store: Store, worker: Worker
) -> None:
    dying, lost = await _lose(backend, store)
    (run,) = await claim(store, worker)
    assert await settle(store, dying, lost, result='"old"') is STALE
    assert await settle(store, worker, run, result='"new"') is ACCEPTED
    assert await settle(store, dying, lost, result='"old"') is STALE
    assert await settle(store, dying, lost, Cause.FAILED) is STALE
    assert (await store.get(run.job_id)).result == "new"


async def test_a_result_counts_while_the_lease_has_passed_but_nobody_took_the_run(
    backend: Backend, store: Store
) -> None:
    late = await store.register(a_worker(ttl=5 * SECOND))
    run = await start(store, late)
    await backend.clock.advance(MINUTE)
    assert await settle(store, late, run) is ACCEPTED


async def test_verdicts_come_in_the_order_of_the_outcomes(store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(6))
    runs = await claim(store, worker)
    await finish(store, worker, [runs[1]])
    stale = Outcome(uuid4(), 1, Cause.RETURNED)
    batch = [outcome_of(runs[5], Cause.FAILED), outcome_of(runs[1]), stale, outcome_of(runs[0]), outcome_of(runs[2])]
    assert await store.settle(worker.id, batch) == [ACCEPTED, REPEATED, STALE, ACCEPTED, ACCEPTED]
    states = [await state_of(store, run.job_id) for run in runs]
    done, queued, running = State.SUCCEEDED, State.QUEUED, State.RUNNING
    assert states == [done, done, done, running, running, queued]
    assert await store.settle(worker.id, []) == []


async def test_a_batch_mixes_every_cause(store: Store, worker: Worker) -> None:
    causes = sorted(REPORTABLE) * 5
    ids = [answer.job_id for answer in await store.submit(some_jobs(len(causes)))]
    runs = await claim(store, worker, len(ids))
    batch = [outcome_of(run, cause) for run, cause in zip(runs, causes, strict=True)]
    assert await store.settle(worker.id, batch) == [ACCEPTED] * len(batch)
    for run, cause in zip(runs, causes, strict=True):
        assert await state_of(store, run.job_id) is move(State.RUNNING, cause)
    await check_conserved(store, ids)


@pytest.mark.parametrize("size", [1, 2, 50])
async def test_an_outcome_that_cannot_be_stored_disturbs_no_other(
    backend: Backend, store: Store, worker: Worker, size: int
) -> None:
    ids = [answer.job_id for answer in await store.submit(some_jobs(size))]
    runs = await claim(store, worker, size)
    bad = runs[size // 3]
    await backend.refuse_history_of(bad.job_id)
    verdicts = await store.settle(worker.id, [outcome_of(run) for run in runs])
    assert verdicts == [Verdict.UNSTORABLE if run is bad else ACCEPTED for run in runs]
    job = await store.get(bad.job_id)
    assert job.error is not None
    assert (job.state, job.error.reason, job.result) == (State.DEAD, "unstorable", None)
    assert await store.owned(worker.id) == []
    await check_conserved(store, ids)


BAD_RESULTS = {
    "surrogate": '"\ud800"',
    "escaped surrogate": '"\\ud800"',
    "nul": '"\0"',
    "escaped nul": '"\\u0000"',
    "no json": "no json",
    "cut off": '{"a":',
    "empty": "",
    "infinite": "1e999",
    "beyond 64 bits": "18446744073709551616",
    "deep": "[" * 65 + "]" * 65,
    "deeper": "[" * 3000 + "]" * 3000,
    "large": '"' + "x" * MAX_RESULT_BYTES + '"',
}


@pytest.mark.parametrize("text", BAD_RESULTS.values(), ids=BAD_RESULTS)
async def test_a_result_that_is_no_text_or_no_json_disturbs_no_other(store: Store, worker: Worker, text: str) -> None:
    """The worker is ours, but its task is not; whatever comes must end the job and not the batch."""
    await store.submit(some_jobs(5))
    runs = await claim(store, worker)
    batch = [outcome_of(run, result=text if run is runs[2] else "1") for run in runs]
    verdicts = await store.settle(worker.id, batch)
    assert verdicts == [ACCEPTED, ACCEPTED, Verdict.UNSTORABLE, ACCEPTED, ACCEPTED]
    job = await store.get(runs[2].job_id)
    assert job.error is not None
    assert (job.state, job.error.reason) == (State.DEAD, "unstorable")
    assert {job.id for job in (await store.find(JobFilter())).jobs} == {run.job_id for run in runs}
    assert await settle(store, worker, runs[2], result=text) is Verdict.UNSTORABLE, "also when it is said again"


@pytest.mark.parametrize("text", ["[" * 64 + "]" * 64, '"' + "x" * (MAX_RESULT_BYTES - 2) + '"', "1e308"])
async def test_a_result_that_is_just_good_enough_is_kept(store: Store, worker: Worker, text: str) -> None:
    run = await start(store, worker)
    assert await settle(store, worker, run, result=text) is ACCEPTED
    assert (await store.get(run.job_id)).result == json.loads(text)


@pytest.mark.parametrize("cause", [Cause.FAILED, Cause.GAVE_UP])
@pytest.mark.parametrize("text", ["nul\0", "half \ud800"])
@pytest.mark.parametrize("field", ["reason", "message", "detail"])
async def test_an_error_that_no_store_can_hold_ends_the_job(
    store: Store, worker: Worker, cause: Cause, text: str, field: str
) -> None:
    run = await start(store, worker)
    error = msgspec.structs.replace(BROKEN, **{field: text})
    assert await settle(store, worker, run, cause, error=error) is Verdict.UNSTORABLE
    job = await store.get(run.job_id)
    assert job.error is not None
    assert (job.state, job.error.reason) == (State.DEAD, "unstorable")
    assert f"error.{field}" in job.error.message
    assert await settle(store, worker, run, cause, error=error) is Verdict.UNSTORABLE, "also when it is said again"


async def test_a_flawed_outcome_of_a_run_of_another_is_stale(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    other = await store.register(a_worker())
    assert await settle(store, other, run, result="1e999") is STALE
    assert await state_of(store, run.job_id) is State.RUNNING


async def test_an_unstorable_outcome_gives_its_limit_key_back(backend: Backend, store: Store, worker: Worker) -> None:
    await store.set_limit("l", 1)
    run = await start(store, worker, limit_keys=("l",))
    waiting = await submit(store, limit_keys=("l",))
    await claim(store, worker)
    await backend.refuse_history_of(run.job_id)
    assert await settle(store, worker, run) is Verdict.UNSTORABLE
    assert in_order(await claim(store, worker)) == [waiting]


@pytest.mark.parametrize("cause", sorted(set(Cause) - REPORTABLE))
async def test_what_only_the_store_may_find_cannot_be_reported(store: Store, worker: Worker, cause: Cause) -> None:
    run = await start(store, worker)
    with pytest.raises(Invalid):
        await settle(store, worker, run, cause)
    assert await state_of(store, run.job_id) is State.RUNNING


def test_the_list_of_causes_is_whole() -> None:
    assert {Cause.RETURNED, *NOT_RETURNED} == REPORTABLE


async def test_a_stale_and_a_current_token_in_one_batch_end_the_job_once(store: Store, worker: Worker) -> None:
    stale = await start(store, worker)
    await settle(store, worker, stale, Cause.RELEASED)
    (current,) = await claim(store, worker)
    batch = [outcome_of(stale, result='"old"'), outcome_of(current, result='"new"')]
    verdicts = await store.settle(worker.id, batch)
    assert (verdicts[0] is ACCEPTED, verdicts[1]) == (False, ACCEPTED)
    job = await store.get(current.job_id)
    assert (job.state, job.token, job.result) == (State.SUCCEEDED, current.token, "new")
    await check_conserved(store, [current.job_id])
    assert [attempt.token for attempt in await store.attempts(current.job_id)] == [current.token]


async def test_a_job_never_goes_back_to_before_now(backend: Backend, store: Store, worker: Worker) -> None:
    """Those who look for due jobs may already have passed any earlier time."""
    run = await start(store, worker)
    await settle(store, worker, run, Cause.SNOOZED, delay=-MINUTE)
    assert (await store.get(run.job_id)).run_at == backend.clock.now()
