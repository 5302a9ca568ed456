"""Migrations on PostgreSQL: each in a transaction with its number, one migrator at a time."""

from typing import Final

import asyncpg

from tidewheel.errors import StoreMismatch, Unavailable
from tidewheel.store.migrations import Migration, check_version, read
from tidewheel.store.postgres.connection import SQL, Connection, connect

MIGRATIONS: Final = read("tidewheel.store.postgres")
LEAST_SERVER: Final = 15
"""NULLS NOT DISTINCT came with PostgreSQL 15."""


async def version_of(connection: Connection) -> int:
    """Return the number of the newest migration that was applied, 0 for none."""
    if not await connection.fetchval(SQL["has_migrations"]):
        return 0
    version: int = await connection.fetchval(SQL["version"])
    return version


async def migrate(url: str) -> list[str]:
    """Apply what is pending and return the names of it."""
    database = await connect(url, pool_size=1)
    try:
        # A schema that is up to date is left alone: whoever only uses it need not have the right to change it.
        upgrade = await database.read(version_of) != len(MIGRATIONS)
        applied = await database.transaction(_apply) if upgrade else []
        await database.write(lambda connection: connection.fetchval(SQL["prepare_days"], 7))
    except asyncpg.InsufficientPrivilegeError as error:
        raise Unavailable(f"the user may not change the schema: {error}") from error
    finally:
        await database.close()
    return applied


async def check(url: str) -> int:
    """Return the schema version, or raise StoreMismatch if this program does not fit it."""
    database = await connect(url, pool_size=1)
    try:
        version = await database.read(version_of)
    finally:
        await database.close()
    check_version(version, len(MIGRATIONS))
    return version


async def pending_sql(url: str) -> str:
    """Return the SQL that `migrate` would run now."""
    database = await connect(url, pool_size=1)
    try:
        version = await database.read(version_of)
    finally:
        await database.close()
    steps = _pending(version)
    if not steps:
        return ""
    texts = [
        f"-- {step.number:04} {step.name}\n{step.sql}\n"
        f"INSERT INTO tidewheel.migration (number, name) VALUES ({step.number}, '{step.name}');\n"
        for step in steps
    ]
    return "\n".join([f"{SQL['make_migrations']};\n", *texts])


def _pending(version: int) -> list[Migration]:
    if version > len(MIGRATIONS):
        check_version(version, len(MIGRATIONS))
    return MIGRATIONS[version:]


async def _apply(connection: Connection) -> list[str]:
    server = connection.get_server_version().major
    if server < LEAST_SERVER:
        raise StoreMismatch(f"PostgreSQL {LEAST_SERVER} or newer is needed, not {server}")
    await connection.execute(SQL["begin_migrations"])
    await connection.execute(SQL["make_migrations"])
    steps = _pending(await version_of(connection))
    for step in steps:
        await connection.execute(step.sql)
        await connection.execute(SQL["note_migration"], step.number, step.name)
    return [f"{step.number:04}_{step.name}" for step in steps]
