"""What the tests of the PostgreSQL store share.

`backend` is a database in which time stands still until a test moves it; `store` and `worker` are open on it. Tests
that ask about plans, partitions or migrations take `postgres_database`, where time passes as it does everywhere.
"""

from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

from tests.builders import HOUR, a_worker
from tests.contract.postgres_backend import PostgresBackend
from tests.postgres import SharedPostgres
from tests.postgres_store.tools import Connect, Raw
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store


@pytest.fixture
def stopped_database(postgres_server: SharedPostgres, postgres_template: str) -> Iterator[PostgresBackend]:
    backend = PostgresBackend(postgres_server, postgres_template)
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
