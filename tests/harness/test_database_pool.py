"""A database that one test has used is as good as new for the next, or is not used again."""

from collections.abc import Iterator
from typing import Any, Final

import psycopg
import pytest

from tests.database_pool import DatabasePool
from tests.postgres import SharedPostgres

TABLES: Final = (
    "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'tidewheel'::regnamespace AND relkind = 'r'"
)
SEQUENCES: Final = "SELECT sequencename, last_value FROM pg_sequences ORDER BY 1"


@pytest.fixture
def pool(postgres_server: SharedPostgres) -> Iterator[DatabasePool]:
    made = DatabasePool(postgres_server.url, postgres_server.template)
    yield made
    made.close()


def do(server: SharedPostgres, name: str, *statements: str) -> list[Any]:
    with psycopg.connect(server.database_url(name), autocommit=True) as connection:
        for statement in statements[:-1]:
            connection.execute(statement.encode())
        cursor = connection.execute(statements[-1].encode())
        return cursor.fetchall() if cursor.description else []


def contents(server: SharedPostgres, name: str) -> list[Any]:
    tables = [table for (table,) in do(server, name, TABLES)]
    return [
        do(server, name, SEQUENCES),
        *(sorted(do(server, name, f"SELECT whole::text FROM {t} AS whole")) for t in tables),
    ]


@pytest.mark.parametrize(
    "deeds",
    [
        ["SELECT 1"],
        ["INSERT INTO tidewheel.tenant (name) VALUES ('acme')", "DELETE FROM tidewheel.tenant"],
        ["UPDATE tidewheel.job SET updated_at = now() WHERE id IN (SELECT id FROM tidewheel.job LIMIT 5)"],
        ["DELETE FROM tidewheel.dependency", "DELETE FROM tidewheel.meta"],
        ["SELECT nextval(oid) FROM pg_class WHERE relnamespace = 'tidewheel'::regnamespace AND relkind = 'S'"],
        ["BEGIN", "CREATE TABLE tidewheel.more (id int)", "ROLLBACK"],
    ],
    ids=["a look", "rows", "changed rows", "lost rows", "sequences", "a schema rolled back"],
)
def test_what_a_test_did_is_taken_back(pool: DatabasePool, postgres_server: SharedPostgres, deeds: list[str]) -> None:
    name = pool.take()
    before = contents(postgres_server, name)

    do(postgres_server, name, *deeds)
    pool.give_back(name)

    assert pool.take() == name
    assert contents(postgres_server, name) == before


@pytest.mark.parametrize(
    "deed",
    [
        "CREATE TABLE tidewheel.more (id int)",
        "CREATE OR REPLACE FUNCTION tidewheel.now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT now()'",
        "CREATE INDEX ON tidewheel.tenant (name)",
        "ALTER TABLE tidewheel.tenant SET (fillfactor = 50)",
        "DROP TABLE tidewheel.sweep",
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET work_mem = ''1MB''', current_database()); END $$",
    ],
)
def test_a_database_whose_schema_or_settings_changed_is_removed(
    pool: DatabasePool, postgres_server: SharedPostgres, deed: str
) -> None:
    name = pool.take()

    do(postgres_server, name, deed)
    pool.give_back(name)

    assert pool.take() != name
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        do(postgres_server, name, "SELECT 1")


def test_what_is_given_back_twice_is_given_out_once(pool: DatabasePool) -> None:
    name = pool.take()

    pool.give_back(name)
    pool.give_back(name)

    assert pool.take() == name
    assert pool.take() != name
