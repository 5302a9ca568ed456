"""What the tests of the PostgreSQL store do again and again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias, TypeVar

import asyncpg

from tidewheel.clock import SystemClock
from tidewheel.store.postgres import PostgresStore, open_store

T = TypeVar("T")
Raw: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Connect: TypeAlias = Callable[[str], Awaitable[Raw]]

PATIENCE: Final = 20.0
"""Seconds after which a test that waits for another process gives up; nothing takes this long."""

FUTURE: Final = """
    INSERT INTO tidewheel.job (id, lane, tenant, priority, state, run_at, due_at, args, created_at, updated_at)
    SELECT uuidv7(), $1, $2, 1, 'queued', now() + interval '1 hour' + n * interval '1 millisecond', now(), '{}', now(),
           now()
      FROM generate_series(1, $3) AS n
"""
"""Adds jobs of the future to a lane: (lane, tenant, how many)."""


@asynccontextmanager
async def opened(url: str, **settings: Any) -> AsyncIterator[PostgresStore]:
    store = await open_store(url, **settings)
    try:
        yield store
    finally:
        await store.close()


async def soon(work: Awaitable[T]) -> T:
    """Wait for something that must not hang."""
    return await asyncio.wait_for(work, PATIENCE)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Return as soon as a condition holds: for what happens in the server, which gives no other signal."""
    clock = SystemClock()
    end = clock.monotonic() + PATIENCE
    while not await condition():
        assert clock.monotonic() < end, "what the test waits for did not happen"
        await clock.sleep(0.005)


async def until_blocked(connection: Raw, how_many: int = 1) -> None:
    """Return when that many other sessions of this database wait for a lock."""

    async def blocked() -> bool:
        waiting: int = await connection.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return waiting >= how_many

    await until(blocked)


def complete(work: Coroutine[Any, Any, T]) -> T:
    """Run something from outside of any loop, and leave the loop of this thread alone."""
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(work)
