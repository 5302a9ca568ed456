"""Jobs inside the caller's own transaction on PostgreSQL, with every driver that is known."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import psycopg
import pytest
from sqlalchemy import NullPool, create_engine
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session

from tests.postgres import SharedPostgres
from tests.sdk import drivers
from tests.sdk.drivers import Driver
from tests.sdk.work import end_all
from tidewheel import (
    AlreadyActive,
    App,
    Invalid,
    Job,
    KeyReused,
    NotFound,
    Priority,
    QueueFull,
    State,
    Task,
    Unavailable,
    chain,
)


@pytest.fixture
async def app(postgres_database: str) -> AsyncIterator[App]:
    app = App(postgres_database)
    yield app
    await app.aclose()


@pytest.fixture
def task(app: App) -> Task[..., Any]:
    @app.task(name="send")
    def send(order: int) -> int: ...  # type: ignore[empty-body]

    return send


@pytest.fixture(params=drivers.ALL, ids=lambda kind: kind.__name__)
async def driver(request: pytest.FixtureRequest, postgres_database: str) -> AsyncIterator[Driver]:
    async with asyncio.timeout(60):
        driver: Driver = request.param()
        await driver.open(postgres_database)
        await driver.execute("CREATE TABLE orders (id integer)")
        await driver.commit()
        yield driver
        await driver.close()


async def gone(job: Job[Any]) -> bool:
    try:
        await job.astate()
    except NotFound:
        return True
    return False


async def test_a_job_is_there_once_the_caller_commits(app: App, task: Task[..., Any], driver: Driver) -> None:
    await driver.execute("INSERT INTO orders VALUES (1)")
    job = await driver.enqueue(task, 1, priority="high", labels={"a": "b"}, name="first", start_by="1h")
    assert job.created
    assert await gone(job), "nobody sees it before the commit"
    assert await end_all(app) == []
    await driver.commit()

    info = await job.ainfo()
    assert (info.state, info.args, info.priority) == (State.QUEUED, {"order": 1}, Priority.HIGH)
    assert (info.labels, info.name) == ({"a": "b"}, "first")
    assert await end_all(app, 5) == ["send"]
    assert await job.aresult() == 5
    assert await driver.execute("SELECT id FROM orders") == [(1,)]


async def test_as_the_first_statement_it_begins_the_transaction(task: Task[..., Any], driver: Driver) -> None:
    job = await driver.enqueue(task, 1)
    assert await gone(job)
    await driver.commit()

    assert await job.astate() is State.QUEUED


async def test_a_rollback_leaves_no_job(app: App, task: Task[..., Any], driver: Driver) -> None:
    await driver.execute("INSERT INTO orders VALUES (1)")
    job = await driver.enqueue(task, 1)
    keyed = await driver.enqueue(task, 2, idempotency_key="k", unique_key="u")
    await driver.rollback()

    assert await gone(job)
    assert await gone(keyed)
    assert await end_all(app) == []
    assert (await task.using(idempotency_key="k", unique_key="u").aenqueue(3)).created


async def test_a_rollback_to_a_savepoint_leaves_only_what_was_before(
    app: App, task: Task[..., Any], driver: Driver
) -> None:
    before = await driver.enqueue(task, 1)
    inside: list[Job[Any]] = []

    async def work() -> None:
        inside.append(await driver.enqueue(task, 2))
        inside.append(await driver.enqueue(task, 3, idempotency_key="k"))

    await driver.undone(work)
    after = await driver.enqueue(task, 4)
    await driver.commit()

    assert [await gone(job) for job in (before, *inside, after)] == [False, True, True, False]
    assert len(await end_all(app)) == 2


async def test_keys_hold_inside_the_transaction_and_leave_it_usable(task: Task[..., Any], driver: Driver) -> None:
    await driver.execute("INSERT INTO orders VALUES (1)")
    first = await driver.enqueue(task, 1, idempotency_key="k", unique_key="u")
    again = await driver.enqueue(task, 1, idempotency_key="k", unique_key="u")
    assert (again, again.created) == (first, False)
    with pytest.raises(KeyReused):
        await driver.enqueue(task, 2, idempotency_key="k")
    with pytest.raises(AlreadyActive):
        await driver.enqueue(task, 2, unique_key="u")
    assert await driver.enqueue(task, 2, unique_key="u", unique="keep") == first
    second = await driver.enqueue(task, 2, unique_key="u", unique="replace", delay=timedelta(hours=1))
    await driver.execute("INSERT INTO orders VALUES (2)")
    await driver.commit()

    assert await first.astate() is State.CANCELLED
    assert await second.astate() is State.QUEUED
    assert await driver.execute("SELECT id FROM orders ORDER BY id") == [(1,), (2,)]
    kept = await task.using(idempotency_key="k", unique_key="u").aenqueue(1)
    assert (kept, kept.created) == (first, False)


async def test_a_full_queue_leaves_the_transaction_usable(app: App, task: Task[..., Any], driver: Driver) -> None:
    await app.limits.aset_cap("default", 1)
    first = await driver.enqueue(task, 1)
    for options in ({}, {"idempotency_key": "k"}):
        with pytest.raises(QueueFull):
            await driver.enqueue(task, 2, **options)
    await driver.execute("INSERT INTO orders VALUES (1)")
    await driver.commit()

    assert await end_all(app) == [task.kind]
    assert await first.astate() is State.SUCCEEDED
    assert await driver.execute("SELECT id FROM orders") == [(1,)]


async def test_bad_input_leaves_the_transaction_usable(app: App, driver: Driver) -> None:
    @app.task(name="bad")
    def bad(order: int, note: Any = None) -> None: ...

    await driver.execute("INSERT INTO orders VALUES (1)")
    with pytest.raises(Invalid, match="order"):
        await driver.enqueue(bad, "one")
    with pytest.raises(Invalid, match="NUL"):
        await driver.enqueue(bad, 1, "\0")
    await driver.commit()

    assert await driver.execute("SELECT id FROM orders") == [(1,)]


async def test_times_and_limits_and_many_reach_the_store(app: App, driver: Driver) -> None:
    @app.task(name="few", concurrency=1, resources={"cpu": 1}, queue="slow")
    def few(n: int) -> None: ...

    at = datetime(2100, 1, 1, tzinfo=UTC)
    calls = [few.using(run_at=at).s(1), few.using(tenant="acme", delay=5).s(2)]
    if isinstance(driver, drivers.Synchronous):
        jobs = app.enqueue_many(calls, connection=driver.connection)
    else:
        jobs = await app.aenqueue_many(calls, connection=driver.connection)
    await driver.commit()

    first, second = [await job.ainfo() for job in jobs]
    assert (first.due_at, first.limit_keys, first.queue) == (at, ("task:few",), "slow")
    assert (second.tenant, second.run_at - second.created_at) == ("acme", timedelta(seconds=5))


async def test_many_are_part_of_the_transaction_that_one_of_them_names(
    app: App, task: Task[..., Any], driver: Driver
) -> None:
    calls = [task.using(connection=driver.connection).s(1), task.s(2)]

    async def enqueue() -> list[Job[Any]]:
        return app.enqueue_many(calls) if isinstance(driver, drivers.Synchronous) else await app.aenqueue_many(calls)

    lost = await enqueue()
    await driver.rollback()
    assert [await gone(job) for job in lost] == [True, True]
    jobs = await enqueue()
    await driver.commit()
    assert [await job.astate() for job in jobs] == [State.QUEUED] * 2


async def test_a_chain_is_part_of_the_transaction(task: Task[..., Any], driver: Driver) -> None:
    async def enqueue() -> tuple[Job[Any], Job[Any]]:
        flow = chain(task.s(1), task.s())
        alone = isinstance(driver, drivers.Synchronous)
        last = (
            flow.enqueue(connection=driver.connection) if alone else await flow.aenqueue(connection=driver.connection)
        )
        return last, await driver.enqueue(task, 2, after=last)

    lost = await enqueue()
    await driver.rollback()
    assert [await gone(job) for job in lost] == [True, True]
    last, child = await enqueue()
    await driver.commit()

    assert [await job.astate() for job in (last, child)] == [State.BLOCKED, State.BLOCKED]
    assert (await child.ainfo()).after == (last.id,)
    assert len((await last.ainfo()).after) == 1


# What cannot be used


async def test_a_connection_in_no_transaction_is_refused(task: Task[..., Any], postgres_database: str) -> None:
    connection = await asyncpg.connect(postgres_database)
    with pytest.raises(Invalid, match="in no transaction"):
        await task.using(connection=connection).aenqueue(1)
    await connection.close()
    with psycopg.connect(postgres_database, autocommit=True) as plain:
        with pytest.raises(Invalid, match="in no transaction"):
            task.using(connection=plain).enqueue(1)
        with plain.transaction():
            job = task.using(connection=plain).enqueue(1)
    assert await job.astate() is State.QUEUED


async def test_a_connection_in_pipeline_mode_is_refused(task: Task[..., Any], postgres_database: str) -> None:
    with psycopg.connect(postgres_database) as plain:
        with plain.pipeline(), pytest.raises(Invalid, match="in pipeline mode"):
            task.using(connection=plain).enqueue(1)
        assert task.using(connection=plain).enqueue(1).created
    async with await psycopg.AsyncConnection.connect(postgres_database) as waiting:
        async with waiting.pipeline():
            with pytest.raises(Invalid, match="in pipeline mode"):
                await task.using(connection=waiting).aenqueue(1)
        assert (await task.using(connection=waiting).aenqueue(1)).created


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
async def test_a_connection_of_sqlalchemy_that_commits_by_itself_is_refused(
    task: Task[..., Any], postgres_database: str, driver: str
) -> None:
    url = drivers.dialect(postgres_database, driver)
    engine = create_async_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    async with engine.connect() as connection:
        with pytest.raises(Invalid, match="in no transaction"):
            await task.using(connection=connection).aenqueue(1)
    await engine.dispose()


async def test_the_face_must_fit_the_connection(task: Task[..., Any], postgres_database: str) -> None:
    for kind in (drivers.Asyncpg, drivers.AsyncPsycopg, drivers.AsyncAlchemy, drivers.AsyncAlchemySession):
        driver = kind()
        await driver.open(postgres_database)
        with pytest.raises(Invalid, match="await aenqueue"):
            task.using(connection=driver.connection).enqueue(1)
        await driver.execute("SELECT 1")
        await driver.close()
    for other in (drivers.Psycopg, drivers.Alchemy, drivers.AlchemySession):
        waiting = other()
        await waiting.open(postgres_database)
        with pytest.raises(Invalid, match="call enqueue"):
            await task.using(connection=waiting.connection).aenqueue(1)
        await waiting.execute("SELECT 1")
        await waiting.close()


async def test_other_objects_are_refused_by_their_names(task: Task[..., Any]) -> None:
    engine = create_engine("sqlite://", poolclass=NullPool)
    with Session(engine) as session:
        for wrong in (object(), "postgresql://", session, session.connection()):
            with pytest.raises(Invalid, match="must be one of asyncpg, psycopg 3") as caught:
                task.using(connection=wrong).enqueue(1)
            assert caught.value.field == "connection"
    engine.dispose()


async def test_a_database_without_our_tables_is_told_apart(
    app: App, task: Task[..., Any], postgres_server: SharedPostgres
) -> None:
    del app
    connection = await asyncpg.connect(postgres_server.url)
    transaction = connection.transaction()
    await transaction.start()
    with pytest.raises(Invalid, match="without the tables of Tidewheel"):
        await task.using(connection=connection).aenqueue(1)
    await transaction.rollback()
    await connection.close()


async def test_an_app_on_postgresql_has_no_transaction_of_its_own(app: App) -> None:
    with pytest.raises(Invalid, match="is for SQLite"):
        await app.atransaction(lambda tx: tx.execute("SELECT 1"))


# What others do meanwhile


async def test_a_new_kind_in_an_open_transaction_stops_nobody_else(
    app: App, task: Task[..., Any], postgres_database: str
) -> None:
    driver = drivers.Asyncpg()
    await driver.open(postgres_database)
    held = await driver.enqueue(task.using(queue="new", tenant="new"), 1)

    async with asyncio.timeout(30):
        other = await app.task(name="another")(_nothing).using(queue="newer", tenant="newer").aenqueue()
    assert await other.astate() is State.QUEUED
    await driver.rollback()
    await driver.close()
    assert await gone(held)


def _nothing() -> None: ...


async def test_an_old_snapshot_is_told_that_it_is_too_old(task: Task[..., Any], postgres_database: str) -> None:
    connection = await asyncpg.connect(postgres_database)
    transaction = connection.transaction(isolation="repeatable_read")
    await transaction.start()
    await connection.fetch("SELECT 1")
    with pytest.raises(Unavailable, match="begin a new one"):
        await task.using(connection=connection).aenqueue(1)
    assert await connection.fetchval("SELECT 1") == 1
    await transaction.rollback()

    async with connection.transaction(isolation="repeatable_read"):
        job = await task.using(connection=connection).aenqueue(1)
    assert await job.astate() is State.QUEUED
    await connection.close()


async def test_of_two_transactions_with_one_key_the_second_gets_the_job_of_the_first(
    task: Task[..., Any], postgres_database: str
) -> None:
    first, second = drivers.Asyncpg(), drivers.AsyncPsycopg()
    await first.open(postgres_database)
    await second.open(postgres_database)
    once = {"idempotency_key": "k"}
    made = await first.enqueue(task, 1, **once)
    await second.execute("CREATE TABLE mine (id integer)")
    waiting = asyncio.create_task(second.enqueue(task, 1, **once))
    watch = await asyncpg.connect(postgres_database)
    while not waiting.done() and not await _someone_waits(watch):
        pass
    assert not waiting.done()
    await first.commit()
    async with asyncio.timeout(30):
        found = await waiting
    await second.commit()

    assert (found, found.created) == (made, False)
    assert await second.execute("SELECT id FROM mine") == []
    for connection in (first, second, watch):
        await connection.close()


async def _someone_waits(watch: Any) -> bool:
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    return bool(await watch.fetchval(waiting))
