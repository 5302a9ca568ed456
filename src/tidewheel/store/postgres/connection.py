"""Connections to PostgreSQL: a pool without session state, errors in our own words, and patience with lost races."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, LiteralString, TypeAlias, TypeVar

import asyncpg

from tidewheel.clock import Clock, SystemClock
from tidewheel.errors import Invalid, OutcomeUnknown, StoreFull, TideError, Unavailable
from tidewheel.store.queries import load

T = TypeVar("T")
if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    Connection: TypeAlias = PoolConnectionProxy[asyncpg.Record]
    RawConnection: TypeAlias = asyncpg.Connection[asyncpg.Record]
else:
    Connection = RawConnection = Any
Dial: TypeAlias = Callable[[], Awaitable[RawConnection]]
"""Opens a connection of one's own."""
Work: TypeAlias = Callable[[Connection], Awaitable[T]]

SQL: Final = load("tidewheel.store.postgres")

_TRIES = 8
START_PATIENCE: Final = 20.0
START_PAUSE: Final = 0.2
"""Seconds for which a server that is starting is waited for, and between two looks at it."""
LET_GO_WITHIN: Final = 0.1
"""Seconds for the server to break off what nobody waits for any more; one that hangs must not keep the caller."""
CONNECT_TIMEOUT: Final = 10.0
"""Seconds until a server that does not answer counts as unreachable."""


class Raced(Exception):
    """Someone was faster in a way that only shows afterwards: the transaction is to be run again."""


_LOST_RACES = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.LockNotAvailableError,
    asyncpg.UniqueViolationError,
    Raced,
)
_CUT_OFF = (
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    ConnectionError,
    TimeoutError,
)
_OF_THE_DRIVER = (asyncpg.PostgresError, *_CUT_OFF)
_TROUBLE: Final = ("53", "57", "58", "XX")
"""Classes of errors that say nothing of what was asked: want of resources, an operator, the system, a bug."""
_BROKEN_OFF: Final = ("FATAL", "PANIC")
"""How grave an error is with which a server ends the session, maybe in the middle of a commit."""
_REFUSED = (asyncpg.PostgresError, OSError)
"""What a server may answer to an attempt to connect: busy, no such database, wrong password, …"""
LOST: Final = (*_CUT_OFF, *_REFUSED)
"""What may become of a connection of one's own, or of the attempt to open it."""


class Database:
    """Runs work on pooled connections."""

    def __init__(self, pool: "asyncpg.Pool[Any]", clock: Clock, dial: Dial) -> None:
        self._pool = pool
        self.dial = dial
        self.clock = clock
        self._random = random.Random()  # noqa: S311 - spreads retries, guards nothing
        self._ahead = 0.0

    def time(self) -> float:
        """Return about what the database's clock says now, in seconds since the epoch."""
        return self.clock.monotonic() + self._ahead

    def learn_time(self, now: float) -> None:
        """Note what the database's clock just said."""
        self._ahead = now - self.clock.monotonic()

    async def read(self, work: Work[T]) -> T:
        """Run a piece of reading; a lost connection is simply Unavailable."""
        return await self._run(work, Unavailable)

    async def write(self, work: Work[T]) -> T:
        """Run one writing statement; a connection lost under way leaves the outcome unknown."""
        return await self._run(work, OutcomeUnknown)

    async def transaction(self, work: Work[T]) -> T:
        """Run several statements that happen whole or not at all; `work` may be run again after a lost race."""

        async def whole(connection: Connection) -> T:
            async with connection.transaction():
                return await work(connection)

        return await self._run(whole, OutcomeUnknown)

    async def close(self) -> None:
        """Wait for what is under way and close."""
        await self._pool.close()

    async def _run(self, work: Work[T], when_cut_off: type[Unavailable]) -> T:
        for turn in range(_TRIES):
            try:
                return await self._run_once(work, when_cut_off)
            except asyncpg.CheckViolationError as error:
                # A row without a partition violates no constraint that has a name.
                if error.constraint_name is not None or turn == _TRIES - 1:
                    raise
                await self._run_once(_prepare_days, Unavailable)
            except _LOST_RACES as error:
                if turn == _TRIES - 1:
                    raise Unavailable(f"PostgreSQL kept refusing a concurrent change: {error}") from error
                await self.clock.sleep(self._random.uniform(0, 0.002 * 2**turn))
        raise AssertionError("unreachable")

    async def _run_once(self, work: Work[T], when_cut_off: type[Unavailable]) -> T:
        """Run work on a connection of the pool. No context manager: every look at a job comes this way."""
        connection, patience = await self._acquire(), None
        try:
            return await work(connection)
        except asyncio.CancelledError:
            patience = LET_GO_WITHIN
            raise
        except _OF_THE_DRIVER as error:
            if isinstance(error, asyncpg.DataError):
                # A value that the driver cannot encode leaves the transaction open that the statement's parsing began.
                patience = LET_GO_WITHIN  # for whoever gives up meanwhile
                await connection.reset()
            if (told := _in_our_words(error, when_cut_off)) is None:
                raise
            raise told from error
        finally:
            await self._release(connection, patience)

    async def _acquire(self) -> Connection:
        try:
            return await self._pool.acquire()
        except LOST as error:
            raise Unavailable(f"PostgreSQL cannot be reached: {error}") from error

    async def _release(self, connection: Connection, patience: float | None) -> None:
        with suppress(TimeoutError):  # which ends the connection
            await self._pool.release(connection, timeout=patience)


async def _prepare_days(connection: Connection) -> None:
    await connection.fetchval(SQL["prepare_days"], 7)


def _in_our_words(error: BaseException, when_cut_off: type[Unavailable]) -> TideError | None:
    """Return what an error of the driver stands for; None if it says what it is itself."""
    if isinstance(error, asyncpg.DiskFullError):
        return StoreFull(f"PostgreSQL has no room left: {error}")
    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        return Unavailable(f"this PostgreSQL only answers reads: {error}")
    if isinstance(error, asyncpg.QueryCanceledError):
        return Unavailable(f"PostgreSQL broke this off: {error}")
    if isinstance(error, asyncpg.DataError):
        return Invalid("value", f"cannot be stored: {error}")
    if isinstance(error, _CUT_OFF):
        return when_cut_off(f"the connection to PostgreSQL was lost: {error}")
    return _trouble(error, when_cut_off) if isinstance(error, asyncpg.PostgresError) else None


def _trouble(error: asyncpg.PostgresError, when_cut_off: type[Unavailable]) -> Unavailable | None:
    """Return what an error stands for that is not about what was asked; None if it is."""
    if error.severity_en in _BROKEN_OFF:
        return when_cut_off(f"PostgreSQL ended the session: {error}")
    return Unavailable(f"PostgreSQL is in trouble: {error}") if (error.sqlstate or "")[:2] in _TROUBLE else None


async def one(connection: Connection, query: LiteralString, *values: Any) -> asyncpg.Record:
    """Return the one row of a statement that always has one."""
    row = await connection.fetchrow(query, *values)
    if row is None:
        raise AssertionError(f"no row from: {query}")
    return row


async def _keep_as_is(_: object) -> None:
    """Leave a connection as it is when it goes back: nothing here ever sets session state."""


async def _first_connection(pool: "asyncpg.Pool[Any]") -> None:
    """See that the server answers; one that is starting, perhaps after a crash, is waited for."""
    clock = SystemClock()
    latest = clock.monotonic() + START_PATIENCE
    while True:
        try:
            await pool.release(await pool.acquire())
        except asyncpg.CannotConnectNowError:
            if clock.monotonic() > latest:
                raise
            await clock.sleep(START_PAUSE)
        else:
            return


async def connect(url: str, *, pool_size: int, clock: Clock | None = None) -> Database:
    """Open a pool."""
    try:
        # No connection is kept for its own sake: the driver's way of restoring one floods the log during an outage.
        pool = await asyncpg.create_pool(
            url, min_size=0, max_size=pool_size, reset=_keep_as_is, timeout=CONNECT_TIMEOUT
        )
        await _first_connection(pool)
    except (asyncpg.ClientConfigurationError, ValueError) as error:
        raise Invalid("database", str(error)) from error
    except LOST as error:
        raise Unavailable(f"PostgreSQL cannot be reached: {str(error) or type(error).__name__}") from error

    async def dial() -> RawConnection:
        return await asyncpg.connect(url, timeout=CONNECT_TIMEOUT)

    return Database(pool, clock or SystemClock(), dial)
