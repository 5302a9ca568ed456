"""Taking in all that another store has."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec

from tidewheel.errors import Conflict
from tidewheel.model.ids import EPOCH
from tidewheel.model.job_phrases import Said, said_by, said_of_ends, said_of_kinds
from tidewheel.store.copying import Piece, Snapshot, changed_meanwhile
from tidewheel.store.migrations import COPYING
from tidewheel.store.postgres.connection import SQL, Connection, Database, connect
from tidewheel.store.postgres.migrate import migrate, version_of
from tidewheel.store.postgres.phrases import note_phrases

_POOL: Final = 2


def _instant(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def _span(micros: int) -> timedelta:
    return timedelta(microseconds=micros)


def _spans(stored: str) -> list[timedelta]:
    return [_span(micros) for micros in msgspec.json.decode(stored, type=list[int])]


def _id(stored: bytes) -> UUID:
    return UUID(bytes=stored)


_CONVERT: Final[Mapping[str, Callable[[Any], Any]]] = {
    "uuid": _id,
    "timestamp with time zone": _instant,
    "interval": _span,
    "interval[]": _spans,
    "boolean": bool,
    "text[]": msgspec.json.decode,
    "double precision": float,
}
"""What becomes of a value of the other store, by the type of its column here; all else is the same."""


class PostgresTarget:
    """See `store.copying.CopyTarget`."""

    def __init__(self, url: str, database: Database) -> None:
        self._url = url
        self._database = database
        self._types: dict[str, dict[str, str]] = {}

    async def begin(self, snapshot: Snapshot, *, restart: bool) -> Mapping[str, int]:
        if await self._database.read(version_of) != COPYING:
            await migrate(self._url)
            await self._database.transaction(lambda connection: _claim(connection, snapshot))
        elif restart:
            await self._database.transaction(lambda connection: _clear(connection, snapshot))
        else:
            await self._database.transaction(lambda connection: _recognise(connection, snapshot))
        await self._database.write(lambda connection: connection.fetchval(SQL["copy_days"], snapshot.first_day))
        return await self._database.read(_counts)

    async def write(self, piece: Piece) -> None:
        types = await self._types_of(piece.table)
        convert = [_CONVERT.get(types[column]) for column in piece.columns]
        records = [
            tuple(
                cell if cell is None or change is None else change(cell)
                for cell, change in zip(row, convert, strict=True)
            )
            for row in piece.rows
        ]

        async def add(connection: Connection) -> None:
            await connection.copy_records_to_table(
                piece.table, schema_name="tidewheel", columns=list(piece.columns), records=records
            )
            if piece.table == "log":
                await _note_fresh(connection, [dict(zip(piece.columns, record, strict=True)) for record in records])
            if piece.table in ("job", "job_history"):
                jobs = [dict(zip(piece.columns, row, strict=True)) for row in records]
                await note_phrases(connection, [*await _kinds(connection, jobs), *_said(jobs)])

        await self._database.transaction(add)

    async def finish(self, snapshot: Snapshot) -> None:
        await self._database.transaction(lambda connection: _finish(connection, snapshot))

    async def close(self) -> None:
        await self._database.close()

    async def _types_of(self, table: str) -> dict[str, str]:
        if table not in self._types:
            found = await self._database.read(lambda connection: connection.fetch(SQL["copy_columns"], table))
            self._types[table] = {row[0]: row[1] for row in found}
        return self._types[table]


async def open_target(url: str) -> PostgresTarget:
    """Connect to the database that a copy goes to."""
    return PostgresTarget(url, await connect(url, pool_size=_POOL))


async def _counts(connection: Connection) -> dict[str, int]:
    return {row[0]: row[1] for row in await connection.fetch(SQL["copy_counts"])}


async def _claim(connection: Connection, snapshot: Snapshot) -> None:
    """Note that a copy has begun, which keeps everyone else from opening the store."""
    taken = {table: rows for table, rows in (await _counts(connection)).items() if rows}
    if taken:
        told = ", ".join(f"{rows} in {table}" for table, rows in taken.items())
        raise Conflict(f"the target is not empty (rows: {told}): copy into a new database")
    await connection.execute(SQL["note_migration"], COPYING, snapshot.fingerprint)


async def _recognise(connection: Connection, snapshot: Snapshot) -> None:
    if await connection.fetchval(SQL["copy_mark"], COPYING) != snapshot.fingerprint:
        raise changed_meanwhile()


async def _clear(connection: Connection, snapshot: Snapshot) -> None:
    await connection.execute(SQL["copy_unmark"], COPYING)
    for step in ("copy_clear", "copy_clear_jobs", "copy_clear_edges", "copy_clear_phrases", "copy_clear_moments"):
        await connection.execute(SQL[step])
    await connection.execute(SQL["note_migration"], COPYING, snapshot.fingerprint)


async def _note_fresh(connection: Connection, pieces: list[dict[str, Any]]) -> None:
    await connection.execute(
        SQL["copy_fresh"],
        min(piece["stored_at"] for piece in pieces),
        max(piece["stored_at"] for piece in pieces),
        sum(piece["last"] - piece["first"] + 1 for piece in pieces),
        sum(len(piece["lines"]) for piece in pieces),
        [piece["job_id"] for piece in pieces],
        [piece["token"] for piece in pieces],
        [piece["first"] for piece in pieces],
        list({piece["lane"] for piece in pieces}),
    )


async def _kinds(connection: Connection, jobs: list[dict[str, Any]]) -> list[Said]:
    """Return that jobs are found by their kinds; the lanes are there already."""
    lanes = list({job["lane"] for job in jobs})
    kinds = {row[0]: row[1] for row in await connection.fetch(SQL["copy_kinds"], lanes)}
    return said_of_kinds((job["tenant"], job["id"], kinds[job["lane"]]) for job in jobs)


def _said(jobs: list[dict[str, Any]]) -> list[Said]:
    """Return what jobs are found by besides."""
    ends = [(job["tenant"], job["id"], _message(job["error"])) for job in jobs if job.get("error")]
    return [*said_by((job["tenant"], job["id"], job["labels"], job["options"]) for job in jobs), *said_of_ends(ends)]


def _message(error: str) -> str | None:
    message: str | None = msgspec.json.decode(error).get("message")
    return message


async def _finish(connection: Connection, snapshot: Snapshot) -> None:
    await _recognise(connection, snapshot)
    found = await _counts(connection)
    wrong = [f"{found[table]} of {rows} in {table}" for table, rows in snapshot.counts.items() if found[table] != rows]
    if wrong:
        raise Conflict(f"the numbers differ ({', '.join(wrong)}): begin anew by `tide db copy --restart`")
    await connection.execute(SQL["copy_finish"], snapshot.epoch, snapshot.noted)
    await connection.execute(SQL["copy_unmark"], COPYING)
