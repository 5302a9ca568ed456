"""PostgreSQL as ground: a server of our own with durable settings, or one that the environment names."""

import os
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

import asyncpg
import psutil

from bench.grounds import postgres_rows as rows
from bench.grounds.files import file_system
from bench.grounds.ground import WORKER, Span
from bench.jobs import ONE_LANE, PRIORITIES, RESULT, LaneName, specs
from bench.measure import Drained, Stopwatch
from harness.postgres import DURABLE, PostgresServer
from tidewheel.store.postgres import PostgresStore, migrate, open_store
from tidewheel.store.postgres.connection import SQL
from tidewheel.store.postgres.memory import BEGINNING

SETTINGS: Final = {**DURABLE, "shared_buffers": "512MB"}
REPORTED: Final = ("fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size")
CLIENTS: Final = 32


class PostgresPlace:
    """One database."""

    def __init__(self, store: PostgresStore, worker_id: UUID, raw: Any, ground: "PostgresGround", url: str) -> None:
        self.store = store
        self.worker_id = worker_id
        self._raw = raw
        self._server_cpu = ground.server_cpu
        self._watch = ground.watch
        self.url = url

    def server_cpu(self) -> float:
        return self._server_cpu()

    async def bare_drain(self, jobs: int, batch: int) -> Drained:
        """Run `take` and `finish_returned` of one lane, priority by priority, and nothing else."""
        lane = await self._lane(ONE_LANE[0])
        watch, done = Stopwatch(self._server_cpu), 0
        for priority in sorted(set(PRIORITIES)):
            run_at, job_id = BEGINNING
            while True:
                taken = await self._raw.fetch(
                    SQL["take"], self.worker_id, [lane], [priority], [run_at], [job_id], [batch], "open"
                )
                watch.claimed()
                if taken:
                    run_at, job_id = max((row["run_at"], row["id"]) for row in taken)
                    done += await self._finish(taken)
                    watch.settled()
                if len(taken) < batch:
                    break
        if done != jobs:
            raise RuntimeError(f"the bare loop finished {done} of {jobs} jobs")
        return watch.stop(done)

    async def _finish(self, taken: Sequence[Any]) -> int:
        ids, tokens = [row["id"] for row in taken], [row["token"] for row in taken]
        results = [RESULT] * len(ids)
        ends = (self.worker_id, ids, tokens, results, None, None, None)
        finished, _ = await self._raw.fetchrow(SQL["finish_returned"], *ends)
        return len(finished)

    async def _lane(self, lane: LaneName) -> int:
        found: int = await self._raw.fetchval(
            "SELECT lane.id FROM tidewheel.lane JOIN tidewheel.tenant ON tenant.id = lane.tenant "
            "WHERE lane.kind = $1 AND tenant.name = $2",
            *lane,
        )
        return found

    async def any_active(self, tenant: str) -> bool:
        owner = "SELECT id FROM tidewheel.tenant WHERE name = $1"
        found: bool = await self._raw.fetchval(
            f"SELECT EXISTS (SELECT FROM tidewheel.job WHERE tenant = ({owner}))", tenant
        )
        return found

    async def span(self, lane: LaneName, since: datetime) -> Span:
        row = await self._raw.fetchrow(
            "SELECT count(*), extract(epoch FROM max(finished_at) - min(started_at))::float8 "
            "FROM tidewheel.job_history WHERE state = 'succeeded' AND lane = $1 AND created_at >= $2",
            await self._lane(lane),
            since,
        )
        return Span(*row)

    async def transactions(self) -> int:
        return await self._watch(urlsplit(self.url).path.removeprefix("/"))

    async def load_due(self, count: int, lanes: Sequence[LaneName]) -> None:
        await self.store.submit(specs(len(lanes) * len(PRIORITIES), lanes=lanes))
        await rows.copy_due(self._raw, count)
        await rows.settle_down(self._raw, "ANALYZE tidewheel.job")

    async def load_future(self, count: int) -> None:
        await self.store.submit(rows.tomorrow(specs(len(PRIORITIES))))
        await rows.copy_future(self._raw, count)
        await rows.settle_down(self._raw, "ANALYZE tidewheel.job")

    async def load_history(self, count: int) -> None:
        await rows.copy_history(self._raw, count)
        await rows.settle_down(self._raw, "VACUUM (ANALYZE) tidewheel.job_history")

    async def note_phrases(self) -> None:
        await rows.note_phrases(self._raw)
        await rows.settle_down(self._raw, "VACUUM (ANALYZE) tidewheel.phrase, tidewheel.phrase_moment")

    async def tidy(self) -> None:
        await self._raw.execute("VACUUM (ANALYZE) tidewheel.job")

    @asynccontextmanager
    async def hold_snapshot(self) -> AsyncIterator[None]:
        holder = await asyncpg.connect(self.url)
        try:
            async with holder.transaction(isolation="repeatable_read", readonly=True):
                await holder.fetch("SELECT id FROM tidewheel.job LIMIT 1")
                yield
        finally:
            await holder.close()


class PostgresGround:
    """One server."""

    def __init__(self, url: str, facts: Mapping[str, str], pid: int | None = None) -> None:
        self._url = url
        self._pid = pid
        self.facts = facts

    def server_cpu(self) -> float:
        """Add up the CPU time of the server's processes, if it is ours."""
        if self._pid is None:
            return 0.0
        total = 0.0
        for process in psutil.Process(self._pid).children():
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                total += times.user + times.system
        return total

    async def watch(self, database: str) -> int:
        """Return how many transactions a database has seen. This one is counted elsewhere."""
        connection = await asyncpg.connect(self._url)
        try:
            seen: int = await connection.fetchval(
                "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = $1", database
            )
        finally:
            await connection.close()
        return seen

    def place(self) -> AbstractAsyncContextManager[PostgresPlace]:
        return self._place()

    @asynccontextmanager
    async def database(self) -> AsyncIterator[str]:
        """Give the URL of a fresh database that is empty."""
        name = f"tide_bench_{secrets.token_hex(4)}"
        await _execute(self._url, f"CREATE DATABASE {name}")
        try:
            yield urlunsplit(urlsplit(self._url)._replace(path=f"/{name}"))
        finally:
            await _execute(self._url, f"DROP DATABASE {name} WITH (FORCE)")

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[PostgresPlace]:
        async with self.database() as url:
            await migrate(url)
            store = await open_store(url, pool_size=CLIENTS)
            raw = await asyncpg.connect(url)
            try:
                yield PostgresPlace(store, (await store.register(WORKER)).id, raw, self, url)
            finally:
                await raw.close()
                await store.close()


@asynccontextmanager
async def postgres_ground() -> AsyncIterator[PostgresGround]:
    if url := os.environ.get("TIDE_TEST_POSTGRES_URL"):
        yield PostgresGround(url, {**await _facts(url), "data_on": "a server of the environment"})
        return
    with PostgresServer(SETTINGS) as server:
        data_on = file_system(Path(server.folder))
        yield PostgresGround(server.url(), {**await _facts(server.url()), "data_on": data_on}, server.pid)


async def _facts(url: str) -> dict[str, str]:
    connection = await asyncpg.connect(url)
    try:
        named = {name: await connection.fetchval(f"SHOW {name}") for name in ("server_version", *REPORTED)}
    finally:
        await connection.close()
    return {f"postgres_{name}": value for name, value in named.items()}


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        with suppress(asyncpg.InvalidCatalogNameError):
            await connection.execute(statement)
    finally:
        await connection.close()
