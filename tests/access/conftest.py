"""A store on a file whose time, like that of all parts, moves only when a test says so."""

import secrets
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tidewheel.model.access import Actor, Role
from tidewheel.model.api_key import ENTROPY, ApiKey, KeySpec, Known, make_key
from tidewheel.store.sqlite import SqliteStore, open_store
from tidewheel.testing import FakeClock

ROOT = Actor(role=Role.ADMIN, name="root")
SECOND = timedelta(seconds=1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(tmp_path: Path, clock: FakeClock) -> AsyncIterator[SqliteStore]:
    opened = await open_store(tmp_path / "jobs.db", clock)
    yield opened
    await opened.close()


async def give_out(store: SqliteStore, role: Role = Role.VIEWER, **fields: Any) -> tuple[str, ApiKey]:
    """Make a key; return its text and what everyone may see of it."""
    made = make_key(secrets.token_bytes(ENTROPY))
    key = await store.create_key(KeySpec(name="k", role=role, **fields), made.proof, by=ROOT)
    return made.text, key


class Watched:
    """A store of keys that counts how often it is asked, and by which prefixes."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.asked: list[str] = []
        self.noted = 0

    async def find_key(self, prefix: str) -> Known | None:
        self.asked.append(prefix)
        return await self._store.find_key(prefix)

    async def note_key_use(self, key_id: Any) -> None:
        self.noted += 1
        await self._store.note_key_use(key_id)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)
