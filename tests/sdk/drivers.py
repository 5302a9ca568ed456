"""The ways in which a user of PostgreSQL may hold a connection, in one shape for the tests."""

import abc
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, cast
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import psycopg
from sqlalchemy import Engine, NullPool, create_engine, text
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from tidewheel import Job, Task


class Driver(abc.ABC):
    """A connection of the user's, in a transaction or about to begin one."""

    connection: Any

    @abc.abstractmethod
    async def open(self, url: str) -> None: ...

    @abc.abstractmethod
    async def close(self) -> None: ...

    @abc.abstractmethod
    async def execute(self, sql: str) -> list[Any]: ...

    @abc.abstractmethod
    async def commit(self) -> None: ...

    @abc.abstractmethod
    async def rollback(self) -> None: ...

    @abc.abstractmethod
    async def undone(self, work: Callable[[], Awaitable[Any]]) -> None:
        """Do work inside a savepoint, and roll back to it."""

    async def enqueue(self, task: Task[..., Any], *args: Any, **options: Any) -> Job[Any]:
        return await task.using(connection=self.connection, **options).aenqueue(*args)


class Synchronous(Driver):
    """Has no loop; its jobs are enqueued by the synchronous face."""

    async def enqueue(self, task: Task[..., Any], *args: Any, **options: Any) -> Job[Any]:
        return task.using(connection=self.connection, **options).enqueue(*args)


class Asyncpg(Driver):
    async def open(self, url: str) -> None:
        self.connection = await asyncpg.connect(url)
        await self._begin()

    async def _begin(self) -> None:
        self._transaction = self.connection.transaction()
        await self._transaction.start()

    async def close(self) -> None:
        await self.connection.close()

    async def execute(self, sql: str) -> list[Any]:
        return cast("list[Any]", await self.connection.fetch(sql))

    async def commit(self) -> None:
        await self._transaction.commit()
        await self._begin()

    async def rollback(self) -> None:
        await self._transaction.rollback()
        await self._begin()

    async def undone(self, work: Callable[[], Awaitable[Any]]) -> None:
        inner = self.connection.transaction()
        await inner.start()
        await work()
        await inner.rollback()


class AsyncpgPool(Asyncpg):
    """A connection that was taken from a pool."""

    async def open(self, url: str) -> None:
        self._pool = await asyncpg.create_pool(url, min_size=1, max_size=1)
        self.connection = await self._pool.acquire()
        await self._begin()

    async def close(self) -> None:
        await self._transaction.rollback()
        await self._pool.release(self.connection)
        await self._pool.close()


class Psycopg(Synchronous):
    connection: psycopg.Connection[Any]

    async def open(self, url: str) -> None:
        self.connection = psycopg.connect(url)

    async def close(self) -> None:
        self.connection.close()

    async def execute(self, sql: str) -> list[Any]:
        cursor = self.connection.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []

    async def commit(self) -> None:
        self.connection.commit()

    async def rollback(self) -> None:
        self.connection.rollback()

    async def undone(self, work: Callable[[], Awaitable[Any]]) -> None:
        with self.connection.transaction(force_rollback=True):
            await work()


class AsyncPsycopg(Driver):
    connection: psycopg.AsyncConnection[Any]

    async def open(self, url: str) -> None:
        self.connection = await psycopg.AsyncConnection.connect(url)

    async def close(self) -> None:
        await self.connection.close()

    async def execute(self, sql: str) -> list[Any]:
        cursor = await self.connection.execute(sql.encode())
        return await cursor.fetchall() if cursor.description else []

    async def commit(self) -> None:
        await self.connection.commit()

    async def rollback(self) -> None:
        await self.connection.rollback()

    async def undone(self, work: Callable[[], Awaitable[Any]]) -> None:
        async with self.connection.transaction(force_rollback=True):
            await work()


def dialect(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(scheme=f"postgresql+{name}"))


class Alchemy(Synchronous):
    """A Connection of SQLAlchemy."""

    engine: Engine

    async def open(self, url: str) -> None:
        self.engine = create_engine(dialect(url, "psycopg"), poolclass=NullPool)
        self.connection = self.engine.connect()

    async def close(self) -> None:
        self.connection.close()
        self.engine.dispose()

    async def execute(self, sql: str) -> list[Any]:
        result = self.connection.execute(text(sql))
        return list(result) if result.returns_rows else []

    async def commit(self) -> None:
        self.connection.commit()

    async def rollback(self) -> None:
        self.connection.rollback()

    async def undone(self, work: Callable[[], Awaitable[Any]]) -> None:
        inner = self.connection.begin_nested()
        await work()
        inner.rollback()


class AlchemySession(Alchemy):
    async def open(self, url: str) -> None:
        self.engine = create_engine(dialect(url, "psycopg"), poolclass=NullPool)
        self.connection = Session(self.engine)


class AsyncAlchemy(Driver):
    """An AsyncConnection of SQLAlchemy."""

    engine: AsyncEngine
    below: ClassVar = "asyncpg"

    async def open(self, url: str) -> None:
        self.engine = create_async_engine(dialect(url, self.below), poolclass=NullPool)
        self.connection = await self.engine.connect()

    async def close(self) -> None:
        await self.connection.close()
        await self.engine.dispose()

    async def execute(self, sql: str) -> list[Any]:
        result = await self.connection.execute(text(sql))
        return list(result) if result.returns_rows else []

    async def commit(self) -> None:
        await self.connection.commit()

    async def rollback(self) -> None:
        await self.connection.rollback()

    async def undone(self, work: Callable[[], Awaitable[Any]]) -> None:
        inner = await self.connection.begin_nested()
        await work()
        await inner.rollback()


class AsyncAlchemySession(AsyncAlchemy):
    async def open(self, url: str) -> None:
        self.engine = create_async_engine(dialect(url, self.below), poolclass=NullPool)
        self.connection = AsyncSession(self.engine)


class AsyncAlchemyPsycopg(AsyncAlchemy):
    below: ClassVar = "psycopg"


class AsyncAlchemySessionPsycopg(AsyncAlchemySession):
    below: ClassVar = "psycopg"


ALL: list[type[Driver]] = [
    Asyncpg,
    AsyncpgPool,
    Psycopg,
    AsyncPsycopg,
    Alchemy,
    AlchemySession,
    AsyncAlchemy,
    AsyncAlchemySession,
    AsyncAlchemyPsycopg,
    AsyncAlchemySessionPsycopg,
]
