"""The bell rings after whatever may have made a job due or asks a run to stop, in this process and in others."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from tests.builders import HOUR, SECOND, a_job, a_worker, outcome_of, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import claim, in_order, settle, start, submit
from tidewheel.errors import Unavailable
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.job import Run
from tidewheel.model.states import Cause
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store
from tidewheel.store.bell import Bell

PATIENCE = 20.0
"""Seconds after which a ring will not come any more; on the store's clock no time passes."""


async def rings(bell: Bell) -> bool:
    return await asyncio.wait_for(bell.wait(HOUR.total_seconds()), PATIENCE)


async def quiet(bell: Bell) -> None:
    """Take what was rung for before."""
    while await bell.wait(0):
        pass


@asynccontextmanager
async def listening(store: Store) -> AsyncIterator[Bell]:
    async with store.listen() as bell:
        while not bell.healthy:
            assert await rings(bell)
        await quiet(bell)
        yield bell


@pytest.fixture(params=["here", "elsewhere"])
async def listener(request: pytest.FixtureRequest, backend: Backend, store: Store) -> Store:
    """The store that listens: the one that does it all, or another on the same database."""
    return store if request.param == "here" else await backend.open()


Deed = Callable[[Store, Worker], Awaitable[Callable[[], Awaitable[object]]]]
"""Prepares something, and returns what is to be heard."""


async def _submit(store: Store, _: Worker) -> Callable[[], Awaitable[object]]:
    await submit(store)  # makes the lane known, so that the next goes the short way
    return lambda: submit(store)


async def _submit_first_of_its_lane(store: Store, _: Worker) -> Callable[[], Awaitable[object]]:
    return lambda: submit(store, "new")


async def _submit_with_a_key(store: Store, _: Worker) -> Callable[[], Awaitable[object]]:
    return lambda: submit(store, idempotency_key="k")


async def _submit_for_soon(store: Store, _: Worker) -> Callable[[], Awaitable[object]]:
    return lambda: submit(store, delay=SECOND)


async def _submit_a_batch_of_which_one_is_due(store: Store, _: Worker) -> Callable[[], Awaitable[object]]:
    return lambda: store.submit([a_job(delay=HOUR), a_job(), a_job(delay=HOUR)])


async def _give_back(store: Store, worker: Worker) -> Callable[[], Awaitable[object]]:
    run = await start(store, worker)
    return lambda: settle(store, worker, run, Cause.SNOOZED)


async def _free_a_limit_key(store: Store, worker: Worker) -> Callable[[], Awaitable[object]]:
    await store.set_limit("l", 1)
    await store.submit(some_jobs(2, limit_keys=("l",)))
    (run,) = await claim(store, worker)
    return lambda: settle(store, worker, run)


async def _raise_a_limit(store: Store, worker: Worker) -> Callable[[], Awaitable[object]]:
    await _free_a_limit_key(store, worker)
    return lambda: store.set_limit("l", 2)


async def _remove_a_limit(store: Store, worker: Worker) -> Callable[[], Awaitable[object]]:
    await _free_a_limit_key(store, worker)
    return lambda: store.remove_limit("l")


async def _bury_a_job_with_a_limit_key(store: Store, worker: Worker) -> Callable[[], Awaitable[object]]:
    await store.set_limit("l", 1)
    await store.submit(some_jobs(2, limit_keys=("l",)))
    (run,) = await claim(store, worker)
    return lambda: store.settle(worker.id, [outcome_of(run, result="no JSON")])


async def _redrive(store: Store, worker: Worker) -> Callable[[], Awaitable[object]]:
    run = await start(store, worker)
    await settle(store, worker, run, Cause.GAVE_UP)
    return lambda: store.redrive([run.job_id])


async def _open_a_gate(store: Store, _: Worker) -> Callable[[], Awaitable[object]]:
    gate = await store.close_gate(GateSpec(mode=GateMode.HOLD, kind="echo"))
    await submit(store)
    return lambda: store.open_gate(gate.id)


async def _ask_a_run_to_stop(store: Store, worker: Worker) -> Callable[[], Awaitable[object]]:
    run = await start(store, worker)
    return lambda: store.cancel(run.job_id)


async def _leave(store: Store, _: Worker) -> Callable[[], Awaitable[object]]:
    leaver = await store.register(a_worker(ttl=HOUR))
    await start(store, leaver)
    return lambda: store.deregister(leaver.id)


async def _end_a_parent(store: Store, worker: Worker) -> Callable[[], Awaitable[object]]:
    parent = await submit(store)
    await submit(store, after=(parent,))
    (run,) = await claim(store, worker)
    return lambda: settle(store, worker, run)


DEEDS = (
    _submit,
    _end_a_parent,
    _submit_first_of_its_lane,
    _submit_with_a_key,
    _submit_for_soon,
    _submit_a_batch_of_which_one_is_due,
    _give_back,
    _free_a_limit_key,
    _raise_a_limit,
    _remove_a_limit,
    _bury_a_job_with_a_limit_key,
    _redrive,
    _open_a_gate,
    _ask_a_run_to_stop,
    _leave,
)


@pytest.mark.parametrize("deed", DEEDS, ids=[deed.__name__[1:] for deed in DEEDS])
async def test_the_bell_rings_soon_after(store: Store, worker: Worker, listener: Store, deed: Deed) -> None:
    act = await deed(store, worker)
    async with listening(listener) as bell:
        await act()
        assert await rings(bell)


async def test_a_reaped_worker_is_heard_of(backend: Backend, store: Store, listener: Store) -> None:
    doomed = await store.register(a_worker(ttl=2 * SECOND))
    await start(store, doomed)
    await backend.clock.advance(3 * SECOND)
    async with listening(listener) as bell:
        await store.reap(doomed.id, doomed.beat)
        assert await rings(bell)


async def test_what_was_rung_for_can_be_claimed(store: Store, worker: Worker, listener: Store) -> None:
    async with listening(listener) as bell:
        for _ in range(20):
            job_id = await submit(store)
            runs: list[Run] = []
            while not runs:  # it may have rung for something else
                assert await rings(bell)
                runs = await claim(listener, worker)
            assert in_order(runs) == [job_id]


async def test_every_listener_hears(backend: Backend, store: Store) -> None:
    other = await backend.open()
    async with listening(store) as first, listening(store) as second, listening(other) as third:
        await submit(store)
        assert all(await asyncio.gather(rings(first), rings(second), rings(third)))


async def test_a_ring_before_the_wait_counts_once(store: Store) -> None:
    async with listening(store) as bell:
        await submit(store)
        assert await rings(bell)
        bell.ring()
        bell.ring()
        assert await bell.wait(0)
        assert not await bell.wait(0)


async def test_what_lies_in_the_future_is_not_heard_here(store: Store, worker: Worker) -> None:
    """Other processes may hear of it all the same, where a hint says only that something was written."""
    run = await start(store, worker)
    async with listening(store) as bell:
        await submit(store, delay=HOUR)
        await settle(store, worker, run, Cause.FAILED, delay=HOUR)
        assert not await bell.wait(0)


async def test_who_stops_listening_may_begin_again(store: Store) -> None:
    for _ in range(3):
        async with listening(store) as bell:
            await submit(store)
            assert await rings(bell)


async def test_listening_ends_with_the_store(backend: Backend) -> None:
    store = await backend.open()
    async with listening(store) as bell:
        waiting = asyncio.create_task(rings(bell))
        await store.close()
        assert await waiting, "whoever waits hears of the end"
        assert not bell.healthy
    with pytest.raises(Unavailable):
        await store.listen().__aenter__()


@pytest.mark.parametrize("leaving", [False, True], ids=["while it waits", "while it leaves"])
async def test_a_listener_that_is_cancelled_leaves_nothing_behind(store: Store, *, leaving: bool) -> None:
    begun = asyncio.Event()

    async def listen() -> None:
        async with store.listen() as bell:
            begun.set()
            while not leaving:
                await bell.wait(HOUR.total_seconds())

    task = asyncio.create_task(listen())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with listening(store) as bell:
        await submit(store)
        assert await rings(bell)


async def test_hints_come_back_after_the_connections_were_cut(backend: Backend, store: Store) -> None:
    async with listening(store) as bell:
        if not await backend.cut():
            pytest.skip("this store has no connections to cut")
        assert await rings(bell), "that there was a loss"
        while not bell.healthy:
            assert await rings(bell), "that it is over"
        await quiet(bell)
        other = await backend.open()
        await submit(other)
        assert await rings(bell)
