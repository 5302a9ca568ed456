"""History by days: made ahead, made when missing, and taken off without stopping anyone."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import date, timedelta

import pytest

from tests.builders import DAY, HOUR, SECOND, a_worker, outcome_of, some_jobs
from tests.contract.backends import START
from tests.contract.postgres_backend import PostgresBackend
from tests.contract.steps import check_conserved, claim, everything, finish, settle, start, state_of, submit
from tests.postgres_store.tools import Connect, Raw, soon, until, until_blocked
from tidewheel.errors import NotFound
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.job import Run
from tidewheel.model.log import LogLine
from tidewheel.model.outcome import Verdict
from tidewheel.model.states import FINAL, Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store
from tidewheel.store.postgres import migrate

TODAY = START.date()
PARENTS = ("attempt", "job_history_other", "job_history_succeeded", "log", "log_segment")
KEEP: dict[State, timedelta] = dict.fromkeys(FINAL, 30 * DAY)

ATTACHED = """
    SELECT parent.relname AS parent, right(part.relname, 8) AS day, inhdetachpending AS pending
      FROM pg_inherits
      JOIN pg_class AS part ON part.oid = inhrelid
      JOIN pg_class AS parent ON parent.oid = inhparent
     WHERE part.relname ~ '_[0-9]{8}$' AND part.relkind = 'r'
"""


async def _days(connection: Raw) -> dict[str, set[date]]:
    days: dict[str, set[date]] = {parent: set() for parent in PARENTS}
    for row in await connection.fetch(ATTACHED):
        days[row["parent"]].add(date.fromisoformat(row["day"]))
    return days


def _span(first: date, count: int) -> set[date]:
    return {first + timedelta(days=n) for n in range(count)}


async def test_migrate_makes_the_days_of_a_week_ahead(postgres_database: str, connect: Connect) -> None:
    connection = await connect(postgres_database)
    today = await connection.fetchval("SELECT (now() AT TIME ZONE 'UTC')::date")
    for days in (await _days(connection)).values():
        assert days >= _span(today, 8)
    await connection.execute("DROP TABLE tidewheel.attempt_" + f"{today + 7 * DAY:%Y%m%d}")

    assert await migrate(postgres_database) == []

    for days in (await _days(connection)).values():
        assert days >= _span(today, 8)


async def test_opening_makes_the_days_of_a_week_ahead(backend: PostgresBackend, connect: Connect) -> None:
    await backend.clock.advance(100 * DAY)
    await backend.open()

    for days in (await _days(await connect(backend.url))).values():
        assert days >= _span(TODAY + 100 * DAY, 8)


async def test_preparing_days_says_how_many_were_made_and_makes_none_twice(
    backend: PostgresBackend, store: Store, connect: Connect
) -> None:
    assert await store.prepare_days() == 0
    assert await store.prepare_days(ahead=10) == 15
    await backend.clock.advance(DAY)
    assert await store.prepare_days(ahead=10) == 5
    for days in (await _days(await connect(backend.url))).values():
        assert days >= _span(TODAY, 12)


async def test_processes_that_prepare_days_at_the_same_time_do_not_disturb_each_other(
    backend: PostgresBackend, store: Store
) -> None:
    stores = [store, *[await backend.open() for _ in range(3)]]

    made = await soon(asyncio.gather(*(each.prepare_days(ahead=20) for each in stores)))

    assert sorted(made) == [0, 0, 0, 65]


async def test_outcomes_of_a_day_without_partitions_are_stored_and_none_is_lost(
    backend: PostgresBackend, store: Store, worker: Worker
) -> None:
    await store.submit(some_jobs(9))
    runs = await claim(store, worker, 9)
    await backend.clock.advance(40 * DAY)
    causes = [Cause.RETURNED, Cause.GAVE_UP, Cause.FAILED] * 3
    outcomes = [outcome_of(run, cause) for run, cause in zip(runs, causes, strict=True)]

    assert await soon(store.settle(worker.id, outcomes)) == [Verdict.ACCEPTED] * 9

    states = [await state_of(store, run.job_id) for run in runs]
    assert states == [State.SUCCEEDED, State.DEAD, State.QUEUED] * 3


async def test_lines_of_a_day_without_partitions_are_stored(backend: PostgresBackend, store: Store) -> None:
    job_id = await submit(store)
    await backend.clock.advance(40 * DAY)
    line = LogLine(job_id=job_id, token=1, number=0, at=backend.clock.now(), stream="log", text="late")

    await soon(store.append_logs([line]))

    assert await store.logs(job_id) == [line]


async def test_two_processes_that_miss_the_same_day_both_store_their_outcomes(
    backend: PostgresBackend, store: Store, worker: Worker, connect: Connect
) -> None:
    """The second finds that the day was made meanwhile, and must not take its outcome for one that cannot be stored."""
    other = await backend.open()
    await store.submit(some_jobs(2))
    runs = await claim(store, worker, 2)
    await backend.clock.advance(40 * DAY)
    maker = await connect(backend.url)
    await maker.execute("BEGIN; SELECT pg_advisory_xact_lock(8433, 2)")
    settling = [asyncio.create_task(settle(each, worker, run)) for each, run in zip((store, other), runs, strict=True)]
    await until_blocked(maker, 2)

    await maker.execute("COMMIT")

    assert await soon(asyncio.gather(*settling)) == [Verdict.ACCEPTED] * 2
    assert [await state_of(store, run.job_id) for run in runs] == [State.SUCCEEDED] * 2


Steer = Callable[[PostgresBackend, Store], Awaitable[None]]


async def _cancel(backend: PostgresBackend, store: Store) -> None:
    job_id = await submit(store)
    await backend.clock.advance(40 * DAY)
    assert (await store.cancel(job_id)).state is State.CANCELLED


async def _reap(backend: PostgresBackend, store: Store) -> None:
    worker = await store.register(a_worker())
    await start(store, worker)
    await backend.clock.advance(40 * DAY)
    reaped = await store.reap(worker.id, worker.beat)
    assert reaped is not None
    assert reaped.requeued == 1


async def _expire(backend: PostgresBackend, store: Store) -> None:
    await submit(store, start_by=START + SECOND)
    await backend.clock.advance(40 * DAY)
    assert await store.expire() == 1


async def _drop(backend: PostgresBackend, store: Store) -> None:
    await submit(store)
    await store.close_gate(GateSpec(mode=GateMode.DROP, kind="echo"))
    await backend.clock.advance(40 * DAY)
    assert await store.drop_gated() == 1


async def _replace(backend: PostgresBackend, store: Store) -> None:
    await submit(store, unique_key="u")
    await backend.clock.advance(40 * DAY)
    await submit(store, unique_key="u", unique="replace")


@pytest.mark.parametrize("steer", [_cancel, _reap, _expire, _drop, _replace])
async def test_every_other_end_of_a_job_on_a_day_without_partitions_works_too(
    backend: PostgresBackend, store: Store, steer: Steer
) -> None:
    """Nobody opened a store for a week, and the keeper was down."""
    await soon(steer(backend, store))


async def test_days_that_are_old_enough_are_dropped_whole(
    backend: PostgresBackend, store: Store, worker: Worker, connect: Connect
) -> None:
    old = await start(store, worker)
    await settle(store, worker, old)
    await backend.clock.advance(29 * DAY)
    await store.beat([worker.id])
    await store.prepare_days()
    young = await start(store, worker)
    await settle(store, worker, young)
    assert await store.retire(KEEP) == 0
    await backend.clock.advance(3 * DAY)

    gone = await store.retire(KEEP)

    assert gone == 15, "five tables, the days before, on and after the first"
    days = await _days(await connect(backend.url))
    assert min(min(each) for each in days.values()) == TODAY + 2 * DAY
    with pytest.raises(NotFound):
        await store.get(old.job_id)
    assert await state_of(store, young.job_id) is State.SUCCEEDED


async def test_a_reader_of_an_old_day_stops_nobody_while_it_is_taken_off(
    backend: PostgresBackend, store: Store, worker: Worker, connect: Connect
) -> None:
    """Measured once: a plain DROP behind one reader stalled completions for two seconds."""
    runs = await _old_day(backend, store, worker)
    reader, watcher = await connect(backend.url), await connect(backend.url)
    await reader.execute("BEGIN")
    assert await reader.fetchval("SELECT count(*) FROM tidewheel.job_history") == 1
    retiring = asyncio.create_task(store.retire(KEEP))
    await until_blocked(watcher)

    for run, cause in zip(runs, (Cause.RETURNED, Cause.GAVE_UP, Cause.FAILED), strict=True):
        assert await asyncio.wait_for(settle(store, worker, run, cause), 2) is Verdict.ACCEPTED
    assert len(await asyncio.wait_for(everything(store), 2)) == 4
    assert not retiring.done(), "it still waits for the reader, and the others did not wait for it"

    await reader.execute("COMMIT")
    assert await soon(retiring) == 45
    assert min(min(days) for days in (await _days(watcher)).values()) > TODAY + 8 * DAY


async def _old_day(backend: PostgresBackend, store: Store, worker: Worker) -> list[Run]:
    """Finish one job, let its day grow old, and start three others."""
    await settle(store, worker, await start(store, worker))
    await backend.clock.advance(40 * DAY)
    await store.prepare_days()
    await store.beat([worker.id])
    await store.submit(some_jobs(3))
    return await claim(store, worker, 3)


async def test_a_detachment_that_was_broken_off_is_finished_the_next_time(
    backend: PostgresBackend, store: Store, worker: Worker, connect: Connect
) -> None:
    """A reader outlasted the patience of the keeper, and the keeper has other old days to go on with."""
    await _old_day(backend, store, worker)
    reader, watcher = await connect(backend.url), await connect(backend.url)
    await reader.execute("BEGIN")
    assert await reader.fetchval("SELECT count(*) FROM tidewheel.job_history") == 1
    retiring = asyncio.create_task(store.retire(KEEP))
    await _break_off(watcher, retiring)

    gone = await soon(retiring)
    pending = [row for row in await watcher.fetch(ATTACHED) if row["pending"]]
    assert pending, "it was begun"
    await reader.execute("COMMIT")
    gone += await soon(store.retire(KEEP))

    assert gone == 45
    assert not [row for row in await watcher.fetch(ATTACHED) if row["pending"]]
    assert min(min(days) for days in (await _days(watcher)).values()) > TODAY + 8 * DAY


async def _break_off(watcher: Raw, retiring: "asyncio.Task[int]") -> None:
    """Cancel what waits for a lock, as its own time limit would, until the work ends."""

    async def over() -> bool:
        await watcher.execute(
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'ALTER TABLE%'"
        )
        return retiring.done()

    await until(over)


async def test_two_processes_that_retire_at_the_same_time_do_not_disturb_each_other(
    backend: PostgresBackend, store: Store, worker: Worker
) -> None:
    runs = await _old_day(backend, store, worker)
    other = await backend.open()

    gone = await soon(asyncio.gather(store.retire(KEEP), other.retire(KEEP)))

    assert sum(gone) == 45
    await finish(store, worker, runs)
    await check_conserved(store, [run.job_id for run in runs])


async def test_completions_go_on_while_days_are_made_and_taken_off(backend: PostgresBackend, store: Store) -> None:
    other = await backend.open()
    worker = await store.register(a_worker(ttl=HOUR))
    ids = [answer.job_id for answer in await store.submit(some_jobs(200))]

    async def work() -> None:
        while runs := await claim(store, worker, 10):
            await finish(store, worker, runs)

    async def keep() -> None:
        for ahead in range(8, 12):
            await other.prepare_days(ahead=ahead)
            await other.retire({state: timedelta(days=60) for state in FINAL})

    await soon(asyncio.gather(work(), keep()))

    await check_conserved(store, ids)
