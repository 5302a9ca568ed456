"""A reader that takes its time stops nobody, and the log is cut off once it has gone."""

from pathlib import Path

import apsw
import pytest

from tests.builders import some_jobs
from tidewheel.store.sqlite import open_store, writer
from tidewheel.store.sqlite.connection import Busy
from tidewheel.testing import FakeClock


async def test_no_writer_waits_for_a_long_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "CHECKPOINT_PAGES", 20)
    monkeypatch.setattr(writer, "TRUNCATE_PAGES", 40)
    waits: list[int] = []
    path = tmp_path / "jobs.db"
    store = await open_store(path, FakeClock())
    reader = apsw.Connection(str(path))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM job").fetchall()
    monkeypatch.setattr(Busy, "__call__", lambda _, turn: waits.append(turn))
    for _ in range(50):
        await store.submit(some_jobs(50))
    assert waits == []
    held = path.with_name("jobs.db-wal").stat().st_size
    reader.close()
    for _ in range(10):
        await store.submit(some_jobs(50))
    assert path.with_name("jobs.db-wal").stat().st_size < held / 2
    await store.close()
