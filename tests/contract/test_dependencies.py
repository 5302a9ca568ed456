"""Jobs that wait for other jobs."""

from collections.abc import Awaitable, Callable
from uuid import UUID, uuid4

import pytest

from tests.builders import DAY, HOUR, MINUTE, SECOND, a_claim, a_job, a_worker, outcome_of
from tests.contract.backends import Backend
from tests.contract.family import a_child, child_of, end, states
from tests.contract.steps import check_conserved, claim, everything, in_order, settle, start, state_of, submit
from tidewheel.errors import Invalid
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.priority import Priority
from tidewheel.model.states import Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store

S = State


# Waiting


async def test_a_child_is_blocked_until_its_parent_has_succeeded(store: Store, worker: Worker) -> None:
    parent = await submit(store)
    child = await child_of(store, parent)
    shown = await store.get(child)
    assert (shown.state, shown.after, shown.waiting_for) == (S.BLOCKED, (parent,), 1)
    assert shown.on_parent_failure == "skip"
    await end(store, worker, parent)
    shown = await store.get(child)
    assert (shown.state, shown.after, shown.waiting_for) == (S.QUEUED, (parent,), 0)
    await end(store, worker, child)
    shown = await store.get(child)
    assert (shown.state, shown.after, shown.waiting_for) == (S.SUCCEEDED, (parent,), 0)


async def test_a_job_without_parents_shows_none(store: Store) -> None:
    shown = await store.get(await submit(store))
    assert (shown.after, shown.waiting_for, shown.on_parent_failure) == ((), 0, None)


async def test_a_child_waits_for_the_last_of_its_parents(store: Store, worker: Worker) -> None:
    parents = [await submit(store) for _ in range(5)]
    child = await child_of(store, *parents)
    for run in await claim(store, worker):
        assert await state_of(store, child) is S.BLOCKED
        await settle(store, worker, run)
    assert await state_of(store, child) is S.QUEUED


async def test_several_parents_that_end_in_one_call_count_each_once(store: Store, worker: Worker) -> None:
    parents = [await submit(store) for _ in range(5)]
    last = await submit(store, delay=MINUTE)
    child = await child_of(store, *parents, last)
    await end(store, worker, *parents)
    assert (await store.get(child)).waiting_for == 1
    await store.cancel(last)
    assert await state_of(store, child) is S.SKIPPED


async def test_all_children_of_a_parent_are_let_go(store: Store, worker: Worker) -> None:
    parent = await submit(store)
    children = [await child_of(store, parent) for _ in range(5)]
    await end(store, worker, parent)
    assert in_order(await claim(store, worker)) == children


async def test_a_chain_runs_link_by_link(store: Store, worker: Worker) -> None:
    chain = [await submit(store)]
    for _ in range(4):
        chain.append(await child_of(store, chain[-1]))
    for job in chain:
        await end(store, worker, job)
    assert set(await states(store, chain)) == {S.SUCCEEDED}


async def test_a_retry_of_the_parent_lets_nobody_go(backend: Backend, store: Store, worker: Worker) -> None:
    parent = await submit(store)
    child = await child_of(store, parent)
    for cause in (Cause.FAILED, Cause.SNOOZED, Cause.RELEASED, Cause.CRASHED):
        await end(store, worker, parent, cause=cause, delay=SECOND)
        assert await state_of(store, child) is S.BLOCKED
        await backend.clock.advance(SECOND)
    await end(store, worker, parent)
    assert await state_of(store, child) is S.QUEUED


async def test_a_child_that_is_let_go_is_due_at_once_and_not_before(
    backend: Backend, store: Store, worker: Worker
) -> None:
    """Whatever stands behind the marks of the claimers would be found late."""
    parent = await submit(store)
    due = backend.clock.now()
    child = await child_of(store, parent)
    await backend.clock.advance(10 * MINUTE)
    await end(store, worker, parent)
    shown = await store.get(child)
    assert (shown.run_at, shown.due_at) == (backend.clock.now(), due)


async def test_a_child_that_asked_for_a_later_time_keeps_it(backend: Backend, store: Store, worker: Worker) -> None:
    parent = await submit(store)
    child = await child_of(store, parent, delay=HOUR)
    asked = backend.clock.now() + HOUR
    await backend.clock.advance(MINUTE)
    await end(store, worker, parent)
    assert (await store.get(child)).run_at == asked
    answer = await store.claim(a_claim(worker.id))
    assert (answer.runs, answer.next_due) == ([], asked)


async def test_a_child_goes_by_priority_gates_and_limits_like_any_other(store: Store, worker: Worker) -> None:
    parent = await submit(store)
    low = await child_of(store, parent, priority=Priority.LOW)
    high = await child_of(store, parent, priority=Priority.HIGH)
    held = await child_of(store, parent, kind="held")
    first, second = [await child_of(store, parent, kind="keyed", limit_keys=("k",)) for _ in range(2)]
    await store.set_limit("k", 1)
    gate = await store.close_gate(GateSpec(mode=GateMode.HOLD, kind="held"))
    await end(store, worker, parent)
    runs = in_order(await claim(store, worker))
    assert runs[0] == high
    assert set(runs) == {high, low, first}
    assert await state_of(store, second) is S.LIMITED
    await store.open_gate(gate.id)
    assert in_order(await claim(store, worker)) == [held]


async def test_parents_with_limit_keys_pass_on_their_room_and_let_their_children_go(
    store: Store, worker: Worker
) -> None:
    await store.set_limit("k", 1)
    first, second = [await submit(store, limit_keys=("k",)) for _ in range(2)]
    child = await child_of(store, first, limit_keys=("k",))
    for job in (first, second, child):
        (run,) = await claim(store, worker, 1)
        assert run.job_id == job
        await settle(store, worker, run)
    assert [limit.running for limit in await store.limits()] == [0]


# Parents that have ended already


@pytest.mark.parametrize("policy", ["skip", "run", "hold"])
async def test_a_parent_that_has_succeeded_is_not_waited_for(store: Store, worker: Worker, policy: str) -> None:
    run = await start(store, worker)
    await settle(store, worker, run)
    child = await child_of(store, run.job_id, on_parent_failure=policy)
    shown = await store.get(child)
    assert (shown.state, shown.waiting_for, shown.after) == (S.QUEUED, 0, (run.job_id,))
    assert in_order(await claim(store, worker)) == [child]


@pytest.mark.parametrize(("policy", "state"), [("skip", S.SKIPPED), ("run", S.QUEUED), ("hold", S.BLOCKED)])
async def test_a_parent_that_has_failed_before_counts_as_one_that_fails_now(
    store: Store, policy: str, state: State
) -> None:
    failed = await submit(store)
    await store.cancel(failed)
    child = await child_of(store, failed, on_parent_failure=policy)
    grandchild = await child_of(store, child)
    assert await state_of(store, child) is state
    expected = S.SKIPPED if state is S.SKIPPED else S.BLOCKED
    assert await state_of(store, grandchild) is expected
    await check_conserved(store, [failed, child, grandchild])
    assert await store.recheck_blocked() == 0


async def test_parents_that_ended_and_parents_that_did_not_are_told_apart(store: Store, worker: Worker) -> None:
    done = await start(store, worker)
    await settle(store, worker, done)
    active = await submit(store)
    child = await child_of(store, done.job_id, active)
    assert (await store.get(child)).waiting_for == 1
    await end(store, worker, active)
    assert await state_of(store, child) is S.QUEUED


async def test_a_job_held_by_a_failed_parent_goes_on_when_that_is_redriven(store: Store, worker: Worker) -> None:
    failed = await submit(store)
    await store.cancel(failed)
    child = await child_of(store, failed, on_parent_failure="hold")
    assert await store.redrive([failed]) == [failed]
    await end(store, worker, failed)
    assert in_order(await claim(store, worker)) == [child]


async def test_parents_that_are_not_there_are_refused_and_nothing_is_stored(store: Store) -> None:
    nobody = uuid4()
    theirs = await submit(store, tenant="them")
    finished = await submit(store, tenant="them")
    await store.cancel(finished)
    mine = await submit(store)
    for stranger in (nobody, theirs, finished, UUID(int=1), UUID(int=2**128 - 1)):
        with pytest.raises(Invalid) as refusal:
            await store.submit([a_child(mine, stranger)])
        assert (refusal.value.field, refusal.value.why) == ("after", f"no job {stranger}")
        with pytest.raises(Invalid) as refusal:
            await store.submit([a_job(), a_child(mine), a_child(mine, stranger)])
        assert refusal.value.field == "specs[2].after"
    assert {job.id for job in await everything(store)} == {theirs, finished, mine}
    assert await store.children_of(mine) == []


# Ends without success


async def _gives_up(store: Store, worker: Worker, job: UUID) -> None:
    await end(store, worker, job, cause=Cause.GAVE_UP)


async def _is_cancelled(store: Store, _worker: Worker, job: UUID) -> None:
    await store.cancel(job)


async def _is_cancelled_while_it_runs(store: Store, worker: Worker, job: UUID) -> None:
    (run,) = await claim(store, worker)
    await store.cancel(job)
    await settle(store, worker, run, Cause.STOPPED)


async def _expires(store: Store, worker: Worker, job: UUID) -> None:
    await end(store, worker, job, cause=Cause.EXPIRED)


async def _is_dropped(store: Store, _worker: Worker, _job: UUID) -> None:
    await store.close_gate(GateSpec(mode=GateMode.DROP, kind="echo"))
    assert await store.drop_gated() == 1


async def _is_quarantined(store: Store, worker: Worker, job: UUID) -> None:
    for _ in range(3):
        await end(store, worker, job, cause=Cause.CRASHED)


async def _is_unstorable(store: Store, worker: Worker, _job: UUID) -> None:
    (run,) = await claim(store, worker)
    await settle(store, worker, run, result='"\\u0000"')


async def _is_replaced(store: Store, _worker: Worker, _job: UUID) -> None:
    await submit(store, "other", unique_key="u", unique="replace", delay=DAY)


ENDS: dict[str, tuple[Callable[[Store, Worker, UUID], Awaitable[None]], State]] = {
    "gives up": (_gives_up, S.DEAD),
    "is cancelled": (_is_cancelled, S.CANCELLED),
    "is cancelled while it runs": (_is_cancelled_while_it_runs, S.CANCELLED),
    "expires": (_expires, S.EXPIRED),
    "is dropped": (_is_dropped, S.DROPPED),
    "is quarantined": (_is_quarantined, S.DEAD),
    "is unstorable": (_is_unstorable, S.DEAD),
    "is replaced": (_is_replaced, S.CANCELLED),
}


@pytest.mark.parametrize("how", ENDS)
async def test_every_way_to_end_without_success_is_told_to_the_children(store: Store, worker: Worker, how: str) -> None:
    end_it, state = ENDS[how]
    parent = await submit(store, unique_key="u")
    skips, runs, holds = [await child_of(store, parent, on_parent_failure=p) for p in ("skip", "run", "hold")]
    below = await child_of(store, skips)
    await end_it(store, worker, parent)
    assert await states(store, [parent, skips, runs, holds, below]) == [
        state,
        S.SKIPPED,
        S.QUEUED,
        S.BLOCKED,
        S.SKIPPED,
    ]
    error = (await store.get(skips)).error
    assert error is not None
    assert (error.reason, error.message) == ("parent_failed", f"its parent {parent} ended as {state}")
    error = (await store.get(below)).error
    assert error is not None
    assert error.message == f"its parent {skips} ended as skipped"
    assert await store.attempts(skips) == []
    assert await store.recheck_blocked() == 0


async def test_a_parent_that_expires_while_it_waits_is_told_of(backend: Backend, store: Store) -> None:
    parent = await submit(store, start_by=backend.clock.now() + SECOND)
    child = await child_of(store, parent)
    await backend.clock.advance(2 * SECOND)
    assert await store.expire() == 1
    assert await states(store, [parent, child]) == [S.EXPIRED, S.SKIPPED]


async def test_a_parent_whose_worker_died_too_often_is_told_of(backend: Backend, store: Store) -> None:
    parent = await submit(store)
    child = await child_of(store, parent)
    for _ in range(3):
        worker = await store.register(a_worker(ttl=2 * SECOND))
        assert in_order(await claim(store, worker)) == [parent]
        await backend.clock.advance(2 * SECOND)
        assert await store.reap(worker.id, worker.beat) is not None
    assert await states(store, [parent, child]) == [S.DEAD, S.SKIPPED]


async def test_a_parent_that_the_database_refuses_to_store_is_told_of(
    backend: Backend, store: Store, worker: Worker
) -> None:
    parent, other = await submit(store), await submit(store)
    child, second = await child_of(store, parent), await child_of(store, other)
    await backend.refuse_history_of(parent)
    runs = await claim(store, worker)
    await store.settle(worker.id, [outcome_of(run) for run in runs])
    assert await states(store, [parent, child, other, second]) == [S.DEAD, S.SKIPPED, S.SUCCEEDED, S.QUEUED]


async def test_one_failed_parent_of_several_is_enough_to_skip(store: Store, worker: Worker) -> None:
    bad, good = await submit(store), await submit(store)
    child = await child_of(store, bad, good)
    await store.cancel(bad)
    assert await state_of(store, child) is S.SKIPPED
    await end(store, worker, good)
    assert await state_of(store, child) is S.SKIPPED
    await check_conserved(store, [bad, good, child])


async def test_a_diamond_of_skipped_jobs_ends_each_of_them_once(store: Store) -> None:
    top = await submit(store)
    layers = [[top]]
    for _ in range(6):
        layers.append([await child_of(store, *layers[-1]) for _ in range(3)])
    last = await child_of(store, *layers[-1], on_parent_failure="run")
    await store.cancel(top)
    below = [job for layer in layers[1:] for job in layer]
    assert set(await states(store, below)) == {S.SKIPPED}
    assert await state_of(store, last) is S.QUEUED
    await store.take_census()
    counted = {row.state: row.jobs for row in (await store.counts()).rows}
    assert counted == {S.CANCELLED: 1, S.SKIPPED: len(below), S.QUEUED: 1}
    await check_conserved(store, [top, *below, last])


async def test_a_policy_to_run_in_mid_chain_stops_the_skipping(store: Store) -> None:
    top = await submit(store)
    skipped = await child_of(store, top)
    runs = await child_of(store, skipped, on_parent_failure="run")
    waits = await child_of(store, runs)
    await store.cancel(top)
    assert await states(store, [skipped, runs, waits]) == [S.SKIPPED, S.QUEUED, S.BLOCKED]


async def test_a_held_child_waits_until_its_parent_is_redriven_and_succeeds(store: Store, worker: Worker) -> None:
    parent = await submit(store)
    child = await child_of(store, parent, on_parent_failure="hold")
    await end(store, worker, parent, cause=Cause.GAVE_UP)
    assert (await store.get(child)).waiting_for == 1
    assert await store.redrive([parent]) == [parent]
    await end(store, worker, parent, cause=Cause.GAVE_UP)
    assert await state_of(store, child) is S.BLOCKED
    assert await store.recheck_blocked() == 0
    assert await store.redrive([parent]) == [parent]
    await end(store, worker, parent)
    assert await state_of(store, child) is S.QUEUED


async def test_a_redriven_parent_changes_nothing_for_children_that_were_told(store: Store, worker: Worker) -> None:
    parent, other = await submit(store), await submit(store, delay=DAY)
    skipped = await child_of(store, parent)
    runs = await child_of(store, parent, other, on_parent_failure="run")
    await store.cancel(parent)
    assert await store.redrive([parent]) == [parent]
    await end(store, worker, parent)
    assert await state_of(store, skipped) is S.SKIPPED
    assert (await store.get(runs)).waiting_for == 1, "the same parent does not count twice"


async def test_a_redriven_child_waits_for_nobody_any_more(store: Store, worker: Worker) -> None:
    parent = await submit(store, delay=MINUTE)
    child = await child_of(store, parent)
    await store.cancel(child)
    assert await store.redrive([child]) == [child]
    (run,) = await claim(store, worker)
    await store.cancel(parent)
    assert await state_of(store, child) is S.RUNNING
    await settle(store, worker, run)
    assert await state_of(store, child) is S.SUCCEEDED


# Steering what is blocked


async def test_a_blocked_job_can_be_cancelled(store: Store, worker: Worker) -> None:
    parent = await submit(store)
    child = await child_of(store, parent)
    below = await child_of(store, child)
    assert (await store.cancel(child, reason="enough")).state is S.CANCELLED
    assert await state_of(store, below) is S.SKIPPED
    await end(store, worker, parent)
    assert await states(store, [child, below]) == [S.CANCELLED, S.SKIPPED]


async def test_a_blocked_job_expires(backend: Backend, store: Store) -> None:
    parent = await submit(store)
    child = await child_of(store, parent, start_by=backend.clock.now() + SECOND)
    below = await child_of(store, child)
    await backend.clock.advance(2 * SECOND)
    assert await store.expire() == 1
    assert await states(store, [parent, child, below]) == [S.QUEUED, S.EXPIRED, S.SKIPPED]
