"""One transaction on SQLite for jobs and for tables of one's own."""

import sqlite3  # noqa: TID251 - to see it refused
from typing import Any

import pytest

from tests.sdk.work import end_all
from tidewheel import App, Conflict, Invalid, Job, Transaction


@pytest.fixture
def task(app: App) -> Any:
    @app.task(name="send")
    def send(order: int) -> None: ...

    app.transaction(lambda tx: tx.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, paid BOOLEAN)"))
    return send


def orders(app: App) -> list[tuple[Any, ...]]:
    return app.transaction(lambda tx: tx.execute("SELECT id FROM orders ORDER BY id"))


def test_statements_and_jobs_happen_together(app: App, task: Any) -> None:
    def work(tx: Transaction) -> Job[None]:
        tx.execute("INSERT INTO orders VALUES (?, ?)", (1, True))
        tx.execute("INSERT INTO orders VALUES (:id, :paid)", {"id": 2, "paid": False})
        return tx.enqueue(task.using(priority="high"), order=1)

    job: Job[None] = app.transaction(work)

    assert orders(app) == [(1,), (2,)]
    assert job.info().args == {"order": 1}
    assert app.run(end_all(app)) == ["send"]


def test_what_is_raised_undoes_all_of_it(app: App, task: Any) -> None:
    def work(tx: Transaction) -> None:
        tx.execute("INSERT INTO orders VALUES (1, 1)")
        tx.enqueue(task, 1)
        tx.enqueue(task.using(queue="never-seen"), 1)
        raise RuntimeError("changed my mind")

    with pytest.raises(RuntimeError, match="changed my mind"):
        app.transaction(work)

    assert orders(app) == []
    assert app.run(end_all(app)) == []
    assert task.using(queue="never-seen").enqueue(5).info().queue == "never-seen"


async def test_the_async_face_does_the_same(app: App, task: Any) -> None:
    async with app:
        job: Job[None] = await app.atransaction(lambda tx: tx.enqueue(task, 7))
        assert (await job.ainfo()).args == {"order": 7}


@pytest.mark.parametrize(
    "statement",
    [
        "COMMIT",
        "ROLLBACK",
        "BEGIN",
        "SAVEPOINT mine",
        "RELEASE piece",
        "PRAGMA synchronous = OFF",
        "ATTACH ':memory:' AS other",
        "DELETE FROM job",
        "UPDATE job SET state = 'queued'",
        "INSERT INTO tenant (name) VALUES ('x')",
        "DROP TABLE job_history",
        "DROP INDEX job_due",
        "ALTER TABLE job ADD COLUMN mine",
        "CREATE INDEX mine ON job (id)",
        "CREATE TRIGGER mine AFTER INSERT ON job BEGIN SELECT 1; END",
        "CREATE TEMP TRIGGER mine AFTER INSERT ON job BEGIN SELECT 1; END",
        "SELECT 1; DELETE FROM job",
        "SELEC 1",
        "SELECT ?",
        "INSERT INTO orders VALUES (1, 1), (1, 1)",
    ],
)
def test_statements_that_are_not_the_users_business_are_refused(app: App, task: Any, statement: str) -> None:
    job = task.enqueue(1)

    with pytest.raises(Invalid) as caught:
        app.transaction(lambda tx: tx.execute(statement))

    assert caught.value.field == "sql"
    assert app.run(end_all(app)) == ["send"], "the store went on"
    assert job.info().finished_at is not None


def test_a_refused_statement_may_be_caught_and_the_rest_stands(app: App, task: Any) -> None:
    def work(tx: Transaction) -> None:
        tx.execute("INSERT INTO orders VALUES (1, 1)")
        with pytest.raises(Invalid, match="UNIQUE"):
            tx.execute("INSERT INTO orders VALUES (1, 1)")
        tx.enqueue(task, 1)

    app.transaction(work)
    assert orders(app) == [(1,)]


def test_a_call_that_would_wait_for_the_transaction_is_refused(app: App, task: Any) -> None:
    with pytest.raises(Conflict, match=r"use tx\.enqueue"):
        app.transaction(lambda _tx: task.enqueue(1))
    assert task.enqueue(1).created


def test_another_sqlite_library_is_refused_with_the_reason(app: App, task: Any) -> None:
    connection = sqlite3.connect(":memory:")
    for wrong, why in ((connection, "would drop the locks"), (object(), "app.transaction")):
        with pytest.raises(Invalid, match=why) as caught:
            task.using(connection=wrong).enqueue(1)
        assert caught.value.field == "connection"
        with pytest.raises(Invalid, match=why):
            app.enqueue_many([task.s(1), task.using(connection=wrong).s(2)])
    with pytest.raises(Invalid, match="must be the same for all calls"):
        app.enqueue_many([task.using(connection=connection).s(1)], connection=object())
    connection.close()
