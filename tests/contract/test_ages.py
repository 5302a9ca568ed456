"""Nothing waits for ever, and kinds may be kept for more or less time than others."""

from datetime import timedelta
from uuid import UUID

import pytest

from tests.builders import DAY, HOUR, SECOND, a_job, outcome_of, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import claim, everything, state_of, submit
from tidewheel.errors import Invalid
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.states import FINAL, Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store

KEEP: dict[State, timedelta] = dict.fromkeys(FINAL, 10 * DAY)


async def pass_days(backend: Backend, store: Store, days: int) -> None:
    for _ in range(days):
        await backend.clock.advance(DAY)
        await store.prepare_days()


async def test_a_job_that_waits_for_too_long_expires_with_the_reason(backend: Backend, store: Store) -> None:
    old = await submit(store)
    await backend.clock.advance(3 * DAY)
    young = await submit(store)
    await store.prepare_days()
    assert await store.expire_old(2 * DAY) == 1
    job = await store.get(old)
    assert (job.state, job.error is not None and job.error.message) == (
        State.EXPIRED,
        "it has waited for longer than 2d",
    )
    assert await state_of(store, young) is State.QUEUED
    assert await store.expire_old(2 * DAY) == 0


async def test_age_counts_from_when_a_job_is_due(backend: Backend, store: Store) -> None:
    later = await submit(store, delay=30 * DAY)
    await backend.clock.advance(20 * DAY)
    assert await store.expire_old(2 * DAY) == 0
    await backend.clock.advance(12 * DAY + SECOND)
    await store.prepare_days()
    assert await store.expire_old(2 * DAY) == 1
    assert await state_of(store, later) is State.EXPIRED


async def test_a_job_that_was_sent_round_again_is_young(backend: Backend, store: Store) -> None:
    job_id = await submit(store)
    await store.cancel(job_id)
    await pass_days(backend, store, 5)
    await store.redrive([job_id])
    assert await store.expire_old(2 * DAY) == 0


async def test_blocked_limited_and_gated_jobs_grow_old_too_and_running_ones_do_not(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await store.set_limit("l", 1)
    running = await submit(store, limit_keys=("l",))
    limited = await submit(store, limit_keys=("l",))
    assert [run.job_id for run in await claim(store, worker, 5)] == [running]
    blocked = await submit(store, after=(running,))
    gated = await submit(store, kind="gated")
    await store.close_gate(GateSpec(mode=GateMode.HOLD, kind="gated"))
    await backend.clock.advance(3 * DAY)
    await store.prepare_days()
    assert await store.expire_old(2 * DAY) == 3
    assert {await state_of(store, job_id) for job_id in (limited, blocked, gated)} == {State.EXPIRED}
    assert await state_of(store, running) is State.RUNNING


async def test_the_children_of_a_job_that_grew_too_old_are_told(backend: Backend, store: Store) -> None:
    parent = await submit(store)
    await backend.clock.advance(3 * DAY)
    child = await submit(store, after=(parent,))
    await store.prepare_days()
    assert await store.expire_old(2 * DAY) == 1
    assert await state_of(store, child) is State.SKIPPED


async def test_the_walk_goes_on_in_pieces_over_all_of_them(backend: Backend, store: Store) -> None:
    await store.submit([job for _ in range(30) for job in (a_job(), a_job(delay=99 * DAY))])
    await backend.clock.advance(3 * DAY)
    await store.prepare_days()
    assert sum([await store.expire_old(2 * DAY, limit=1) for _ in range(5)]) == 30


async def test_bad_ages_are_refused(store: Store) -> None:
    with pytest.raises(Invalid, match="max_age"):
        await store.expire_old(timedelta(0))
    with pytest.raises(Invalid, match="keep"):
        await store.retire({State.DEAD: -DAY})
    with pytest.raises(Invalid, match="kinds"):
        await store.retire({}, kinds={"a": {State.QUEUED: DAY}})


async def finish(store: Store, worker: Worker, kind: str, cause: Cause = Cause.RETURNED) -> UUID:
    await store.beat([worker.id])
    job_id = await submit(store, kind=kind)
    (run,) = await claim(store, worker)
    await store.settle(worker.id, [outcome_of(run, cause)])
    return job_id


async def kept(store: Store) -> set[UUID]:
    return {job.id for job in await everything(store)}


@pytest.mark.parametrize(("cause", "state"), [(Cause.RETURNED, State.SUCCEEDED), (Cause.GAVE_UP, State.DEAD)])
async def test_a_kind_may_be_kept_for_less_time_than_others(
    backend: Backend, store: Store, worker: Worker, cause: Cause, state: State
) -> None:
    await finish(store, worker, "short", cause)
    usual = await finish(store, worker, "usual", cause)
    await pass_days(backend, store, 3)
    young = await finish(store, worker, "short", cause)
    await store.retire(KEEP, kinds={"short": {state: DAY}})
    assert await kept(store) == {usual, young}
    await store.take_census()
    counted = {row.kind: row.jobs for row in (await store.counts()).rows}
    assert counted == {"short": 1, "usual": 1}
    await pass_days(backend, store, 9)
    await store.retire(KEEP, kinds={"short": {state: DAY}})
    assert await kept(store) == set()


@pytest.mark.parametrize(("cause", "state"), [(Cause.RETURNED, State.SUCCEEDED), (Cause.GAVE_UP, State.DEAD)])
async def test_a_kind_may_be_kept_for_longer_than_others(
    backend: Backend, store: Store, worker: Worker, cause: Cause, state: State
) -> None:
    long, usual = await finish(store, worker, "long", cause), await finish(store, worker, "usual", cause)
    await pass_days(backend, store, 12)
    await store.retire(KEEP, kinds={"long": {state: 20 * DAY}})
    assert await kept(store) == {long}
    assert (await store.get(long)).id == long
    assert usual not in await kept(store)
    await pass_days(backend, store, 10)
    await store.retire(KEEP, kinds={"long": {state: 20 * DAY}})
    assert await kept(store) == set()


async def test_kinds_are_removed_in_bounded_pieces_until_none_is_left(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await store.submit([*some_jobs(20, "short"), *some_jobs(20, "usual")])
    runs = await claim(store, worker, 40)
    await store.settle(worker.id, [outcome_of(run) for run in runs])
    await pass_days(backend, store, 3)
    left = []
    for _ in range(5):
        await store.retire(KEEP, kinds={"short": {State.SUCCEEDED: DAY}}, limit=5)
        left.append(sum(job.kind == "short" for job in await everything(store)))
    assert left == [15, 10, 5, 0, 0]
    assert len(await kept(store)) == 20


async def test_the_attempts_of_a_removed_job_go_with_it(backend: Backend, store: Store, worker: Worker) -> None:
    await submit(store, kind="short")
    (run,) = await claim(store, worker)
    await store.settle(worker.id, [outcome_of(run, Cause.FAILED)])
    (run,) = await claim(store, worker)
    await store.settle(worker.id, [outcome_of(run)])
    assert await backend.count("attempt") == 1
    await pass_days(backend, store, 3)
    await store.retire(KEEP, kinds={"short": {State.SUCCEEDED: HOUR}})
    assert await backend.count("attempt") == 0
