"""Low-water marks save claims from what is dead, and hide nothing for longer than two seconds.

Late is a submit that began before the marks moved on and commits after that. By a little it is found at the next look
back, by more at the next sweep.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.builders import HOUR, MINUTE, SECOND, a_worker, needing, some_jobs
from tests.contract.backends import START
from tests.contract.postgres_backend import PostgresBackend
from tests.contract.steps import claim, drain, finish, in_order, settle, start, submit
from tests.postgres_store.plans import Prepared
from tests.postgres_store.tools import Connect, Raw
from tidewheel.clock import SystemClock
from tidewheel.model.outcome import Verdict
from tidewheel.model.priority import Priority
from tidewheel.model.states import Cause
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store
from tidewheel.store.postgres import PostgresStore
from tidewheel.store.postgres.connection import SQL
from tidewheel.store.postgres.memory import BEGINNING, LOOK_BACK, MARK_LAG, Memory

STEP = timedelta(milliseconds=250)
WITHIN = 2 * SECOND


def _memory(store: Store, worker: Worker) -> Memory:
    assert isinstance(store, PostgresStore)
    (memory,) = store._memories[worker.id].values()
    return memory


def _marks(store: Store, worker: Worker) -> list[datetime]:
    return [mark.run_at for mark in _memory(store, worker).marks.values() if mark > BEGINNING]


REST = (*[None] * 11, False, *[None] * 3)
"""What else `add_jobs` takes: nothing, no cap is held, and no phrases."""


@asynccontextmanager
async def _late(
    backend: PostgresBackend, store: Store, connect: Connect, **fields: Any
) -> AsyncIterator[tuple[Raw, UUID]]:
    """Begin a submit now that commits later: the lane exists, the job is not yet there."""
    await submit(store, **fields)
    connection = await connect(backend.url)
    lane, tenant = await connection.fetchrow("SELECT id, tenant FROM tidewheel.lane") or (0, 0)
    await connection.execute("BEGIN")
    job_id = uuid4()
    await connection.fetch(SQL["add_jobs"], [job_id], [lane], [tenant], [1], ["{}"], *REST)
    yield connection, job_id


async def _work(backend: PostgresBackend, store: Store, worker: Worker, seconds: int, **fields: Any) -> None:
    """Let a worker go on with new jobs for a while."""
    for _ in range(4 * seconds):
        await store.submit(some_jobs(3, **fields))
        await drain(store, worker)
        await backend.clock.advance(STEP)


async def _find(backend: PostgresBackend, calls: list[tuple[Store, Worker]], job_id: UUID, jobs: int) -> timedelta:
    """Let workers claim in turn until one of them gets the job; return how long that took."""
    began = backend.clock.now()
    while backend.clock.now() - began <= MINUTE:
        for store, worker in calls:
            if jobs:
                await store.submit(some_jobs(jobs))
            runs = await claim(store, worker)
            if job_id in in_order(runs):
                return backend.clock.now() - began
            await finish(store, worker, runs)
        await backend.clock.advance(STEP)
    return backend.clock.now() - began


@pytest.mark.parametrize("jobs", [3, 0], ids=["busy", "idle"])
async def test_a_submit_that_commits_long_after_it_began_is_found_within_two_seconds(
    backend: PostgresBackend, store: Store, worker: Worker, connect: Connect, jobs: int
) -> None:
    async with _late(backend, store, connect) as (connection, job_id):
        await _work(backend, store, worker, 15)
        assert max(_marks(store, worker)) > START + 10 * SECOND, "the marks have moved on"
        await connection.execute("COMMIT")

        assert await _find(backend, [(store, worker)], job_id, jobs) <= WITHIN


async def test_a_late_submit_is_found_by_whichever_of_many_like_workers_sweeps(
    backend: PostgresBackend, store: Store, worker: Worker, connect: Connect
) -> None:
    crew = [(store, worker)]
    for _ in range(4):
        another = await backend.open()
        crew.append((another, await another.register(a_worker(ttl=HOUR))))
    async with _late(backend, store, connect) as (connection, job_id):
        for each, member in crew:
            await _work(backend, each, member, 4)
        await connection.execute("COMMIT")

        assert await _find(backend, crew, job_id, jobs=1) <= WITHIN


async def test_a_late_submit_is_found_by_one_who_can_run_it_though_another_always_sweeps_first(
    backend: PostgresBackend, store: Store, worker: Worker, connect: Connect
) -> None:
    """Workers that poll once a second keep their order; here the first has a free slot, but no memory for the job."""
    needs = needing({"memory": 2})
    large = await store.register(a_worker(ttl=HOUR))
    async with _late(backend, store, connect, needs=needs) as (connection, job_id):
        await _work(backend, store, large, 15, needs=needs)
        await connection.execute("COMMIT")
        found = []
        for _ in range(10):
            assert await claim(store, worker, free={"memory": 0}) == []
            await backend.clock.advance(SECOND / 2)
            found += in_order(await claim(store, large, free={"memory": 2}))
            await backend.clock.advance(SECOND / 2)

        assert found == [job_id]


async def test_a_submit_that_takes_two_seconds_to_commit_is_found_without_a_sweep(
    backend: PostgresBackend, store: Store, worker: Worker, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Memory, "must_sweep", lambda *_: False)
    async with _late(backend, store, connect) as (connection, job_id):
        await _work(backend, store, worker, 1)
        assert max(_marks(store, worker)) > START, "the marks have moved on"
        await connection.execute("COMMIT")

        assert await _find(backend, [(store, worker)], job_id, jobs=1) <= SECOND


async def test_marks_stay_behind_the_present_and_published_ones_two_seconds(
    backend: PostgresBackend, store: Store, worker: Worker
) -> None:
    """A new claimer begins at the published ones, and must not miss what is about to commit."""
    for _ in range(60):
        await store.submit(some_jobs(3))
        await drain(store, worker)
        ((floors,),) = await backend.execute("SELECT floors FROM tidewheel.lane")
        now = backend.clock.now()
        assert max(_marks(store, worker)) <= now - timedelta(seconds=MARK_LAG)
        assert max(floors) <= now - timedelta(seconds=LOOK_BACK)
        await backend.clock.advance(STEP)

    assert LOOK_BACK >= 2 > MARK_LAG > 0
    assert min(max(floors), max(_marks(store, worker))) > START, "they have moved"


@pytest.mark.parametrize("cause", [Cause.FAILED, Cause.RELEASED, Cause.SNOOZED, Cause.CRASHED])
async def test_a_job_given_back_is_claimed_at_once_though_the_marks_have_moved_on(
    backend: PostgresBackend, store: Store, worker: Worker, cause: Cause
) -> None:
    run = await start(store, worker)
    await _work(backend, store, worker, 15)
    assert await claim(store, worker) == [], "the sweep of this second is over"
    assert max(_marks(store, worker)) > START

    assert await settle(store, worker, run, cause) is Verdict.ACCEPTED

    assert in_order(await claim(store, worker)) == [run.job_id]


async def test_a_job_that_was_due_long_ago_is_claimed_at_once_though_the_marks_have_moved_on(
    backend: PostgresBackend, store: Store, worker: Worker
) -> None:
    await _work(backend, store, worker, 15)
    assert await claim(store, worker) == [], "the sweep of this second is over"

    job_id = await submit(store, run_at=START - HOUR)

    (run,) = await claim(store, worker)
    assert (run.job_id, run.due_at, run.run_at) == (job_id, START - HOUR, backend.clock.now())


async def test_marks_follow_what_was_taken(backend: PostgresBackend, store: Store, worker: Worker) -> None:
    """Or else the next claim would step over the rows of this one, which are dead by then."""
    for _ in range(20):
        await submit(store)
        await backend.clock.advance(SECOND)

    runs = await claim(store, worker, 10)

    mark = _memory(store, worker).marks[runs[-1].lane, runs[-1].priority]
    assert mark == (runs[-1].run_at, runs[-1].job_id)
    assert mark.run_at == START + 9 * SECOND


async def test_marks_go_on_within_one_instant(backend: PostgresBackend, store: Store, worker: Worker) -> None:
    """All jobs of one submit share an instant; a mark that stood still there would make claims walk over the dead."""
    await store.submit(some_jobs(30))
    await backend.clock.advance(SECOND)

    marks = []
    for _ in range(3):
        runs = await claim(store, worker, 10)
        marks.append(_memory(store, worker).marks[runs[-1].lane, runs[-1].priority])

    assert marks == sorted(set(marks))
    assert {mark.run_at for mark in marks} == {START}


async def test_a_clock_that_was_set_back_hides_nothing_from_a_worker_that_was_busy(
    backend: PostgresBackend, store: Store, worker: Worker
) -> None:
    """The job is older than any look-back when the worker next looks, and its marks lie in the future."""
    await _work(backend, store, worker, 2)
    await backend.clock.advance(-300 * SECOND)
    late = await submit(store)
    await backend.clock.advance(10 * SECOND)

    assert in_order(await claim(store, worker)) == [late]


async def test_what_was_reaped_released_or_redriven_is_claimed_at_once_though_the_marks_have_moved_on(
    backend: PostgresBackend, store: Store, worker: Worker
) -> None:
    doomed = await store.register(a_worker(ttl=2 * SECOND))
    await store.submit(some_jobs(2))
    lost, dead = await claim(store, doomed, 2)
    await settle(store, doomed, dead, Cause.GAVE_UP)
    await _work(backend, store, worker, 15)
    assert await claim(store, worker) == [], "the sweep of this second is over"

    await store.reap(doomed.id, doomed.beat)
    assert in_order(await claim(store, worker)) == [lost.job_id]
    await store.redrive([dead.job_id])
    assert in_order(await claim(store, worker)) == [dead.job_id]


async def test_like_workers_share_one_sweep_a_second(backend: PostgresBackend, store: Store, worker: Worker) -> None:
    other = await backend.open()
    colleague = await other.register(a_worker(ttl=HOUR))
    await submit(store)
    turns = []
    for _ in range(4):
        for each, member in ((store, worker), (other, colleague)):
            await claim(each, member)
            ((next_at,),) = await backend.execute("SELECT next_at FROM tidewheel.sweep")
            turns.append(next_at - START)
            await backend.clock.advance(SECOND / 2)

    assert turns == [n * SECOND for n in (1, 1, 2, 2, 3, 3, 4, 4)]


async def test_a_sweep_that_took_long_is_followed_by_a_pause_twenty_times_as_long(
    backend: PostgresBackend, store: Store, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most a twentieth of the time is spent on sweeping, however many dead rows there are."""

    class Slow(SystemClock):
        seconds = 0.0

        def monotonic(self) -> float:
            self.seconds += 0.5
            return self.seconds

    assert isinstance(store, PostgresStore)
    monkeypatch.setattr(store._db, "clock", Slow())
    await submit(store)
    await claim(store, worker)

    ((next_at,),) = await backend.execute("SELECT next_at FROM tidewheel.sweep")
    assert next_at >= START + 10 * SECOND


async def test_a_new_claimer_begins_where_the_sweeps_of_others_say(
    backend: PostgresBackend, store: Store, worker: Worker, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at the beginning, where the dead rows are; and what committed late is found all the same."""
    async with _late(backend, store, connect) as (connection, job_id):
        await _work(backend, store, worker, 20)
        novice = await store.register(a_worker(ttl=HOUR))
        with monkeypatch.context() as patch:
            patch.setattr(Memory, "set_marks", lambda *_: None)  # by which it would soon have better ones
            await claim(store, novice)
        assert min(_marks(store, novice)) > START + 5 * SECOND
        await connection.execute("COMMIT")

        assert await _find(backend, [(store, novice)], job_id, jobs=1) <= WITHIN


@pytest.mark.parametrize("back", [SECOND, 30 * SECOND, 5 * MINUTE, 2 * HOUR], ids=str)
async def test_a_clock_of_the_database_that_was_set_back_hides_no_job(
    backend: PostgresBackend, store: Store, worker: Worker, back: timedelta
) -> None:
    await _work(backend, store, worker, 15)
    await backend.clock.advance(-back)
    job_id = await submit(store)

    assert await _find(backend, [(store, worker)], job_id, jobs=0) <= WITHIN


@pytest.mark.parametrize("marked", [True, False], ids=["with marks", "without"])
async def test_the_mark_is_what_keeps_a_claim_cheap_under_a_held_snapshot(
    backend: PostgresBackend,
    store: Store,
    worker: Worker,
    connect: Connect,
    *,
    marked: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With marks a claim touches as much after ten thousand dead rows as before; without, all of them."""
    if not marked:
        monkeypatch.setattr(Memory, "advance", lambda *_: None)
        monkeypatch.setattr(Memory, "set_marks", lambda *_: None)
    await submit(store)
    holder = await connect(backend.url)
    await holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    await holder.fetchval("SELECT count(*) FROM tidewheel.job")
    before = await _touched(backend, store, worker, connect)
    for _ in range(5):
        await store.submit(some_jobs(2_000))
        await backend.clock.advance(3 * SECOND)
        await drain(store, worker, 500)
    after = await _touched(backend, store, worker, connect)

    if marked:
        assert max(after) <= max(before) + 50
    else:
        assert min(after) > max(before) + 200


async def _touched(backend: PostgresBackend, store: Store, worker: Worker, connect: Connect) -> list[int]:
    """Count the pages that the two statements of this worker's next claim touch, when there is nothing to take."""
    await drain(store, worker)
    marks = _memory(store, worker).marks
    pairs = [list(column) for column in zip(*marks, strict=True)]
    floors = [list(column) for column in zip(*marks.values(), strict=True)]
    prepared = await Prepared.all(await connect(backend.url), ["peek", "take"], "force_generic_plan")
    plans = [
        await prepared.explain("peek", [*pairs, *floors, 10, worker.id]),
        await prepared.explain("take", [worker.id, *pairs, *floors, [10] * len(marks), "open"]),
    ]
    return [plan.buffers for plan in plans]


async def test_claims_for_urgent_jobs_alone_disturb_neither_marks_nor_sweeps_of_the_others(
    backend: PostgresBackend, store: Store, worker: Worker, connect: Connect
) -> None:
    """A submit of low priority that commits late is found as soon as ever, while urgent claims go on beside it."""
    async with _late(backend, store, connect, priority=Priority.LOW) as (connection, _):
        await connection.execute("ROLLBACK")
        await connection.execute("BEGIN")
        lane, tenant = await connection.fetchrow("SELECT id, tenant FROM tidewheel.lane") or (0, 0)
        late = uuid4()
        await connection.fetch(SQL["add_jobs"], [late], [lane], [tenant], [2], ["{}"], *REST)
        for _ in range(60):
            await store.submit(some_jobs(2, priority=Priority.LOW))
            await drain(store, worker)
            before = _ordinary_memory(store, worker)
            kept = dict(before.marks), before.turns, list(before.plan), before.swept, before.next_due
            await submit(store, priority=Priority.HIGH)
            assert len(await claim(store, worker, at_least=Priority.HIGH)) == 1
            assert (dict(before.marks), before.turns, list(before.plan), before.swept, before.next_due) == kept
            await backend.clock.advance(STEP)
            await claim(store, worker, at_least=Priority.MEDIUM)  # is the first to sweep
            ((floors,),) = await backend.execute("SELECT floors FROM tidewheel.lane")
            assert len(floors) == 3
        assert min(floors) > START, "they are published all the same"
        await connection.execute("COMMIT")
        began = backend.clock.now()
        found: list[UUID] = []
        while late not in found:
            assert backend.clock.now() - began <= WITHIN
            await claim(store, worker, at_least=Priority.MEDIUM)
            found = in_order(await claim(store, worker))
            await backend.clock.advance(STEP)


def _ordinary_memory(store: Store, worker: Worker) -> Memory:
    assert isinstance(store, PostgresStore)
    (memory,) = [memory for scope, memory in store._memories[worker.id].items() if scope[3:] == (None, None, None)]
    return memory
