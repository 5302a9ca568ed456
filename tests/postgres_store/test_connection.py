"""Lost connections, full disks, refused transactions and restarts: all or nothing, in our own words, and back again."""

import asyncio
import itertools
import os
import re
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from harness.postgres import PostgresServer
from tests.builders import HOUR, SECOND, a_claim, a_job, a_worker, outcome_of, some_jobs
from tests.contract.postgres_backend import PostgresBackend
from tests.contract.steps import check_conserved, claim, everything, finish, settle, start, state_of, submit
from tests.postgres import SharedPostgres
from tests.postgres_store.tools import Connect, opened, soon, until
from tidewheel.clock import SystemClock
from tidewheel.errors import OutcomeUnknown, StoreFull, TideError, Unavailable
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.job import Job, JobSpec
from tidewheel.model.log import LogLine
from tidewheel.model.note import RunNote
from tidewheel.model.outcome import Usage, Verdict
from tidewheel.model.priority import Priority
from tidewheel.model.states import FINAL, Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store
from tidewheel.store.postgres import migrate, open_store
from tidewheel.store.postgres.connection import LET_GO_WITHIN, Connection, Database, connect

CUT = "PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM 1 FROM generate_series(1, 10);"
"""Ends the session that runs it, as an administrator or a failover would."""


def refuse(code: str) -> str:
    return f"RAISE 'refused by the test' USING ERRCODE = '{code}';"


async def _at(backend: PostgresBackend, table: str, turns: str, action: str) -> None:
    """Let something happen in the middle of inserts into a table; turns are counted over all sessions and tries."""
    await backend.execute("CREATE SEQUENCE tidewheel.turn")
    await backend.execute(
        "CREATE FUNCTION tidewheel.meddle() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN IF nextval('tidewheel.turn') {turns} THEN {action} END IF; RETURN NEW; END $$"
    )
    await backend.execute(
        f"CREATE TRIGGER meddle BEFORE INSERT ON tidewheel.{table} FOR EACH ROW EXECUTE FUNCTION tidewheel.meddle()"
    )


async def _jobs(backend: PostgresBackend, state: str = "queued") -> int:
    ((count,),) = await backend.execute("SELECT count(*) FROM tidewheel.job WHERE state = $1", state)
    return int(count)


def _keyed(count: int) -> list[JobSpec]:
    return [a_job(args={"n": n}, idempotency_key=f"k{n}") for n in range(count)]


@pytest.mark.parametrize("specs", [some_jobs(50), _keyed(50)], ids=["plain", "keyed"])
async def test_a_connection_lost_in_mid_batch_leaves_none_of_it(
    backend: PostgresBackend, store: Store, specs: list[JobSpec]
) -> None:
    await submit(store)
    await _at(backend, "job", "= 25", CUT)

    with pytest.raises(OutcomeUnknown):
        await soon(store.submit(specs))

    assert await _jobs(backend) == 1
    assert [answer.created for answer in await soon(store.submit(specs))] == [True] * 50
    assert await _jobs(backend) == 51


async def test_a_repeat_with_the_same_keys_after_a_lost_answer_gives_one_set_of_jobs(
    backend: PostgresBackend, store: Store
) -> None:
    """The batch was committed; only nobody heard of it."""
    specs = _keyed(50)
    committed = await store.submit(specs)
    await backend.cut()

    again = await _repeated(store, specs)

    assert [answer.job_id for answer in again] == [answer.job_id for answer in committed]
    assert not any(answer.created for answer in again)
    assert await _jobs(backend) == 50


async def _repeated(store: Store, specs: list[JobSpec]) -> Any:
    """Repeat as a client would: until there is an answer."""
    for _ in range(20):
        try:
            return await soon(store.submit(specs))
        except Unavailable:
            continue
    raise AssertionError("no answer came")


async def test_a_connection_lost_while_outcomes_are_stored_leaves_none_or_all_of_them(
    backend: PostgresBackend, store: Store, worker: Worker
) -> None:
    await store.submit(some_jobs(50))
    runs = await claim(store, worker, 50)
    outcomes = [outcome_of(run) for run in runs]
    await _at(backend, "job_history", "= 25", CUT)

    with pytest.raises(OutcomeUnknown):
        await soon(store.settle(worker.id, outcomes))

    assert await _jobs(backend, "running") == 50
    assert await soon(store.settle(worker.id, outcomes)) == [Verdict.ACCEPTED] * 50
    assert await soon(store.settle(worker.id, outcomes)) == [Verdict.REPEATED] * 50


async def test_a_connection_lost_while_idle_costs_at_most_one_failed_call_for_each(
    backend: PostgresBackend, store: Store, worker: Worker
) -> None:
    await asyncio.gather(*(store.workers() for _ in range(10)))
    await backend.cut()

    failures = 0
    for _ in range(20):
        try:
            await soon(store.beat([worker.id]))
        except Unavailable:
            failures += 1

    assert failures <= 10
    assert await soon(claim(store, worker)) == []


@pytest.mark.parametrize("code", ["serialization_failure", "deadlock_detected", "lock_not_available"])
@pytest.mark.parametrize("specs", [some_jobs(5), _keyed(5)], ids=["plain", "keyed"])
async def test_a_transaction_that_lost_a_race_is_tried_again(
    backend: PostgresBackend, store: Store, code: str, specs: list[JobSpec]
) -> None:
    await submit(store)
    await _at(backend, "job", "<= 2", refuse(code))

    assert [answer.created for answer in await soon(store.submit(specs))] == [True] * 5
    assert await _jobs(backend) == 6


@pytest.mark.parametrize("cause", [Cause.RETURNED, Cause.GAVE_UP])
async def test_an_outcome_that_lost_a_race_is_tried_again(
    backend: PostgresBackend, store: Store, worker: Worker, cause: Cause
) -> None:
    run = await start(store, worker)
    await _at(backend, "job_history", "<= 2", refuse("deadlock_detected"))

    assert await soon(settle(store, worker, run, cause)) is Verdict.ACCEPTED


async def test_who_loses_every_race_is_told_to_come_back_and_nothing_happened(
    backend: PostgresBackend, store: Store
) -> None:
    await submit(store)
    await _at(backend, "job", "> 0", refuse("serialization_failure"))

    with pytest.raises(Unavailable, match="concurrent"):
        await soon(submit(store))

    assert await _jobs(backend) == 1


@pytest.mark.parametrize("specs", [some_jobs(50), _keyed(50)], ids=["plain", "keyed"])
async def test_a_full_disk_leaves_nothing_of_a_batch(
    backend: PostgresBackend, store: Store, specs: list[JobSpec]
) -> None:
    await submit(store)
    await _at(backend, "job", "= 25", refuse("disk_full"))

    with pytest.raises(StoreFull):
        await soon(store.submit(specs))

    assert await _jobs(backend) == 1
    assert [answer.created for answer in await soon(store.submit(specs))] == [True] * 50, "when there is room again"


@pytest.mark.parametrize("cause", [Cause.RETURNED, Cause.GAVE_UP])
async def test_a_full_disk_kills_no_job_and_loses_no_outcome(
    backend: PostgresBackend, store: Store, worker: Worker, cause: Cause
) -> None:
    await store.submit(some_jobs(10))
    outcomes = [outcome_of(run, cause) for run in await claim(store, worker, 10)]
    await _at(backend, "job_history", "= 5", refuse("disk_full"))

    with pytest.raises(StoreFull):
        await soon(store.settle(worker.id, outcomes))

    assert await _jobs(backend, "running") == 10
    assert await soon(store.settle(worker.id, outcomes)) == [Verdict.ACCEPTED] * 10


@pytest.mark.parametrize("cause", [Cause.RETURNED, Cause.GAVE_UP])
async def test_trouble_of_the_server_kills_no_job_and_loses_no_outcome(
    backend: PostgresBackend, store: Store, worker: Worker, cause: Cause
) -> None:
    codes = ("53200", "53300", "53400", "57000", "57P05", "58000", "58030", "XX000", "XX001")
    run = await start(store, worker)
    code_of_this_turn = f"(ARRAY{list(codes)})[currval('tidewheel.turn')]"
    action = f"RAISE 'refused by the test' USING ERRCODE = {code_of_this_turn};"
    await _at(backend, "job_history", f"<= {len(codes)}", action)

    for _ in codes:
        with pytest.raises(Unavailable, match="refused by the test"):
            await soon(settle(store, worker, run, cause))
    assert await soon(settle(store, worker, run, cause)) is Verdict.ACCEPTED


@pytest.mark.parametrize("setting", ["statement_timeout", "transaction_timeout"])
async def test_a_time_limit_of_the_server_is_told_in_our_own_words(
    backend: PostgresBackend, store: Store, connect: Connect, setting: str
) -> None:
    """Operators set these against leaked transactions, and are right to."""
    job_id = await submit(store)
    held = await connect(backend.url)
    await held.execute("BEGIN")
    await held.execute("SELECT FROM tidewheel.job WHERE id = $1 FOR UPDATE", job_id)
    await _configure(backend, f"{setting} = '150ms'")
    limited = await backend.open()

    with pytest.raises(Unavailable):
        await soon(limited.cancel(job_id))

    await held.execute("ROLLBACK")
    assert (await soon(_cancelled(limited, job_id))).state is State.CANCELLED


async def _cancelled(store: Store, job_id: UUID) -> Job:
    """Cancel it as often as it takes: on a busy machine also what waits for nobody may meet the limit."""
    while True:
        with suppress(Unavailable):
            return await store.cancel(job_id)


async def _configure(backend: PostgresBackend, setting: str) -> None:
    """Change a setting for all who connect from now on."""
    ((name,),) = await backend.execute("SELECT current_database()")
    await backend.execute(f"ALTER DATABASE {name} SET {setting}")


async def test_a_server_that_only_answers_reads_is_unavailable_for_writes(
    backend: PostgresBackend, store: Store, worker: Worker
) -> None:
    job_id = await submit(store)
    await _configure(backend, "default_transaction_read_only = on")
    reader = await backend.open()

    assert (await reader.get(job_id)).id == job_id
    for write in (submit(reader), reader.claim(a_claim(worker.id)), reader.beat([worker.id]), reader.cancel(job_id)):
        with pytest.raises(Unavailable, match="only answers reads"):
            await soon(write)


@pytest.mark.parametrize("place", ["127.0.0.1:9", "/?host=/nonexistent"], ids=["port", "socket"])
async def test_a_server_that_is_not_there_is_said_in_one_sentence(place: str) -> None:
    url = f"postgresql://nobody@{place}" if place.startswith("/") else f"postgresql://nobody@{place}/none"
    with pytest.raises(Unavailable, match="PostgreSQL cannot be reached") as raised:
        await soon(open_store(url))

    assert not isinstance(raised.value, OutcomeUnknown)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("wrong", ["database", "user"])
async def test_a_wrong_name_is_said_in_our_own_words(postgres_server: SharedPostgres, wrong: str) -> None:
    missing = postgres_server.database_url("no_such_database")
    url = missing if wrong == "database" else re.sub("//[^/]*@", "//stranger@", postgres_server.url)

    with pytest.raises(TideError):
        await soon(open_store(url))


async def test_a_closed_store_is_unavailable(store: Store) -> None:
    await store.close()

    with pytest.raises(Unavailable):
        await store.gates()


@pytest.mark.chaos
async def test_after_a_kill_of_the_server_the_store_works_again_and_nothing_acknowledged_is_lost(
    private_postgres: PostgresServer,
) -> None:
    url = private_postgres.url()
    await migrate(url)
    async with opened(url) as store:
        worker = await store.register(a_worker(ttl=HOUR))
        acknowledged: set[UUID] = set()
        finished: set[UUID] = set()
        numbers = itertools.count()
        loaded = asyncio.Event()

        async def load(name: str) -> None:
            """Submit, claim and finish until the server goes."""
            while True:
                specs = [a_job(idempotency_key=f"{name}-{next(numbers)}") for _ in range(5)]
                acknowledged.update(answer.job_id for answer in await store.submit(specs))
                runs = await claim(store, worker, 3)
                verdicts = await store.settle(worker.id, [outcome_of(run) for run in runs])
                finished.update(run.job_id for run, v in zip(runs, verdicts, strict=True) if v is Verdict.ACCEPTED)
                if len(finished) > 60:
                    loaded.set()

        loads = [asyncio.create_task(load(f"l{n}")) for n in range(4)]
        await soon(loaded.wait())
        private_postgres.kill()
        ends = await soon(asyncio.gather(*loads, return_exceptions=True))
        assert all(isinstance(end, Unavailable) for end in ends), ends
        private_postgres.start()

        await until(lambda: _works(store, worker))
        jobs = {job.id: job.state for job in await everything(store)}
        assert acknowledged <= set(jobs)
        assert {jobs[job_id] for job_id in finished} == {State.SUCCEEDED}
        adopted = await store.owned(worker.id)
        await finish(store, worker, adopted)
        while runs := await claim(store, worker, 100):
            await finish(store, worker, runs)
        await check_conserved(store, jobs)
        assert {job.state for job in await everything(store)} == {State.SUCCEEDED}


async def test_who_gives_up_on_a_server_that_hangs_is_not_kept_by_it(private_postgres: PostgresServer) -> None:
    """A supervisor must end its runs while the server hangs: before its lease passes, and the kernel ends it."""
    db = await connect(private_postgres.url(), pool_size=1)

    async def hang(connection: Connection) -> None:
        backend.set_result(await connection.fetchval("SELECT pg_backend_pid()"))
        os.kill(backend.result(), signal.SIGSTOP)
        await connection.fetchval("SELECT 1")

    backend: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    asking = asyncio.ensure_future(db.read(hang))
    await soon(asyncio.shield(backend))
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(asyncio.shield(asking))

    assert await soon(db.read(lambda connection: connection.fetchval("SELECT 2"))) == 2, "by another connection"
    os.kill(backend.result(), signal.SIGCONT)
    await soon(db.close())


async def _works(store: Store, worker: Worker) -> bool:
    try:
        return len(await store.beat([worker.id])) == 1
    except Unavailable:
        return False


async def test_who_gives_up_while_a_connection_is_mended_is_not_kept_by_a_server_that_hangs() -> None:
    mending, given_back = asyncio.Event(), list[float | None]()

    class Pool:
        async def acquire(self) -> "Pool":
            return self

        async def reset(self) -> None:
            mending.set()
            await asyncio.Event().wait()

        async def release(self, _: object, *, timeout: float | None) -> None:  # noqa: ASYNC109 - as the driver has it
            given_back.append(timeout)

    async def refused(_: Connection) -> None:
        raise asyncpg.DataError("no number")

    pool: Any = Pool()
    asking = asyncio.create_task(Database(pool, SystemClock(), pool.acquire).read(refused))
    await mending.wait()
    asking.cancel()
    with suppress(asyncio.CancelledError):
        await asking
    assert given_back == [LET_GO_WITHIN]


class Scattered:
    """A connection as a pooler in transaction mode gives it: each statement outside of a transaction goes elsewhere."""

    def __init__(self, backends: Iterator[Any]) -> None:
        self._backends = backends
        self._pinned: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pinned or next(self._backends), name)

    @asynccontextmanager
    async def _transaction(self, **options: Any) -> AsyncIterator[None]:
        self._pinned = next(self._backends)
        try:
            async with self._pinned.transaction(**options):
                yield
        finally:
            self._pinned = None

    def transaction(self, **options: Any) -> Any:
        return self._transaction(**options)


@contextmanager
def scattered(backends: list[Any]) -> Iterator[None]:
    """Let all stores work on these sessions, a different one each time."""
    turns = itertools.cycle(backends)

    async def acquire(_: Database) -> Any:
        return Scattered(turns)

    async def release(*_: object) -> None:
        pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Database, "_acquire", acquire)
        patch.setattr(Database, "_release", release)
        yield


# Other sessions of the same server, such as those of other tests, may hold some.
OWN_ADVISORY_LOCKS = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"


async def test_no_statement_needs_the_session_of_the_one_before(backend: PostgresBackend, store: Store) -> None:
    """As behind a pooler in transaction mode, also one that knows nothing of prepared statements."""
    async with AsyncExitStack() as stack:
        sessions = []
        for _ in range(5):
            sessions.append(await asyncpg.connect(backend.url, statement_cache_size=0))
            stack.push_async_callback(sessions[-1].close)
        with scattered(sessions):
            await _everything_once(backend, store)
        for session in sessions:
            assert await session.fetchval("SELECT count(*) FROM pg_prepared_statements") == 0
            assert await session.fetchval("SELECT count(*) FROM pg_settings WHERE source = 'session'") <= 5
            assert await session.fetchval(OWN_ADVISORY_LOCKS) == 0


async def _everything_once(backend: PostgresBackend, store: Store) -> None:
    worker = await store.register(a_worker(ttl=HOUR))
    await store.set_limit("l", 1)
    ids = [answer.job_id for answer in await store.submit([*_keyed(5), *some_jobs(5)])]
    ids += [await submit(store, limit_keys=("l",)), await submit(store, limit_keys=("l",), unique_key="u")]
    ids += [await submit(store, start_by=backend.clock.now() + SECOND, delay=HOUR), await submit(store, "gated")]
    runs = await claim(store, worker, 8)
    await store.cancel(runs[0].job_id)
    (beat,) = await store.beat([worker.id])
    assert [job_id for job_id, _ in beat.cancelling] == [runs[0].job_id]
    assert len(await store.stopping([worker.id])) == 1
    assert (await store.claim(a_claim(worker.id, at_least=Priority.HIGH))).runs == []
    await store.note(worker.id, [RunNote(job_id=runs[1].job_id, token=runs[1].token, progress=0.5, checkpoint="1")])
    line = LogLine(job_id=runs[1].job_id, token=runs[1].token, number=0, at=backend.clock.now(), stream="log", text="")
    await store.append_logs([line])
    assert await store.logs(runs[1].job_id) == [line]
    assert await store.checkpoint_of(runs[1].job_id) == "1"
    assert (await store.get(runs[1].job_id)).progress == 0.5
    causes = (Cause.STOPPED, Cause.FAILED, Cause.GAVE_UP, Cause.CRASHED, Cause.SNOOZED, *[Cause.RETURNED] * 3)
    outcomes = [outcome_of(run, cause, usage=Usage()) for run, cause in zip(runs, causes, strict=True)]
    async with store.listen() as bell:
        assert set(await store.settle(worker.id, outcomes)) == {Verdict.ACCEPTED}
        assert await soon(bell.wait(HOUR.total_seconds()))
    assert await store.redrive([runs[2].job_id]) == [runs[2].job_id]
    gate = await store.close_gate(GateSpec(mode=GateMode.DROP, kind="gated"))
    assert await store.drop_gated() == 1
    await store.open_gate(gate.id)
    await backend.clock.advance(2 * SECOND)
    assert await store.expire() == 1
    assert await store.repair_limits() == 0
    await store.take_census()
    assert (await store.counts()).rows
    assert await store.share_duties(worker.id, ["reaper"], 5 * SECOND)
    assert not (await store.agenda()).lapsed
    await store.leave_duties(worker.id)
    await claim(store, worker, 2)
    assert (await store.deregister(worker.id)).requeued == 2
    await store.retire(dict.fromkeys(FINAL, timedelta(days=1)))
    await store.prepare_days()
    assert len(await store.attempts(runs[1].job_id)) == 1
    assert await state_of(store, ids[-1]) is State.DROPPED
    await check_conserved(store, ids)
