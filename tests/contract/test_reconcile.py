"""After a doubt: what a worker does when a call may have happened though its answer never came."""

import asyncio
from contextlib import suppress

import pytest

from tests.builders import SECOND, a_worker, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import (
    LostReplies,
    check_conserved,
    claim,
    everything,
    finish,
    in_order,
    settle,
    start,
    state_of,
    submit,
)
from tidewheel.errors import OutcomeUnknown, Unavailable
from tidewheel.model.outcome import REPORTABLE, Verdict
from tidewheel.model.states import Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import JobFilter, Store


async def test_owned_shows_the_runs_as_they_were_claimed(store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(5, args={"a": 1}, labels={"x": "y"}, tenant="acme"))
    runs = await claim(store, worker)
    assert sorted(await store.owned(worker.id), key=lambda run: run.job_id) == runs


async def test_owned_shows_only_what_runs_under_this_worker(backend: Backend, store: Store, worker: Worker) -> None:
    other = await (await backend.open()).register(a_worker())
    await start(store, other)
    ended = await start(store, worker)
    await finish(store, worker, [ended])
    retrying = await start(store, worker)
    await settle(store, worker, retrying, Cause.FAILED, delay=SECOND)
    mine = await start(store, worker)
    assert in_order(await store.owned(worker.id)) == [mine.job_id]


async def test_runs_of_a_claim_whose_answer_was_lost_can_be_adopted(store: Store, worker: Worker) -> None:
    ids = [answer.job_id for answer in await store.submit(some_jobs(5))]
    with pytest.raises(OutcomeUnknown):
        await LostReplies(store).claim(worker)
    adopted = await store.owned(worker.id)
    assert sorted(in_order(adopted)) == ids
    await finish(store, worker, adopted)
    assert {await state_of(store, job_id) for job_id in ids} == {State.SUCCEEDED}


async def test_runs_of_a_claim_whose_answer_was_lost_can_be_given_back(store: Store, worker: Worker) -> None:
    ids = [answer.job_id for answer in await store.submit(some_jobs(5))]
    with pytest.raises(OutcomeUnknown):
        await LostReplies(store).claim(worker)
    await finish(store, worker, await store.owned(worker.id), Cause.RELEASED)
    runs = await claim(store, worker)
    assert in_order(runs) == ids
    assert {(run.failures, run.losses) for run in runs} == {(0, 0)}


@pytest.mark.parametrize("cause", sorted(REPORTABLE))
async def test_an_outcome_whose_answer_was_lost_can_be_said_again(store: Store, worker: Worker, cause: Cause) -> None:
    run = await start(store, worker)
    with pytest.raises(OutcomeUnknown):
        await LostReplies(store).settle(worker, run, cause)
    before = await store.get(run.job_id)
    assert await store.owned(worker.id) == []
    assert await settle(store, worker, run, cause) is Verdict.REPEATED
    assert await store.get(run.job_id) == before
    await check_conserved(store, [run.job_id])


async def test_an_outcome_said_again_by_another_process_is_known(
    backend: Backend, store: Store, worker: Worker
) -> None:
    """The connection is lost and the call is repeated by a new one: nothing may live in memory alone."""
    run = await start(store, worker)
    await settle(store, worker, run)
    other = await backend.open()
    assert await settle(other, worker, run) is Verdict.REPEATED


async def test_runs_that_were_reaped_are_owned_no_more(backend: Backend, store: Store) -> None:
    """By this a worker that was cut off knows what it must kill."""
    cut_off = await store.register(a_worker(ttl=5 * SECOND))
    await start(store, cut_off)
    await backend.clock.advance(5 * SECOND)
    await store.reap(cut_off.id, cut_off.beat)
    assert await store.owned(cut_off.id) == []
    assert await store.beat([cut_off.id]) == []


async def test_a_store_opened_again_finds_everything(backend: Backend, store: Store, worker: Worker) -> None:
    """As after a restart of all processes."""
    await store.submit(some_jobs(5))
    runs = await claim(store, worker, 2)
    await store.set_limit("l", 1)
    await backend.close()
    again = await backend.open()
    assert sorted(in_order(await again.owned(worker.id))) == in_order(runs)
    assert len(await claim(again, worker)) == 3
    assert [limit.key for limit in await again.limits()] == ["l"]
    assert again.epoch >= 1


async def test_connections_that_are_cut_leave_all_of_a_batch_or_none(backend: Backend, store: Store) -> None:
    """And the store works on afterwards, by itself."""
    if not await backend.cut():
        pytest.skip("this store has no connections to cut")
    await _works_again(store)
    assert await state_of(store, await submit(store)) is State.QUEUED


async def test_a_batch_under_way_when_connections_are_cut_is_whole_or_not_there(backend: Backend, store: Store) -> None:
    for number in range(20):
        name = f"t{number}"
        cut, answers = await asyncio.gather(
            backend.cut(), store.submit(some_jobs(300, tenant=name)), return_exceptions=True
        )
        if not cut:
            pytest.skip("this store has no connections to cut")
        await _works_again(store)
        found = len(await everything(store, JobFilter(tenant=name)))
        if isinstance(answers, BaseException):
            assert isinstance(answers, Unavailable)
            assert found in ((0, 300) if isinstance(answers, OutcomeUnknown) else (0,))
        else:
            assert found == 300


async def _works_again(store: Store) -> None:
    """The first calls after a cut may each meet a connection that is dead, and say so in our words."""
    for _ in range(20):
        with suppress(Unavailable):
            await store.gates()
            return
    pytest.fail("the store did not come back")
