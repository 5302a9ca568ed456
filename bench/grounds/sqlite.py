"""SQLite as ground: a folder on a disk, and one file in it for each place."""

import asyncio
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from itertools import count as numbers
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import apsw
import msgspec

from bench.grounds import sqlite_rows as rows
from bench.grounds.files import file_system
from bench.grounds.ground import WORKER, Span
from bench.jobs import ONE_LANE, PRIORITIES, RESULT, LaneName, specs
from bench.measure import Drained, Stopwatch
from tidewheel.clock import SystemClock
from tidewheel.store.base import Store
from tidewheel.store.sqlite import open_store
from tidewheel.store.sqlite.connection import SQL, connect
from tidewheel.store.sqlite.values import json_text, micros
from tidewheel.store.sqlite.writer import CHECKPOINT_PAGES

_COMMITS: Final = (8, 4)
"""Where the number of commits stands in the index of the log, and how many bytes it takes."""
_decode: Final = msgspec.json.Decoder().decode


class SqlitePlace:
    """One file."""

    def __init__(self, store: Store, worker_id: UUID, path: Path) -> None:
        self.store = store
        self.worker_id = worker_id
        self._path = path
        self.url = f"sqlite:///{path}"

    def server_cpu(self) -> float:
        return 0.0

    async def bare_drain(self, jobs: int, batch: int) -> Drained:
        """Run the statements of a claim and of a settle, priority by priority, in the thread that asks."""
        connection = connect(self._path)
        connection.wal_autocheckpoint(CHECKPOINT_PAGES)  # as often as the store does it
        try:
            return _BareLoop(connection, self.worker_id.bytes, batch).drain(jobs)
        finally:
            connection.close()

    async def any_active(self, tenant: str) -> bool:
        owner = "SELECT id FROM tenant WHERE name = ?"
        return bool(self._look(f"SELECT EXISTS (SELECT 1 FROM job WHERE tenant = ({owner}))", (tenant,))[0])

    async def span(self, lane: LaneName, since: datetime) -> Span:
        jobs, took = self._look(
            "SELECT count(*), max(finished_at) - min(started_at) FROM job_history WHERE state = 'succeeded' "
            "AND lane = (SELECT lane.id FROM lane JOIN tenant ON tenant.id = lane.tenant WHERE kind = ? AND name = ?) "
            "AND created_at >= ?",
            (*lane, micros(since)),
        )
        return Span(jobs, (took or 0) / 1e6)

    async def transactions(self) -> int:
        return await asyncio.to_thread(self._commits)

    def _commits(self) -> int:
        """Read the counter of commits in the index of the log (`iChange`).

        By another process: closing a file of the database would drop the locks that this one holds.
        """
        words = ["head", "-c", str(sum(_COMMITS)), f"{self._path}-shm"]
        header = subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout
        return int.from_bytes(header[_COMMITS[0] :], sys.byteorder)

    def _look(self, statement: str, values: tuple[Any, ...]) -> Any:
        connection = connect(self._path)
        try:
            return connection.execute(statement, values).fetchone()
        finally:
            connection.close()

    async def load_due(self, count: int, lanes: Sequence[LaneName]) -> None:
        await self.store.submit(specs(len(lanes) * len(PRIORITIES), lanes=lanes))
        rows.copy_due(self._path, count)

    async def load_future(self, count: int) -> None:
        await self.store.submit(rows.tomorrow(specs(len(PRIORITIES))))
        rows.copy_future(self._path, count)

    async def load_history(self, count: int) -> None:
        rows.copy_history(self._path, count)

    async def note_phrases(self) -> None:
        rows.note_phrases(self._path)

    async def tidy(self) -> None:
        connection = connect(self._path)
        try:
            connection.execute("ANALYZE")
        finally:
            connection.close()

    @asynccontextmanager
    async def hold_snapshot(self) -> AsyncIterator[None]:
        holder = connect(self._path)
        try:
            holder.execute("BEGIN; SELECT count(*) FROM job")
            yield
        finally:
            holder.close()


class _BareLoop:
    """The least that must happen: find places, take them, read them; copy to history, remove, count."""

    def __init__(self, connection: apsw.Connection, worker: bytes, batch: int) -> None:
        self._connection = connection
        self._worker = worker
        self._batch = batch
        self._clock = SystemClock()
        kind, tenant = ONE_LANE[0]
        self._lane = connection.execute(
            "SELECT lane.id FROM lane JOIN tenant ON tenant.id = lane.tenant WHERE kind = ? AND name = ?",
            (kind, tenant),
        ).get

    def drain(self, jobs: int) -> Drained:
        watch, done = Stopwatch(lambda: 0.0), 0
        for priority in sorted(set(PRIORITIES)):
            while True:
                places, taken = self._take(priority)
                watch.claimed()
                if taken:
                    self._finish(places, taken)
                    watch.settled()
                done += len(taken)
                if len(taken) < self._batch:
                    break
        if done != jobs:
            raise RuntimeError(f"the bare loop finished {done} of {jobs} jobs")
        return watch.stop(done)

    def _take(self, priority: int) -> tuple[list[int], list[Any]]:
        with _Transaction(self._connection):
            [[_, seen]] = _decode(self._value("peek", pairs=json_text([self._lane << 2 | priority]), depth=self._batch))
            if not seen:
                return [], []
            places = [place for _, place in seen]
            named = json_text(places)
            self._run("take", worker=self._worker, now=self._now(), places=named)
            # They come back in the order of run_at and id, as the peek saw them.
            return places, _decode(self._value("taken", places=named))

    def _finish(self, places: list[int], taken: list[Any]) -> None:
        ends = json_text([(place, row[1], RESULT, None, None, None) for place, row in zip(places, taken, strict=True)])
        counts = Counter((row[2], "succeeded") for row in taken)
        with _Transaction(self._connection):
            self._run("finish_returned", ends=ends, now=self._now())
            self._run("remove", ends=ends)
            self._run("count_finished", counts=json_text([(*key, n) for key, n in counts.items()]))

    def _now(self) -> int:
        return micros(self._clock.now())

    def _run(self, name: str, **values: Any) -> None:
        self._connection.execute(SQL[name], values)

    def _value(self, name: str, **values: Any) -> Any:
        return self._connection.execute(SQL[name], values).get


class _Transaction:
    """One that writes; the connection's own would be a savepoint."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, failed: object, *_: object) -> None:
        self._connection.execute("ROLLBACK" if failed else "COMMIT")


class SqliteGround:
    """One folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = numbers(1)
        self.facts: Mapping[str, str] = {
            "sqlite": apsw.sqlite_lib_version(),
            "apsw": apsw.apsw_version(),
            "sqlite_synchronous": "FULL",
            "data_on": file_system(folder),
        }

    def place(self) -> AbstractAsyncContextManager[SqlitePlace]:
        return self._place()

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[SqlitePlace]:
        with tempfile.TemporaryDirectory(prefix=f"place-{next(self._numbers)}-", dir=self._folder) as folder:
            path = Path(folder) / "tide.db"
            store = await open_store(path, SystemClock())
            try:
                yield SqlitePlace(store, (await store.register(WORKER)).id, path)
            finally:
                await store.close()


@asynccontextmanager
async def sqlite_ground() -> AsyncIterator[SqliteGround]:
    with tempfile.TemporaryDirectory(prefix="tide-bench-", ignore_cleanup_errors=True) as folder:
        yield SqliteGround(Path(folder))
