"""What the tests of the PostgreSQL store share.

`backend` is a database in which time stands still until a test moves it; `store` and `worker` are open on it. Tests
that ask about plans, partitions or migrations take `postgres_database`, where time passes as it does everywhere.
"""

import secrets
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import asyncpg
import pytest

from tests.builders import HOUR, a_worker
from tests.contract.backends import PostgresBackend
from tests.postgres import SharedPostgres
from tests.postgres_store.tools import Connect, Raw, complete, opened
from tidewheel.model.states import FINAL
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store


@pytest.fixture(scope="session")
def stopped_template(postgres_server: SharedPostgres) -> Iterator[str]:
    """A migrated database in which time stands still, with the days of that time."""
    name = f"tide_stopped_{secrets.token_hex(4)}"
    postgres_server.execute(f"CREATE DATABASE {name} TEMPLATE {postgres_server.template}")
    complete(_stop_time(postgres_server.database_url(name)))
    yield name
    postgres_server.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def _stop_time(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(PostgresBackend.INSTALL_CLOCK)
    await connection.close()
    async with opened(url) as store:
        await store.retire(dict.fromkeys(FINAL, timedelta(0)))  # the days that were made before time stood still


@pytest.fixture
def stopped_database(postgres_server: SharedPostgres, stopped_template: str) -> Iterator[PostgresBackend]:
    backend = PostgresBackend(postgres_server, stopped_template)
    yield backend
    backend.destroy()


@pytest.fixture
async def backend(stopped_database: PostgresBackend) -> AsyncIterator[PostgresBackend]:
    yield stopped_database
    await stopped_database.close()


@pytest.fixture
async def store(backend: PostgresBackend) -> Store:
    return await backend.open()


@pytest.fixture
async def worker(store: Store) -> Worker:
    return await store.register(a_worker(ttl=HOUR))


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """A function that opens a bare connection, which ends with the test."""
    connections: list[Raw] = []

    async def open_one(url: str) -> Raw:
        connections.append(connection := await asyncpg.connect(url))
        return connection

    yield open_one
    for connection in connections:
        connection.terminate()
