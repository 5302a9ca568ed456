"""What is wrong with PostgreSQL itself is told with its cause, and is over when that is."""

import os
import secrets
from datetime import timedelta
from pathlib import Path

import pytest

from harness.postgres import DURABLE, PostgresServer
from tests.postgres_store.tools import Connect, opened, until
from tidewheel.keeper.alerts import Watch
from tidewheel.model.alert import Alert, AlertState, Rule
from tidewheel.model.alert_bounds import Bounds
from tidewheel.store.base import Store
from tidewheel.store.postgres.alerting import gaps_of
from tidewheel.store.postgres.connection import SQL
from tidewheel.store.postgres.migrate import migrate
from tidewheel.store.postgres.own_disk import disks_of

NOTE = "INSERT INTO tidewheel.outbox (at, event) SELECT now(), 'dead' FROM generate_series(1, 300)"
LITTLE = Bounds(held_snapshot=timedelta(microseconds=1), dead_rows=200, replica_behind=1 << 20)


def device_of(path: Path) -> int:
    return path.stat().st_dev


async def firing(store: Store, rule: Rule) -> list[Alert]:
    """Look once, and return what fires by a rule."""
    await Watch(store, LITTLE).run_once()
    return [alert for alert in await store.alerts(state=AlertState.FIRING) if alert.rule is rule]


async def test_a_held_snapshot_is_told_with_its_process_until_it_is_let_go(
    postgres_database: str, connect: Connect
) -> None:
    holder = await connect(postgres_database)
    async with opened(postgres_database) as store:
        assert await firing(store, Rule.HELD_SNAPSHOT) == []
        held = holder.transaction(isolation="repeatable_read")
        await held.start()
        await holder.fetchval("SELECT 1")
        (alert,) = await firing(store, Rule.HELD_SNAPSHOT)
        assert alert.subject == f"pid {holder.get_server_pid()}"
        assert f"process {holder.get_server_pid()} has held a snapshot for" in alert.told
        await held.rollback()
        assert await firing(store, Rule.HELD_SNAPSHOT) == []


async def test_one_who_has_written_and_idles_holds_old_rows_too(postgres_database: str, connect: Connect) -> None:
    holder = await connect(postgres_database)
    async with opened(postgres_database) as store:
        held = holder.transaction()
        await held.start()
        await holder.execute(NOTE)
        (alert,) = await firing(store, Rule.HELD_SNAPSHOT)
        assert alert.subject == f"pid {holder.get_server_pid()}"
        await held.rollback()
        assert await firing(store, Rule.HELD_SNAPSHOT) == []


async def test_what_outlives_its_connection_is_told_until_it_is_gone(connect: Connect) -> None:
    settings = {**DURABLE, "wal_level": "logical", "max_prepared_transactions": "1"}
    with PostgresServer(settings) as server:
        await migrate(server.url())
        raw = await connect(server.url())
        async with opened(server.url()) as store:
            await raw.execute("SELECT pg_create_logical_replication_slot('copy', 'pgoutput')")
            for step in ("BEGIN", NOTE, "PREPARE TRANSACTION 'transfer'"):
                await raw.execute(step)
            held = {alert.subject: alert.told for alert in await firing(store, Rule.HELD_SNAPSHOT)}
            assert set(held) == {"prepared transfer", "slot copy"}
            older = SQL["snapshot_facts"].replace("inactive_since", "unknown_before_17")
            assert {row["holder"] for row in await raw.fetch(older)} == {"prepared transfer"}, "no more, and no error"
            assert held["prepared transfer"].startswith("the prepared transaction transfer has held a snapshot for")
            await raw.execute("SELECT pg_logical_emit_message(false, 'tide', repeat('x', 3000000), true)")
            (behind,) = await firing(store, Rule.REPLICA_LAG)
            assert behind.told == "replica slot copy is 3 MiB behind"
            await raw.execute("ROLLBACK PREPARED 'transfer'")
            await raw.execute("SELECT pg_drop_replication_slot('copy')")
            assert await firing(store, Rule.HELD_SNAPSHOT) == []
            assert await firing(store, Rule.REPLICA_LAG) == []
        await raw.close()


async def test_what_alerts_cannot_see_is_said_with_what_to_do(postgres_database: str, connect: Connect) -> None:
    assert gaps_of(17, sees_all=True, sees_disk=True) == []
    (slots,) = gaps_of(16, sees_all=True, sees_disk=True)
    assert slots.startswith("PostgreSQL 16 does not say since when a replication slot is unused (from 17 on)")
    assert "database.replica_lag tells of them" in slots
    raw, other = await connect(postgres_database), f"tide_test_{secrets.token_hex(4)}"
    async with opened(postgres_database, pool_size=1) as store:
        assert await store.alert_gaps() == []
        await raw.execute(f"CREATE ROLE {other}")
        try:
            await store._db.read(lambda connection: connection.execute(f"SET ROLE {other}"))
            others, disk = await store.alert_gaps()
            assert others.endswith("grant pg_monitor to the user of the database")
            assert "by database.disk_space: watch it on its machine, or set a bound for database.size" in disk
            await store._db.read(lambda connection: connection.execute("RESET ROLE"))
        finally:
            await raw.execute(f"DROP ROLE {other}")


async def test_a_disk_that_is_nearly_full_is_told_if_the_data_are_on_this_machine(
    postgres_database: str, connect: Connect
) -> None:
    raw = await connect(postgres_database)
    data = Path(await raw.fetchval("SHOW data_directory"))
    room = os.statvfs(data)
    async with opened(postgres_database) as store:
        disks = (await store.alert_facts()).disks
        free = {Path(disk.place): disk.free for disk in disks}[data]
        assert abs(free - room.f_bavail * room.f_frsize) < room.f_blocks * room.f_frsize // 10
        assert await Watch(store, Bounds(free_disk=1 << 60)).run_once() == len(disks)
        alerts = await store.alerts(state=AlertState.FIRING)
        assert {alert.rule for alert in alerts} == {Rule.DISK_SPACE}
        assert str(data) in {alert.subject for alert in alerts}
        assert await Watch(store, Bounds(free_disk=1)).run_once() == len(disks)


async def test_a_folder_of_another_server_is_not_taken_for_the_one_that_answers(
    postgres_database: str, connect: Connect, tmp_path: Path
) -> None:
    raw = await connect(postgres_database)
    data, backend = await raw.fetchval("SHOW data_directory"), raw.get_server_pid()
    assert disks_of(data, backend)
    for folder, process in ((data, os.getpid()), (data, 1 << 30), (str(tmp_path), backend), (None, backend)):
        assert disks_of(folder, process) == []
    (tmp_path / "postmaster.pid").write_text("not a number\n")
    assert disks_of(str(tmp_path), backend) == []


async def test_a_log_of_writes_on_a_disk_of_its_own_is_looked_at_too(
    postgres_database: str, connect: Connect, tmp_path: Path, memory_path: Path
) -> None:
    if device_of(tmp_path) == device_of(memory_path):
        pytest.skip("there is one disk alone")
    raw = await connect(postgres_database)
    data = Path(await raw.fetchval("SHOW data_directory"))
    (tmp_path / "postmaster.pid").write_text((data / "postmaster.pid").read_text())
    (tmp_path / "pg_wal").symlink_to(memory_path)
    assert {disk.place for disk in disks_of(str(tmp_path), raw.get_server_pid())} == {
        str(tmp_path),
        str(tmp_path / "pg_wal"),
    }


async def test_a_database_that_has_grown_to_its_bound_is_told_with_figures(
    postgres_database: str, connect: Connect
) -> None:
    name = await (await connect(postgres_database)).fetchval("SELECT current_database()")
    async with opened(postgres_database) as store:
        (fact,) = (await store.alert_facts()).sizes
        assert (fact.database, fact.size > 1 << 20) == (name, True)
        assert await Watch(store, Bounds(database_size=1 << 50)).run_once() == 0
        assert await Watch(store, Bounds(database_size=1 << 20)).run_once() == 1
        (alert,) = await store.alerts(state=AlertState.FIRING)
        assert (alert.rule, alert.subject) == (Rule.DATABASE_SIZE, name)
        assert alert.told.endswith("MiB, its bound is 1 MiB")


async def test_dead_rows_are_told_until_they_are_vacuumed(postgres_database: str, connect: Connect) -> None:
    raw = await connect(postgres_database)
    await raw.execute("VACUUM")  # what the tests before have left
    async with opened(postgres_database) as store:
        assert await firing(store, Rule.BLOAT) == []
        for statement in (NOTE, "DELETE FROM tidewheel.outbox", "SELECT pg_stat_force_next_flush()", "SELECT 1"):
            await raw.execute(statement)
        (alert,) = await firing(store, Rule.BLOAT)
        assert alert.told == "table outbox has 300 dead rows beside 0 that live: vacuum cannot keep up"
        await raw.execute("VACUUM tidewheel.outbox")
        assert await firing(store, Rule.BLOAT) == []


@pytest.mark.slow
async def test_a_replica_that_falls_behind_is_told_until_it_has_caught_up(
    private_postgres: PostgresServer, connect: Connect
) -> None:
    url = private_postgres.url()
    await migrate(url)
    with PostgresServer(standby_of=private_postgres) as standby:
        primary, replica = await connect(url), await connect(standby.url())
        async with opened(url) as store:

            async def caught_up() -> bool:
                facts = (await store.alert_facts()).replicas
                return [fact.behind < 1 << 20 for fact in facts] == [True]

            await until(caught_up)
            assert await firing(store, Rule.REPLICA_LAG) == []
            await replica.execute("SELECT pg_wal_replay_pause()")
            await primary.execute("SELECT pg_logical_emit_message(false, 'tide', repeat('x', 3000000), true)")

            async def told() -> bool:
                return bool(await firing(store, Rule.REPLICA_LAG))

            await until(told)
            (alert,) = await firing(store, Rule.REPLICA_LAG)
            assert alert.told.startswith(f"replica {alert.subject} is 3 MiB behind")
            await replica.execute("SELECT pg_wal_replay_resume()")
            await until(caught_up)
            assert await firing(store, Rule.REPLICA_LAG) == []
        await primary.close()
        await replica.close()
