"""The schema: as the snapshot says, made once by whoever comes first, and refused if it does not fit."""

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

from tests.postgres import SharedPostgres
from tests.postgres_store.snapshot import SNAPSHOT, schema_text
from tests.postgres_store.tools import Connect, Raw, opened, soon
from tidewheel.errors import StoreMismatch
from tidewheel.model.gate import GateMode
from tidewheel.model.priority import Priority
from tidewheel.model.states import ACTIVE, FINAL, State
from tidewheel.store.postgres import check, migrate, open_store, pending_sql
from tidewheel.store.postgres.migrate import MIGRATIONS

NEWEST = len(MIGRATIONS)
MODULE = import_module("tidewheel.store.postgres.migrate")
"""The package has a function of the same name."""


@pytest.fixture
def empty_database(postgres_server: SharedPostgres) -> Iterator[str]:
    """The URL of a database without any schema."""
    name = f"tide_empty_{secrets.token_hex(4)}"
    postgres_server.execute(f"CREATE DATABASE {name} TEMPLATE template0")
    yield postgres_server.database_url(name)
    postgres_server.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def test_the_snapshot_is_what_the_migrations_make(empty_database: str) -> None:
    await migrate(empty_database)

    assert schema_text(empty_database) == SNAPSHOT.read_text("utf-8"), "run `make schema`"


async def test_the_snapshot_is_the_same_on_every_day_and_in_every_time_zone(
    empty_database: str, connect: Connect
) -> None:
    await migrate(empty_database)
    connection = await connect(empty_database)
    name = await connection.fetchval("SELECT current_database()")
    await connection.execute("SELECT tidewheel.prepare_days(current_date + 30, 3)")
    await connection.execute(f"ALTER DATABASE {name} SET TimeZone = 'Asia/Tokyo'")

    assert schema_text(empty_database) == SNAPSHOT.read_text("utf-8")


async def test_migrating_says_what_it_did_and_does_it_once(empty_database: str) -> None:
    names = [f"{migration.number:04}_{migration.name}" for migration in MIGRATIONS]

    assert await migrate(empty_database) == names
    assert await migrate(empty_database) == []
    assert await check(empty_database) == NEWEST


async def test_of_many_who_migrate_at_the_same_time_one_does(empty_database: str) -> None:
    applied = await soon(asyncio.gather(*(migrate(empty_database) for _ in range(4))))

    assert sorted(map(len, applied)) == [0, 0, 0, NEWEST]
    assert schema_text(empty_database) == SNAPSHOT.read_text("utf-8")


async def test_migrating_beside_an_open_store_disturbs_nobody(postgres_database: str) -> None:
    async with opened(postgres_database) as store:
        assert await soon(migrate(postgres_database)) == []
        assert await store.workers() == []


async def test_a_migration_that_fails_leaves_nothing_of_it(
    empty_database: str, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = MIGRATIONS[-1]._replace(sql=f"{MIGRATIONS[-1].sql}\n;SELECT 1 / 0")
    with monkeypatch.context() as patch:
        patch.setattr(MODULE, "MIGRATIONS", [*MIGRATIONS[:-1], broken])
        with pytest.raises(Exception, match="division by zero"):
            await migrate(empty_database)

    assert await (await connect(empty_database)).fetchval("SELECT to_regnamespace('tidewheel')") is None
    assert len(await migrate(empty_database)) == NEWEST


@pytest.mark.parametrize("use", [check, open_store, pending_sql, migrate])
async def test_a_store_that_is_newer_than_the_program_is_refused_with_advice(
    postgres_database: str, connect: Connect, use: Callable[[str], Awaitable[Any]]
) -> None:
    connection = await connect(postgres_database)
    await connection.execute(
        "INSERT INTO tidewheel.migration (number, name) VALUES ($1, 'from_the_future')", NEWEST + 1
    )

    with pytest.raises(StoreMismatch, match=f"schema {NEWEST + 1}.*knows only {NEWEST}.*upgrade Tidewheel"):
        await soon(use(postgres_database))


@pytest.mark.parametrize("use", [check, open_store])
async def test_a_store_that_was_never_migrated_is_refused_with_advice(
    empty_database: str, connect: Connect, use: Callable[[str], Awaitable[Any]]
) -> None:
    with pytest.raises(StoreMismatch, match=f"schema 0.*needs {NEWEST}.*tide db upgrade"):
        await soon(use(empty_database))

    assert await (await connect(empty_database)).fetchval("SELECT to_regnamespace('tidewheel')") is None


async def test_the_pending_sql_is_what_is_not_yet_there(empty_database: str) -> None:
    text = await pending_sql(empty_database)

    assert all(migration.sql in text for migration in MIGRATIONS)
    await migrate(empty_database)
    assert await pending_sql(empty_database) == ""


async def test_the_pending_sql_run_by_hand_does_what_migrate_does(empty_database: str, connect: Connect) -> None:
    """For those whose database is changed only by its administrators."""
    connection = await connect(empty_database)
    await connection.execute(await pending_sql(empty_database))

    assert await check(empty_database) == NEWEST
    assert schema_text(empty_database) == SNAPSHOT.read_text("utf-8")


async def test_an_old_server_is_refused_with_the_version_it_needs(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MODULE, "LEAST_SERVER", 99)

    with pytest.raises(StoreMismatch, match="PostgreSQL 99 or newer is needed, not 1"):
        await migrate(empty_database)


async def _checks(connection: Raw, table: str) -> list[str]:
    return [
        row[0]
        for row in await connection.fetch(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = $1::text::regclass AND contype = 'c'",
            f"tidewheel.{table}",
        )
    ]


@pytest.mark.parametrize(("table", "states"), [("job", ACTIVE), ("job_history", FINAL)])
async def test_a_table_holds_just_the_states_of_the_model(
    postgres_database: str, connect: Connect, table: str, states: tuple[State, ...]
) -> None:
    checks = await _checks(await connect(postgres_database), table)

    found = [re.findall(r"'(\w+)'", check) for check in checks if "state = ANY" in check]
    assert [tuple(names) for names in found] == [states]


async def test_the_days_of_history_divide_the_final_states_between_them(
    postgres_database: str, connect: Connect
) -> None:
    rows = await (await connect(postgres_database)).fetch(
        "SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname ~ '^job_history_(succeeded|other)$'"
    )

    assert sorted(name for row in rows for name in re.findall(r"'(\w+)'", row[0])) == sorted(FINAL)


async def test_the_priorities_are_those_of_the_model(postgres_database: str, connect: Connect) -> None:
    connection = await connect(postgres_database)

    (bounds,) = [check for check in await _checks(connection, "job") if "priority" in check]
    assert re.findall(r"(>=|<=) (\d+)", bounds) == [(">=", str(min(Priority))), ("<=", str(max(Priority)))]
    floors = await connection.fetchval(
        "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'tidewheel.lane'::regclass "
        "AND pg_get_expr(adbin, adrelid) LIKE '%0001%'"
    )
    assert floors.count("0001-01-01") == len(Priority), "one mark for each"


async def test_the_gates_are_those_of_the_model(postgres_database: str, connect: Connect) -> None:
    connection = await connect(postgres_database)

    for table, column, others in (("gate", "mode", []), ("lane", "gate", ["open"])):
        (check,) = [check for check in await _checks(connection, table) if f"{column} = ANY" in check]
        assert sorted(re.findall(r"'(\w+)'", check)) == sorted([*others, *GateMode])


async def test_the_table_of_jobs_is_vacuumed_by_count_and_keeps_its_pages(
    postgres_database: str, connect: Connect
) -> None:
    """A vacuum that shortens the file takes a lock that stops all claimers; an empty file misleads the planner."""
    connection = await connect(postgres_database)
    options = dict(
        option.split("=")
        for option in await connection.fetchval("SELECT reloptions FROM pg_class WHERE oid = 'tidewheel.job'::regclass")
    )
    assert float(options["autovacuum_vacuum_scale_factor"]) == 0
    assert 1000 <= int(options["autovacuum_vacuum_threshold"]) <= 10_000
    assert float(options["autovacuum_vacuum_cost_delay"]) == 0
    assert options["vacuum_truncate"] in {"off", "false"}
    before = await connection.fetchval("SELECT pg_relation_size('tidewheel.job')")
    await connection.execute("VACUUM ANALYZE tidewheel.job")

    assert await connection.fetchval("SELECT pg_relation_size('tidewheel.job')") == before >= 200 * 8192


async def test_the_hot_table_has_the_indexes_that_are_meant_and_no_others(
    postgres_database: str, connect: Connect
) -> None:
    """Every index costs every job; labels and arguments have none."""
    rows = await (await connect(postgres_database)).fetch(
        "SELECT indexrelid::regclass::text AS name FROM pg_index WHERE indrelid = 'tidewheel.job'::regclass"
    )

    assert {row["name"].removeprefix("tidewheel.") for row in rows} == {
        *("job_pkey", "job_due", "job_running", "job_cancelling"),
        *("job_limited", "job_blocked", "job_tenant", "job_start_by", "job_unique", "job_schedule"),
        "job_capped",
    }
