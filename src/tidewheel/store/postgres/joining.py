"""The caller's own connection, whatever its driver, in the shape in which the statements of this store are run.

Known are asyncpg, psycopg 3 and SQLAlchemy 2 over either of them. None of these is imported here unless the caller has.
"""

import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, TypeVar, cast

import asyncpg

from tidewheel.errors import Invalid, Unavailable
from tidewheel.model.submission import LaneKey
from tidewheel.store.postgres.connection import SQL, Connection, Raced

T = TypeVar("T")

_TRIES: Final = 5
_UNIQUE_VIOLATION: Final = "23505"
_NO_SCHEMA: Final = ("3F000", "42P01")
_NO_TRANSACTION: Final = "is in no transaction: begin one, or leave the connection out"


async def join(connection: Any, *, waits: bool) -> Connection:
    """Return a connection of the caller's in our shape, or say why it cannot be used."""
    connection = await _below_sqlalchemy(connection, waits=waits)
    if isinstance(connection, asyncpg.Connection | asyncpg.pool.PoolConnectionProxy):
        _check_waits(connection, waits=waits, needed=True)
        if not connection.is_in_transaction():
            raise Invalid("connection", _NO_TRANSACTION)
        return cast("Connection", connection)
    psycopg = sys.modules.get("psycopg")
    if psycopg is not None and isinstance(connection, psycopg.Connection | psycopg.AsyncConnection):
        alone = isinstance(connection, psycopg.Connection)
        _check_waits(connection, waits=waits, needed=not alone)
        if connection.autocommit and connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            raise Invalid("connection", _NO_TRANSACTION)
        if connection.info.pipeline_status != psycopg.pq.PipelineStatus.OFF:
            raise Invalid("connection", "is in pipeline mode, in which answers come later: enqueue before or after it")
        return cast("Connection", Psycopg(connection) if alone else AsyncPsycopg(connection))
    known = "asyncpg, psycopg 3, or SQLAlchemy 2 over one of them"
    raise Invalid("connection", f"must be one of {known} in a transaction, not {_kind(connection)}")


def _check_waits(connection: object, *, waits: bool, needed: bool) -> None:
    if needed and not waits:
        raise Invalid("connection", f"{_kind(connection)} is asynchronous: await aenqueue(…)")
    if waits and not needed:
        raise Invalid(
            "connection", f"{_kind(connection)} would stop the event loop: call enqueue(…), or use an async one"
        )


def _kind(thing: object) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


# SQLAlchemy


async def _below_sqlalchemy(connection: Any, *, waits: bool) -> Any:
    """Return the driver's connection beneath one of SQLAlchemy's, which is in a transaction afterwards."""
    if "sqlalchemy" not in sys.modules:
        return connection
    from sqlalchemy import Connection as Plain  # noqa: PLC0415 - the caller has imported it already
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession  # noqa: PLC0415
    from sqlalchemy.orm import Session  # noqa: PLC0415

    if isinstance(connection, AsyncSession | AsyncConnection):
        _check_waits(connection, waits=waits, needed=True)
        return await _driver_of(await connection.connection() if isinstance(connection, AsyncSession) else connection)
    if isinstance(connection, Session):
        connection = connection.connection()
    if not isinstance(connection, Plain):
        return connection
    if not connection.in_transaction():
        connection.begin()
    return connection.connection.driver_connection


async def _driver_of(connection: Any) -> Any:
    if not connection.in_transaction():
        await connection.begin()
    driver = (await connection.get_raw_connection()).driver_connection
    if isinstance(driver, asyncpg.Connection) and not driver.is_in_transaction():
        await connection.exec_driver_sql(SQL["begin_by_look"])
    return driver


# psycopg


class Row(tuple[Any, ...]):  # noqa: SLOT001 - it has one more attribute than a tuple
    """A row whose values are found by place or by name, as those of asyncpg are."""

    names: Sequence[str]

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(self.names.index(key) if isinstance(key, str) else key)


def _make_rows(cursor: Any) -> Callable[[Iterable[Any]], Row]:
    names = [column.name for column in cursor.description or ()]

    def make(values: Iterable[Any]) -> Row:
        row = Row(values)
        row.names = names
        return row

    return make


def _plain(value: Any) -> Any:
    """Return a value without the enums that psycopg would write by their names."""
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return str(value) if isinstance(value, str) else value


class Psycopg:
    """A connection of psycopg 3, used in the thread of its owner; nothing here ever waits for a loop."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def fetch(self, query: str, *values: Any) -> list[Row]:
        return self._fetch(query, values)

    async def fetchrow(self, query: str, *values: Any) -> Row | None:
        rows = self._fetch(query, values)
        return rows[0] if rows else None

    async def fetchval(self, query: str, *values: Any) -> Any:
        rows = self._fetch(query, values)
        return rows[0][0] if rows else None

    async def execute(self, query: str, *values: Any) -> None:
        self._fetch(query, values)

    def _fetch(self, query: str, values: Sequence[Any]) -> list[Row]:
        from psycopg import RawCursor  # noqa: PLC0415 - the caller has imported it already

        with RawCursor(self._connection, row_factory=_make_rows) as cursor:
            cursor.execute(query.encode(), [_plain(value) for value in values])
            return cursor.fetchall() if cursor.description else []


class AsyncPsycopg:
    """An asynchronous connection of psycopg 3."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def fetch(self, query: str, *values: Any) -> list[Row]:
        from psycopg import AsyncRawCursor  # noqa: PLC0415 - the caller has imported it already

        async with AsyncRawCursor(self._connection, row_factory=_make_rows) as cursor:
            await cursor.execute(query.encode(), [_plain(value) for value in values])
            return await cursor.fetchall() if cursor.description else []

    async def fetchrow(self, query: str, *values: Any) -> Row | None:
        rows = await self.fetch(query, *values)
        return rows[0] if rows else None

    async def fetchval(self, query: str, *values: Any) -> Any:
        rows = await self.fetch(query, *values)
        return rows[0][0] if rows else None

    async def execute(self, query: str, *values: Any) -> None:
        await self.fetch(query, *values)


# Inside the caller's transaction


async def find_lanes(joined: Connection, keys: list[LaneKey]) -> list[tuple[int, int]]:
    """Return the (lane, tenant) numbers of lanes that were made before; asks the caller's database, not our memory."""
    found = {key: await _find_lane(joined, key) for key in dict.fromkeys(keys)}
    return [found[key] for key in keys]


async def _find_lane(joined: Connection, key: LaneKey) -> tuple[int, int]:
    try:
        row = await joined.fetchrow(SQL["find_named_lane"], key.tenant, key.queue, key.kind, key.needs, key.keyed)
    except Exception as error:
        if getattr(error, "sqlstate", None) in _NO_SCHEMA:
            raise Invalid("connection", "leads to a database without the tables of Tidewheel") from error
        raise
    if row is None:
        raise Unavailable(
            f"the transaction does not see that {key.kind} is known: it began before that, so begin a new one; "
            "or its connection leads to another database than the app's"
        )
    return row[0], row[1]


async def again_if_raced(joined: Connection, work: Callable[[], Awaitable[T]]) -> T:
    """Run statements that others may get in the way of, without harm to what the caller did before."""
    for turn in range(_TRIES):
        await joined.execute(SQL["mark_caller"])
        try:
            answer = await work()
        except Exception as error:
            await joined.execute(SQL["undo_to_caller"])
            await joined.execute(SQL["unmark_caller"])
            raced = isinstance(error, Raced) or getattr(error, "sqlstate", None) == _UNIQUE_VIOLATION
            if not raced:
                raise
            if turn == _TRIES - 1:
                raise Unavailable(f"others kept getting in the way of this transaction: {error}") from error
        else:
            await joined.execute(SQL["unmark_caller"])
            return answer
    raise AssertionError("unreachable")
