"""Gates that open by themselves, that stop what runs behind them, and that say who closed them."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.builders import HOUR, SECOND, a_claim, a_worker, some_jobs
from tests.contract.backends import START, Backend
from tests.contract.steps import claim, finish, in_order, settle, start, state_of, submit
from tidewheel.errors import Invalid
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.outcome import Verdict
from tidewheel.model.states import Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import JobFilter, Store

HOLD, DROP, SLOW = GateMode.HOLD, GateMode.DROP, GateMode.SLOW


def stopping(mode: GateMode, **fields: Any) -> GateSpec:
    return GateSpec(mode=mode, kind="echo", stop_running=True, **fields)


# Expiry


@pytest.mark.parametrize("expiry", [{"lasts": 10 * SECOND}, {"expires_at": START + 10 * SECOND}])
async def test_a_gate_opens_by_itself_when_its_time_has_come(
    backend: Backend, store: Store, worker: Worker, expiry: dict[str, Any]
) -> None:
    ids = [answer.job_id for answer in await store.submit(some_jobs(3))]
    other = await backend.open()
    gate = await other.close_gate(GateSpec(mode=HOLD, kind="echo", **expiry))
    assert gate.expires_at == START + 10 * SECOND
    await backend.clock.advance(9 * SECOND)
    assert await other.tend_gates() == 0
    assert await claim(store, worker) == []
    await backend.clock.advance(SECOND)
    assert await other.tend_gates() == 1
    assert in_order(await claim(store, worker)) == ids
    assert (await store.gates(), await store.tend_gates()) == ([], 0)


async def test_a_gate_that_was_closed_again_keeps_to_the_new_time(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await submit(store)
    await store.close_gate(GateSpec(mode=HOLD, kind="echo", lasts=SECOND))
    await store.close_gate(GateSpec(mode=HOLD, kind="echo"))
    await backend.clock.advance(HOUR / 2)
    assert await store.tend_gates() == 0
    assert await claim(store, worker) == []


async def test_an_opened_gate_leaves_the_others_closed(backend: Backend, store: Store, worker: Worker) -> None:
    await submit(store)
    await store.close_gate(GateSpec(mode=DROP, kind="echo", lasts=SECOND))
    await store.close_gate(GateSpec(mode=HOLD, queue="default"))
    await backend.clock.advance(SECOND)
    await store.tend_gates()
    assert (await store.drop_gated(), await claim(store, worker)) == (0, [])


@pytest.mark.parametrize(
    ("field", "expiry"),
    [
        ("expires_at", {"expires_at": START}),
        ("expires_at", {"expires_at": START - HOUR}),
        ("expires_at", {"expires_at": datetime(2031, 1, 1)}),  # noqa: DTZ001
        ("expires_at", {"expires_at": START.replace(year=2500)}),
        ("lasts", {"lasts": timedelta(0)}),
        ("lasts", {"lasts": -SECOND}),
        ("lasts", {"lasts": timedelta(days=100_000)}),
        ("lasts", {"lasts": SECOND, "expires_at": START + HOUR}),
    ],
)
async def test_an_expiry_that_cannot_be_is_refused(store: Store, field: str, expiry: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as refusal:
        await store.close_gate(GateSpec(mode=HOLD, kind="echo", **expiry))
    assert refusal.value.field == field
    assert await store.gates() == []


# Stopping what runs


async def test_what_runs_behind_a_gate_that_holds_is_given_back_uncounted(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    other = await start(store, worker, "other")
    gate = await store.close_gate(stopping(HOLD))
    (beat,) = await store.beat([worker.id])
    assert beat.cancelling == ((run.job_id, run.token),)
    assert await store.stopping([worker.id]) == [(worker.id, run.job_id, run.token)]
    assert not (await store.get(run.job_id)).cancelling
    assert await settle(store, worker, run, Cause.STOPPED) is Verdict.ACCEPTED
    job = await store.get(run.job_id)
    assert (job.state, job.failures, job.losses, job.gates) == (State.QUEUED, 0, 0, (gate,))
    assert await store.attempts(run.job_id) == []
    assert await claim(store, worker) == []
    await store.open_gate(gate.id)
    (again,) = await claim(store, worker)
    assert (again.job_id, again.token, again.cancelling) == (run.job_id, run.token + 1, False)
    assert await store.stopping([worker.id]) == []
    await finish(store, worker, [again, other])


async def test_the_next_run_of_what_was_given_back_counts_again(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    gate = await store.close_gate(stopping(HOLD))
    await settle(store, worker, run, Cause.STOPPED)
    await store.open_gate(gate.id)
    (again,) = await claim(store, worker)
    await settle(store, worker, again, Cause.FAILED)
    assert (await store.get(run.job_id)).failures == 1
    assert len(await store.attempts(run.job_id)) == 1


@pytest.mark.parametrize("cause", [Cause.FAILED, Cause.GAVE_UP, Cause.CRASHED, Cause.SNOOZED, Cause.RELEASED])
async def test_whatever_such_a_run_ends_with_it_is_given_back(store: Store, worker: Worker, cause: Cause) -> None:
    """A task that is stopped may end in many ways, and none of them is its fault."""
    run = await start(store, worker)
    await store.close_gate(stopping(HOLD))
    await settle(store, worker, run, cause)
    job = await store.get(run.job_id)
    assert (job.state, job.failures, job.losses) == (State.QUEUED, 0, 0)


async def test_a_result_that_was_reached_before_the_stop_stands(store: Store, worker: Worker) -> None:
    held, dropped = await start(store, worker, "held"), await start(store, worker, "dropped")
    await store.close_gate(GateSpec(mode=HOLD, kind="held", stop_running=True))
    await store.close_gate(GateSpec(mode=DROP, kind="dropped", stop_running=True))
    await finish(store, worker, [held, dropped])
    assert {await state_of(store, run.job_id) for run in (held, dropped)} == {State.SUCCEEDED}


async def test_what_runs_behind_a_gate_that_drops_is_cancelled(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    gate = await store.close_gate(stopping(DROP, reason="bad deploy", author="ann"))
    assert (await store.get(run.job_id)).cancelling
    await settle(store, worker, run, Cause.STOPPED)
    job = await store.get(run.job_id)
    assert job.state is State.CANCELLED
    assert job.error is not None
    assert job.error.message == f"stopped by gate {gate.id}: bad deploy (by ann)"


async def test_a_cancellation_counts_though_a_gate_was_first(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    await store.close_gate(stopping(HOLD))
    assert (await store.cancel(run.job_id, reason="no more")).cancelling
    await settle(store, worker, run, Cause.STOPPED)
    assert await state_of(store, run.job_id) is State.CANCELLED


async def test_a_gate_does_not_save_a_job_that_was_cancelled(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    await store.cancel(run.job_id)
    await store.close_gate(stopping(HOLD))
    await settle(store, worker, run, Cause.STOPPED)
    assert await state_of(store, run.job_id) is State.CANCELLED


async def test_a_run_that_was_given_back_can_be_reported_again(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    await store.close_gate(stopping(HOLD))
    await settle(store, worker, run, Cause.STOPPED)
    assert await settle(store, worker, run, Cause.STOPPED) is Verdict.REPEATED


async def test_a_worker_that_dies_with_such_a_run_gives_it_back(backend: Backend, store: Store) -> None:
    worker = await store.register(a_worker(ttl=10 * SECOND))
    run = await start(store, worker)
    await store.close_gate(stopping(HOLD))
    await backend.clock.advance(11 * SECOND)
    assert await store.reap(worker.id, 0) is not None
    job = await store.get(run.job_id)
    assert (job.state, job.losses) == (State.QUEUED, 0)


async def test_the_room_under_its_limit_goes_to_others(store: Store, worker: Worker) -> None:
    await store.set_limit("l", 1)
    run = await start(store, worker, limit_keys=("l",))
    waiting = await submit(store, "other", limit_keys=("l",))
    assert await claim(store, worker) == []
    await store.close_gate(stopping(HOLD))
    await settle(store, worker, run, Cause.STOPPED)
    assert in_order(await claim(store, worker)) == [waiting]


async def test_what_is_asked_to_stop_stops_also_if_the_gate_opens(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    gate = await store.close_gate(stopping(HOLD))
    await store.open_gate(gate.id)
    await settle(store, worker, run, Cause.STOPPED)
    assert await state_of(store, run.job_id) is State.QUEUED


async def test_a_gate_that_does_not_say_so_stops_nothing(store: Store, worker: Worker) -> None:
    await start(store, worker)
    await store.close_gate(GateSpec(mode=HOLD, kind="echo"))
    assert await store.tend_gates() == 0
    assert await store.stopping([worker.id]) == []


async def test_a_claim_that_was_under_way_when_the_gate_closed_is_stopped_too(
    backend: Backend, store: Store, worker: Worker
) -> None:
    held = await backend.hold_claims()
    if held is None:
        pytest.skip("claims of this store cannot be under way while a gate closes")
    job_id = await submit(store)
    other = await backend.open()
    claiming = asyncio.create_task(store.claim(a_claim(worker.id)))
    await held.waited_for(1)
    await other.close_gate(stopping(HOLD))
    await held.release()
    (run,) = (await claiming).runs
    assert run.job_id == job_id
    assert await other.tend_gates() == 1
    assert await store.stopping([worker.id]) == [(worker.id, job_id, run.token)]
    assert await other.tend_gates() == 0


# Who holds it


async def test_a_waiting_job_shows_the_gates_it_lies_behind(store: Store, worker: Worker) -> None:
    running = await start(store, worker)
    ids = [answer.job_id for answer in await store.submit(some_jobs(2))]
    free = await submit(store, "free")
    slow = await store.close_gate(GateSpec(mode=SLOW, kind="echo", rate=5, reason="busy", author="bob"))
    hold = await store.close_gate(GateSpec(mode=HOLD, queue="default", reason="upgrade", author="ann"))
    await store.open_gate(hold.id)
    hold = await store.close_gate(GateSpec(mode=HOLD, tenant="default", kind="echo", reason="upgrade", author="ann"))
    assert (await store.get(ids[0])).gates == (hold, slow)
    shown = {job.id: job.gates for job in (await store.find(JobFilter())).jobs}
    assert shown == {ids[0]: (hold, slow), ids[1]: (hold, slow), free: (), running.job_id: ()}
    assert (hold.reason, hold.author, slow.reason, slow.author) == ("upgrade", "ann", "busy", "bob")


async def test_a_dropped_job_says_which_gate_it_was(store: Store) -> None:
    job_id = await submit(store)
    gate = await store.close_gate(GateSpec(mode=DROP, kind="echo", reason="bad deploy", author="ann"))
    await store.drop_gated()
    job = await store.get(job_id)
    assert job.gates == ()
    assert job.error is not None
    assert job.error.message == f"dropped by gate {gate.id}: bad deploy (by ann)"


async def test_a_job_that_was_blocked_is_dropped_once(store: Store) -> None:
    """Its parent is dropped with it, and would tell it so."""
    parent = await submit(store, "a")
    child = await submit(store, "b", after=(parent,))
    await store.close_gate(GateSpec(mode=DROP, queue="default"))
    assert await store.drop_gated() == 2
    assert {await state_of(store, job_id) for job_id in (parent, child)} == {State.DROPPED}
    counted = {row.kind: (row.state, row.jobs) for row in (await store.counts()).rows}
    assert counted == {"a": (State.DROPPED, 1), "b": (State.DROPPED, 1)}
