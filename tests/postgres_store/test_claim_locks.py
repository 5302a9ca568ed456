"""What claims, reaping and settling lock, with one of the two sides held open in the middle."""

import asyncio
from typing import Any

import asyncpg
import pytest

from tests.builders import HOUR, SECOND, a_claim, a_worker, outcome_of, some_jobs
from tests.contract.postgres_backend import PostgresBackend
from tests.contract.steps import check_conserved, claim, finish, start, state_of, submit
from tests.postgres_store.tools import Connect, Raw, soon, until_blocked
from tidewheel.errors import LeaseLost, Unavailable
from tidewheel.model.outcome import Verdict
from tidewheel.model.states import Cause, State
from tidewheel.model.worker import Reaped, Worker
from tidewheel.store.base import Store
from tidewheel.store.postgres import PostgresStore
from tidewheel.store.postgres.connection import SQL
from tidewheel.store.postgres.memory import BEGINNING


async def _take(
    connection: Raw, worker: Worker, limit: int, how: str = "take", kind: str = "echo"
) -> list[asyncpg.Record]:
    """Claim on a bare connection, whose transaction stays open."""
    lanes = [row["id"] for row in await connection.fetch("SELECT id FROM tidewheel.lane WHERE kind = $1", kind)]
    pairs = [(lane, priority) for lane in lanes for priority in (0, 1, 2)]
    return await connection.fetch(
        SQL[how],
        worker.id,
        [lane for lane, _ in pairs],
        [priority for _, priority in pairs],
        [BEGINNING.run_at] * len(pairs),
        [BEGINNING.job_id] * len(pairs),
        [limit] * len(pairs),
        "open",
    )


@pytest.mark.parametrize("keys", [(), ("l",)], ids=["plain", "keyed"])
async def test_a_claim_locks_no_more_than_it_takes(
    backend: PostgresBackend, store: Store, worker: Worker, connect: Connect, keys: tuple[str, ...]
) -> None:
    """Measured once: with all rows of a level locked, the second claimer got nothing out of four hundred."""
    await store.submit(some_jobs(400, limit_keys=keys))
    other = await store.register(a_worker(ttl=HOUR))
    held = await connect(backend.url)
    await held.execute("BEGIN")
    first = await _take(held, other, 200, "pick_keyed" if keys else "take")

    second = await soon(store.claim(a_claim(worker.id, 200)))

    assert (len(first), len(second.runs)) == (200, 200)
    assert {row["id"] for row in first}.isdisjoint(run.job_id for run in second.runs)


async def test_who_finds_all_rows_locked_comes_back_with_nothing_and_blames_nobody(
    backend: PostgresBackend, store: Store, worker: Worker, connect: Connect
) -> None:
    await store.submit(some_jobs(10))
    other = await store.register(a_worker(ttl=HOUR))
    held = await connect(backend.url)
    await held.execute("BEGIN")
    await _take(held, other, 10)

    assert await soon(claim(store, worker)) == []

    await held.execute("ROLLBACK")
    assert len(await soon(claim(store, worker))) == 10


@pytest.mark.parametrize("how", ["take", "pick_keyed"])
async def test_a_claim_that_is_under_way_when_its_worker_is_reaped_loses_its_runs_to_the_reaper(
    backend: PostgresBackend, store: Store, connect: Connect, how: str
) -> None:
    """The reaper waits for the claim, and then sees what it took."""
    doomed = await store.register(a_worker(ttl=2 * SECOND))
    ids = [answer.job_id for answer in await store.submit(some_jobs(3, limit_keys=("l",) if how != "take" else ()))]
    held = await connect(backend.url)
    await held.execute("BEGIN")
    taken = await _take(held, doomed, 3, how)
    if how == "pick_keyed":
        ids_taken = [row["id"] for row in taken]
        await held.execute(SQL["start_picked"], doomed.id, ids_taken, taken[0]["started_at"], *[[]] * 7)
    await backend.clock.advance(2 * SECOND)
    reaping = asyncio.create_task(store.reap(doomed.id, doomed.beat))
    await until_blocked(await connect(backend.url))
    assert not reaping.done()

    await held.execute("COMMIT")

    assert await soon(reaping) == Reaped(requeued=3)
    assert await store.owned(doomed.id) == []
    assert {await state_of(store, job_id) for job_id in ids} == {State.QUEUED}


@pytest.mark.parametrize("keys", [(), ("l",)], ids=["plain", "keyed"])
async def test_a_claim_that_comes_while_its_worker_is_reaped_takes_nothing(
    backend: PostgresBackend, store: Store, connect: Connect, keys: tuple[str, ...]
) -> None:
    doomed = await store.register(a_worker(ttl=HOUR))
    ids = [answer.job_id for answer in await store.submit(some_jobs(3, limit_keys=keys))]
    reaper = await connect(backend.url)
    await reaper.execute("BEGIN")
    assert await reaper.fetchval(SQL["end_worker"], doomed.id, None) == doomed.id
    claiming = asyncio.create_task(store.claim(a_claim(doomed.id, 3)))
    await until_blocked(await connect(backend.url))
    assert not claiming.done()

    await reaper.execute("COMMIT")

    with pytest.raises(LeaseLost):
        await soon(claiming)
    assert {await state_of(store, job_id) for job_id in ids} == {State.QUEUED}


async def test_a_beat_does_not_wait_for_a_claim_of_its_worker(
    backend: PostgresBackend, store: Store, worker: Worker, connect: Connect
) -> None:
    """A lease must not be lost because a claim takes long."""
    await store.submit(some_jobs(3))
    held = await connect(backend.url)
    await held.execute("BEGIN")
    assert len(await _take(held, worker, 3)) == 3

    (beat,) = await soon(store.beat([worker.id]))

    assert beat.beat == worker.beat + 1


async def test_rows_that_a_leaked_transaction_locks_are_passed_over_and_found_when_it_ends(
    backend: PostgresBackend, store: Store, worker: Worker, connect: Connect
) -> None:
    ids = [answer.job_id for answer in await store.submit(some_jobs(20))]
    leaked = await connect(backend.url)
    await leaked.execute("BEGIN")
    await leaked.execute("SELECT FROM tidewheel.job WHERE id = ANY ($1) FOR UPDATE", ids[:5])

    flowing = await soon(claim(store, worker, 20))
    await finish(store, worker, flowing)
    await backend.clock.advance(10 * SECOND)
    later = [answer.job_id for answer in await store.submit(some_jobs(5))]
    flowing += await soon(claim(store, worker, 5))
    await leaked.execute("ROLLBACK")
    await backend.clock.advance(2 * SECOND)
    rest = await soon(claim(store, worker, 20))

    assert [run.job_id for run in flowing] == ids[5:] + later
    assert [run.job_id for run in rest] == ids[:5]
    await check_conserved(store, ids + later)


@pytest.mark.parametrize("cause", [Cause.RETURNED, Cause.FAILED, Cause.GAVE_UP, Cause.RELEASED])
async def test_an_end_that_meets_a_cancel_at_the_same_moment_is_accepted_at_a_second_look(
    backend: PostgresBackend, store: Store, worker: Worker, connect: Connect, cause: Cause
) -> None:
    """The row moved between the look and the change; it is still this worker's run."""
    run = await start(store, worker)
    cancelling = await connect(backend.url)
    await cancelling.execute("BEGIN")
    await cancelling.execute(SQL["ask_to_stop"], run.job_id, "enough")
    settling = asyncio.create_task(store.settle(worker.id, [outcome_of(run, cause)]))
    await until_blocked(await connect(backend.url))

    await cancelling.execute("COMMIT")

    assert await soon(settling) == [Verdict.ACCEPTED]
    assert await state_of(store, run.job_id) is (State.SUCCEEDED if cause is Cause.RETURNED else State.CANCELLED)


async def test_one_row_that_is_locked_for_a_moment_loses_no_outcome_of_its_batch(
    backend: PostgresBackend, store: Store, worker: Worker, connect: Connect
) -> None:
    await store.submit(some_jobs(50))
    runs = await claim(store, worker, 50)
    other = await connect(backend.url)
    await other.execute("BEGIN")
    await other.execute(SQL["ask_to_stop"], runs[25].job_id, "enough")
    settling = asyncio.create_task(store.settle(worker.id, [outcome_of(run) for run in runs]))
    await until_blocked(await connect(backend.url))

    await other.execute("COMMIT")

    assert await soon(settling) == [Verdict.ACCEPTED] * 50
    assert {await state_of(store, run.job_id) for run in runs} == {State.SUCCEEDED}


async def test_a_run_that_another_worker_has_by_now_is_not_ended_by_the_former(store: Store, worker: Worker) -> None:
    """Neither with the old token nor with a guessed new one."""
    run = await start(store, worker)
    await finish(store, worker, [run], Cause.RELEASED)
    other = await store.register(a_worker(ttl=HOUR))
    (again,) = await claim(store, other)

    for forged in (outcome_of(run), outcome_of(again)):
        assert await store.settle(worker.id, [forged]) == [Verdict.STALE]
    assert await store.settle(other.id, [outcome_of(run)]) == [Verdict.STALE]

    assert await state_of(store, run.job_id) is State.RUNNING
    assert await store.settle(other.id, [outcome_of(again)]) == [Verdict.ACCEPTED]


async def test_a_completion_that_meets_the_reaper_is_stale_and_changes_nothing(
    backend: PostgresBackend, store: Store, connect: Connect
) -> None:
    """The reaper had the row first: it was given back, and may run a second time."""
    doomed = await store.register(a_worker(ttl=2 * SECOND))
    job_id = await submit(store)
    (run,) = await claim(store, doomed)
    reaper = await connect(backend.url)
    await reaper.execute("BEGIN")
    await reaper.fetchval(SQL["end_worker"], doomed.id, None)
    await reaper.fetch(SQL["lock_runs_of_worker"], doomed.id)
    await reaper.execute(SQL["give_back"], [job_id], [0 * SECOND], [0], [1], [False])
    settling = asyncio.create_task(store.settle(doomed.id, [outcome_of(run)]))
    await until_blocked(await connect(backend.url))

    await reaper.execute("COMMIT")

    assert await soon(settling) == [Verdict.STALE]
    job: Any = await store.get(job_id)
    assert (job.state, job.losses, job.token) == (State.QUEUED, 1, run.token)


async def test_claims_of_one_worker_for_different_queues_at_once_lose_nothing(store: Store, worker: Worker) -> None:
    """Each scope has a memory of its own: one claim must not forget the lanes of another that is under way."""
    await store.submit([*some_jobs(40, queue="a"), *some_jobs(40, queue="b")])

    claims = [store.claim(a_claim(worker.id, 2, queues=(queue,))) for _ in range(20) for queue in ("a", "b")]
    got = await asyncio.gather(*claims)

    runs = [run.job_id for claimed in got for run in claimed.runs]
    assert len(runs) == len(set(runs)) == len(await store.owned(worker.id))


async def test_what_was_taken_is_the_caller_s_though_a_later_step_fails(
    store: Store, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error would say that nothing happened, and the runs would wait for the next doubt."""
    await store.submit([*some_jobs(2, "plain"), *some_jobs(2, "keyed", limit_keys=("l",))])
    assert isinstance(store, PostgresStore)

    async def fail(*_: object) -> None:
        raise Unavailable("cut off")

    monkeypatch.setattr(store._db, "transaction", fail)
    claimed = await store.claim(a_claim(worker.id, 4))

    assert [run.kind for run in claimed.runs] == ["plain", "plain"]
