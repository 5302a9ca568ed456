"""The chores of the keeper: each does a bounded piece, says how much, and may be done twice without harm."""

import asyncio
from datetime import timedelta

import pytest

from tests.builders import DAY, HOUR, MINUTE, SECOND, a_job, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import check_conserved, claim, everything, finish, settle, start, state_of, submit
from tidewheel.errors import NotFound
from tidewheel.model.outcome import Verdict
from tidewheel.model.states import FINAL, Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import Count, Store


async def test_a_waiting_job_expires_when_its_start_deadline_has_passed(
    backend: Backend, store: Store, worker: Worker
) -> None:
    start_by = backend.clock.now() + MINUTE
    late = await submit(store, start_by=start_by)
    delayed = await submit(store, start_by=start_by, delay=HOUR)
    later = await submit(store, start_by=start_by + MINUTE)
    without = await submit(store)
    await backend.clock.advance(MINUTE - SECOND)
    assert await store.expire() == 0
    await backend.clock.advance(2 * SECOND)
    assert await store.expire() == 2
    for job_id in (late, delayed):
        job = await store.get(job_id)
        assert (job.state, job.finished_at) == (State.EXPIRED, backend.clock.now())
    assert {run.job_id for run in await claim(store, worker)} == {later, without}
    await check_conserved(store, [late, delayed, later, without])


async def test_a_running_job_does_not_expire(backend: Backend, store: Store, worker: Worker) -> None:
    run = await start(store, worker, start_by=backend.clock.now() + SECOND)
    await backend.clock.advance(MINUTE)
    assert await store.expire() == 0
    assert await settle(store, worker, run) is Verdict.ACCEPTED


async def test_a_limited_job_expires_too(backend: Backend, store: Store, worker: Worker) -> None:
    await store.set_limit("l", 1)
    await start(store, worker, limit_keys=("l",))
    job_id = await submit(store, limit_keys=("l",), start_by=backend.clock.now() + SECOND)
    assert await claim(store, worker) == []
    await backend.clock.advance(MINUTE)
    assert await store.expire() == 1
    assert await state_of(store, job_id) is State.EXPIRED


async def test_expiry_does_a_bounded_piece(backend: Backend, store: Store) -> None:
    await store.submit(some_jobs(25, start_by=backend.clock.now() + SECOND))
    await backend.clock.advance(MINUTE)
    assert [await store.expire(limit=10) for _ in range(4)] == [10, 10, 5, 0]


async def _counted(store: Store, tenant: str | None = None) -> dict[tuple[str, str, State, int | None], int]:
    counts = await store.counts(tenant=tenant)
    return {(row.tenant, row.kind, row.state, row.priority): row.jobs for row in counts.rows if row.jobs}


async def test_numbers_of_active_jobs_are_as_of_the_last_census(backend: Backend, store: Store, worker: Worker) -> None:
    await store.submit([*some_jobs(5, "a"), *some_jobs(3, "b", tenant="t", priority=0), a_job("a", delay=HOUR)])
    assert len(await claim(store, worker, 2, kinds=frozenset({"a"}))) == 2
    await store.take_census()
    taken = backend.clock.now()
    expected = {
        ("default", "a", State.QUEUED, 1): 4,
        ("default", "a", State.RUNNING, 1): 2,
        ("t", "b", State.QUEUED, 0): 3,
    }
    assert await _counted(store) == expected
    await backend.clock.advance(SECOND)
    await store.submit(some_jobs(7, "a"))
    assert await _counted(store) == expected
    assert (await store.counts()).as_of == taken
    await store.take_census()
    assert (await _counted(store))["default", "a", State.QUEUED, 1] == 11
    assert (await store.counts()).as_of == backend.clock.now()


async def test_numbers_of_finished_jobs_are_to_the_moment(backend: Backend, store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(6))
    runs = await claim(store, worker)
    await finish(store, worker, runs[:3])
    await finish(store, worker, runs[3:5], Cause.GAVE_UP)
    await store.cancel(runs[5].job_id)
    await settle(store, worker, runs[5], Cause.STOPPED)
    other = await (await backend.open()).counts()
    found = {(row.kind, row.state, row.priority): row.jobs for row in other.rows if row.state in FINAL}
    expected = {
        ("echo", State.SUCCEEDED, None): 3,
        ("echo", State.DEAD, None): 2,
        ("echo", State.CANCELLED, None): 1,
    }
    assert found == expected
    await store.take_census()
    assert {key[1:]: jobs for key, jobs in (await _counted(store)).items()} == expected


async def test_a_redriven_job_is_no_longer_counted_as_finished(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    await settle(store, worker, run, Cause.GAVE_UP)
    await store.redrive([run.job_id])
    await store.take_census()
    assert await _counted(store) == {("default", "echo", State.QUEUED, 1): 1}


async def test_counts_name_lanes_and_keep_tenants_apart(store: Store) -> None:
    await store.submit([a_job("k", queue="q", tenant="mine"), a_job("k", queue="q", tenant="theirs")])
    await store.take_census()
    assert (await store.counts(tenant="mine")).rows == [Count("mine", "q", "k", State.QUEUED, 1, 1)]
    assert (await store.counts(tenant="nobody")).rows == []
    assert len((await store.counts()).rows) == 2


async def _advance_days(backend: Backend, store: Store, days: int) -> None:
    """Let days pass while the keeper does what it must."""
    for _ in range(days):
        await backend.clock.advance(DAY)
        await store.prepare_days()


async def test_finished_jobs_are_removed_when_they_are_older_than_asked(
    backend: Backend, store: Store, worker: Worker
) -> None:
    old = await start(store, worker)
    await settle(store, worker, old, Cause.FAILED)
    (old,) = await claim(store, worker)
    await finish(store, worker, [old])
    waiting = await submit(store, delay=100 * DAY)
    await _advance_days(backend, store, 5)
    await store.beat([worker.id])
    new = await start(store, worker)
    await finish(store, worker, [new])
    assert await store.retire(dict.fromkeys(FINAL, 2 * DAY)) >= 1
    with pytest.raises(NotFound):
        await store.get(old.job_id)
    with pytest.raises(NotFound):
        await store.attempts(old.job_id)
    assert {job.id for job in await everything(store)} == {waiting, new.job_id}


async def test_states_that_are_not_named_are_kept(backend: Backend, store: Store, worker: Worker) -> None:
    done, dead = await start(store, worker), await start(store, worker)
    await finish(store, worker, [done])
    await finish(store, worker, [dead], Cause.GAVE_UP)
    await _advance_days(backend, store, 5)
    await store.retire({State.SUCCEEDED: DAY})
    assert [job.id for job in await everything(store)] == [dead.job_id]
    assert await store.retire({}) == 0
    assert [job.id for job in await everything(store)] == [dead.job_id]


async def test_nothing_younger_than_asked_is_removed(backend: Backend, store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    await finish(store, worker, [run])
    await _advance_days(backend, store, 3)
    assert await store.retire(dict.fromkeys(FINAL, 4 * DAY)) == 0
    assert (await store.get(run.job_id)).state is State.SUCCEEDED


async def test_retired_jobs_are_no_longer_counted(backend: Backend, store: Store, worker: Worker) -> None:
    await finish(store, worker, [await start(store, worker)])
    await _advance_days(backend, store, 5)
    await store.beat([worker.id])
    await finish(store, worker, [await start(store, worker)])
    await store.retire({State.SUCCEEDED: DAY})
    assert await _counted(store) == {("default", "echo", State.SUCCEEDED, None): 1}


async def test_attempts_of_a_job_that_still_waits_are_kept(backend: Backend, store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    await settle(store, worker, run, Cause.FAILED, delay=timedelta(days=30))
    await _advance_days(backend, store, 5)
    await store.retire(dict.fromkeys(FINAL, DAY))
    assert (await store.get(run.job_id)).failures == 1


async def test_days_are_prepared_once(backend: Backend, store: Store, worker: Worker) -> None:
    await store.prepare_days()
    assert await store.prepare_days() == 0
    await backend.clock.advance(5 * DAY)
    await store.prepare_days()
    assert await store.prepare_days() == 0
    await store.beat([worker.id])
    await finish(store, worker, [await start(store, worker)])


async def test_one_of_several_states_is_removed_alone(backend: Backend, store: Store, worker: Worker) -> None:
    dead = await start(store, worker)
    await finish(store, worker, [dead], Cause.GAVE_UP)
    cancelled = [await submit(store) for _ in range(3)]
    for job_id in cancelled:
        await store.cancel(job_id)
    await _advance_days(backend, store, 5)
    young = await submit(store)
    await store.cancel(young)
    await store.retire({State.CANCELLED: DAY}, limit=2)
    assert len(await everything(store)) == 3, "a bounded piece"
    assert (await _counted(store))["default", "echo", State.CANCELLED, None] == 2
    await store.retire({State.CANCELLED: DAY, State.SUCCEEDED: DAY}, limit=2)
    assert {job.id for job in await everything(store)} == {dead.job_id, young}
    expected = {("default", "echo", State.CANCELLED, None): 1, ("default", "echo", State.DEAD, None): 1}
    assert await _counted(store) == expected
    await store.retire(dict.fromkeys(FINAL, DAY))
    assert {job.id for job in await everything(store)} == {young}
    assert await _counted(store) == {("default", "echo", State.CANCELLED, None): 1}


async def test_a_state_may_be_kept_for_less_time_than_the_others(
    backend: Backend, store: Store, worker: Worker
) -> None:
    dead = await start(store, worker)
    await finish(store, worker, [dead], Cause.GAVE_UP)
    await store.cancel(await submit(store))
    await _advance_days(backend, store, 5)
    await store.retire({**dict.fromkeys(FINAL, 10 * DAY), State.CANCELLED: DAY})
    assert [job.id for job in await everything(store)] == [dead.job_id]
    await store.take_census()
    assert await _counted(store) == {("default", "echo", State.DEAD, None): 1}


async def test_two_who_count_at_once_count_nothing_twice(backend: Backend, store: Store, worker: Worker) -> None:
    other = await backend.open()
    for number in range(5):
        await store.submit(some_jobs(10, f"kind-{number}", delay=HOUR))
        await finish(store, worker, [await start(store, worker, kind="done")])
        await asyncio.gather(*(one.take_census() for one in (store, other) * 3))
        counted = {key[1]: jobs for key, jobs in (await _counted(store)).items()}
        assert counted == {**{f"kind-{n}": 10 for n in range(number + 1)}, "done": number + 1}


async def test_a_new_epoch_is_that_of_all_who_open_the_store_later(backend: Backend, store: Store) -> None:
    before = store.epoch
    assert await store.begin_epoch() == before + 1
    assert store.epoch == before, "whoever works on goes on as before"
    assert (await backend.open()).epoch == before + 1
