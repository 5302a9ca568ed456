"""A store in a fresh file, and a grip on its writer."""

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tidewheel.errors import Unavailable
from tidewheel.store.sqlite import SqliteStore, open_store
from tidewheel.store.sqlite.session import Session
from tidewheel.testing import FakeClock


class Grip:
    """Holds the writer in a transaction, so that what is asked for meanwhile becomes one group."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._free = threading.Event()
        self.at_the_end: Callable[[Session], object] | None = None

    async def __aenter__(self) -> None:
        self._done = self._store._write(self._wait)

    async def __aexit__(self, *_: object) -> None:
        self._free.set()
        with suppress(Unavailable):
            await self._done

    def _wait(self, session: Session) -> None:
        assert self._free.wait(30)
        if self.at_the_end:
            self.at_the_end(session)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tide.db"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(path: Path, clock: FakeClock) -> AsyncIterator[SqliteStore]:
    store = await open_store(path, clock)
    yield store
    await store.close()
