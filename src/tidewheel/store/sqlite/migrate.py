"""Migrations on SQLite: all that are pending in one transaction. An older file is brought up to date when opened."""

from pathlib import Path
from typing import Final

import apsw

from tidewheel.errors import StoreMismatch
from tidewheel.store.migrations import Migration, check_version, read
from tidewheel.store.sqlite.connection import connect, translate
from tidewheel.store.sqlite.place import leftover_log, refuse_network

MIGRATIONS: Final = read("tidewheel.store.sqlite")
APPLICATION: Final = 0x54494445
"""Says in the header of the file whose it is: TIDE."""
CHECKED_SIZE: Final = 256 * 1024 * 1024
"""After an unclean stop a file up to this size is read through before it is trusted; larger ones by `check` alone."""


def open_migrated(path: Path, *, create: bool = True) -> apsw.Connection:
    """Open the file of a store, made or brought up to date as needed, or say what is wrong with it."""
    refuse_network(path)
    log = leftover_log(path)
    connection = connect(path, create=create)
    try:
        apply(connection, path)
        if log and path.stat().st_size <= CHECKED_SIZE:
            _refuse_damaged(connection, path)
    except apsw.Error as error:
        connection.close()
        raise translate(error, path) from error
    except BaseException:
        connection.close()
        raise
    return connection


def migrate(path: Path | str) -> list[str]:
    """Apply what is pending and return the names of it."""
    place = Path(path)
    refuse_network(place)
    connection = connect(place, create=True)
    try:
        return apply(connection, place)
    except apsw.Error as error:
        raise translate(error, place) from error
    finally:
        connection.close()


def check(path: Path | str) -> int:
    """Read the whole file through and return its schema version; raise StoreMismatch if something is wrong with it."""
    place = Path(path)
    connection = connect(place)
    try:
        version = _version(connection, place)
        check_version(version, len(MIGRATIONS))
        _refuse_damaged(connection, place)
    except apsw.Error as error:
        raise translate(error, place) from error
    finally:
        connection.close()
    return version


def pending_sql(path: Path | str) -> str:
    """Return the SQL that `migrate` would run now."""
    place = Path(path)
    version = 0
    if place.exists():
        connection = connect(place)
        try:
            version = _version(connection, place)
        except apsw.Error as error:
            raise translate(error, place) from error
        finally:
            connection.close()
    steps = _pending(version)
    if not steps:
        return ""
    texts = [f"-- {step.number:04} {step.name}\n{step.sql}" for step in steps]
    marks = f"PRAGMA application_id = {APPLICATION};\nPRAGMA user_version = {len(MIGRATIONS)};"
    return "\n".join(["PRAGMA journal_mode = WAL;", "BEGIN IMMEDIATE;", *texts, marks, "COMMIT;"])


def apply(connection: apsw.Connection, path: Path) -> list[str]:
    """Bring a file up to date, one process at a time, and return what was applied."""
    version = _version(connection, path)
    if not _pending(version):
        return []
    if version == 0:
        connection.pragma("journal_mode", "WAL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        steps = _pending(_version(connection, path))  # another process may have been first
        for step in steps:
            connection.execute(step.sql)
        connection.pragma("application_id", APPLICATION)
        connection.pragma("user_version", len(MIGRATIONS))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return [f"{step.number:04}_{step.name}" for step in steps]


def _pending(version: int) -> list[Migration]:
    if version > len(MIGRATIONS):
        check_version(version, len(MIGRATIONS))
    return MIGRATIONS[version:]


def _version(connection: apsw.Connection, path: Path) -> int:
    """Return the schema version, 0 for an empty file; refuse the file of another program."""
    application = connection.pragma("application_id")
    version: int = connection.pragma("user_version")
    if application == APPLICATION:
        return version
    if application or version or connection.pragma("schema_version"):
        raise StoreMismatch(f"{path} is an SQLite database of another program, not a Tidewheel store")
    return 0


def _refuse_damaged(connection: apsw.Connection, path: Path) -> None:
    found = connection.pragma("quick_check", 1)
    if found != "ok":
        raise StoreMismatch(f"{path} is damaged ({found}): stop all programs, keep a copy, restore from a backup")
