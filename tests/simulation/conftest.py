"""The databases of the simulations: their time is told, and they lie in memory where there is such."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.contract.backends import Backend, SqliteBackend
from tests.contract.postgres_backend import PostgresBackend
from tests.postgres import SharedPostgres

MEMORY = Path("/dev/shm")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory: a year has thousands of commits."""
    if not MEMORY.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=MEMORY) as made:
        yield Path(made)


@pytest.fixture
async def sqlite(folder: Path) -> AsyncIterator[Backend]:
    backend = SqliteBackend(folder)
    yield backend
    await backend.close()


@pytest.fixture
def empty_postgres(postgres_server: SharedPostgres, postgres_template: str) -> Iterator[Backend]:
    backend = PostgresBackend(postgres_server, postgres_template)
    yield backend
    backend.destroy()


@pytest.fixture
async def postgres(empty_postgres: Backend) -> AsyncIterator[Backend]:
    yield empty_postgres
    await empty_postgres.close()
