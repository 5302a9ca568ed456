"""A database of the shared PostgreSQL server for the contract suite, whose time stands still until a test moves it.

A plugin, for several suites take `postgres_template`.
"""

import asyncio
import secrets
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final
from uuid import UUID

import asyncpg
import pytest

from tests.contract.backends import START, Backend, Held
from tests.database_pool import prepare_restoring
from tests.postgres import SharedPostgres
from tidewheel.model.states import FINAL
from tidewheel.store.base import Store

_HOLD: Final = 4711
_EDGES: Final = "SELECT parent, child FROM tidewheel.dependency WHERE child > '00000001-0000-0000-0000-000000000000'"
"""Without the keel of the table."""


class PostgresClock:
    """Lives in a one-row table, so that all connections of all stores see the same time."""

    def __init__(self, backend: "PostgresBackend") -> None:
        self._backend = backend
        self._now = START

    def now(self) -> datetime:
        return self._now

    async def advance(self, by: timedelta) -> None:
        self._now += by
        await self._backend.execute("UPDATE tidewheel.test_clock SET at = $1", self._now)


class PostgresHeld(Held):
    """A transaction that was left open."""

    def __init__(self, backend: "PostgresBackend", connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        self._backend = backend
        self._connection = connection

    async def waited_for(self, sessions: int, unless: "asyncio.Task[Any] | None" = None) -> None:
        waiting = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        while len(await self._backend.execute(waiting)) < sessions:
            if unless is not None and unless.done():
                return

    async def release(self) -> None:
        await self._connection.execute("ROLLBACK")
        await self._connection.close()


class PostgresBackend(Backend):
    """A database of the shared server, copied from a template whose time stands still at `START`."""

    name = "postgres"

    INSTALL_CLOCK: ClassVar = f"""
        CREATE TABLE tidewheel.test_clock (at timestamptz NOT NULL);
        INSERT INTO tidewheel.test_clock VALUES ('{START.isoformat()}');
        CREATE OR REPLACE FUNCTION tidewheel.now() RETURNS timestamptz LANGUAGE sql STABLE
            AS 'SELECT at FROM tidewheel.test_clock';
    """

    def __init__(self, server: SharedPostgres, template: str) -> None:
        super().__init__()
        self._pool = server.pool(template)
        self._database = self._pool.take()
        self.url = server.database_url(self._database)
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None
        self.clock = PostgresClock(self)

    @property
    def place(self) -> str:
        return self.url

    async def _open(self) -> Store:
        from tidewheel.store.postgres import open_store  # noqa: PLC0415 - as above

        return await open_store(self.url, keyring=self.keyring)

    async def close(self) -> None:
        await super().close()
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    def destroy(self) -> None:
        self._pool.give_back(self._database)

    async def execute(self, statement: str, *values: Any) -> Any:
        """Run a statement beside the stores."""
        if self._connection is None:
            self._connection = await asyncpg.connect(self.url)
        return await self._connection.fetch(statement, *values)

    async def fill_raw(self, count: int, like: UUID) -> None:
        rows = await self.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'tidewheel' AND table_name = 'job'"
        )
        columns = [row[0] for row in rows]
        values = ["uuidv7()" if column == "id" else column for column in columns]
        await self.execute(
            f"INSERT INTO tidewheel.job ({', '.join(columns)}) SELECT {', '.join(values)} "
            f"FROM tidewheel.job, generate_series(1, {count}) WHERE id = $1",
            like,
        )

    async def refuse_history_of(self, job_id: UUID) -> None:
        await self._refuse("job_history", f"NEW.id = '{job_id}' AND NEW.state = 'succeeded'", "data_exception")

    async def refuse_jobs_with_label(self, label: str) -> None:
        await self._refuse("job", f"NEW.labels::text LIKE '%{label}%'", "disk_full")

    async def _refuse(self, table: str, condition: str, code: str) -> None:
        await self.execute(
            f"CREATE FUNCTION tidewheel.refuse_{table}() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN IF {condition} THEN RAISE 'refused by the test' USING ERRCODE = '{code}'; END IF; "
            "RETURN NEW; END $$"
        )
        await self.execute(
            f"CREATE TRIGGER refuse BEFORE INSERT ON tidewheel.{table} "
            f"FOR EACH ROW EXECUTE FUNCTION tidewheel.refuse_{table}()"
        )

    async def fail_late(self) -> None:
        await self.execute(
            "CREATE FUNCTION tidewheel.fail_late() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE 'refused by the test' USING ERRCODE = 'disk_full'; END $$"
        )
        await self.execute(
            "CREATE CONSTRAINT TRIGGER fail_late AFTER DELETE ON tidewheel.job DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION tidewheel.fail_late()"
        )

    async def backdate(self, job_id: UUID, run_at: datetime) -> None:
        await self.execute("UPDATE tidewheel.job SET run_at = $2 WHERE id = $1", job_id, run_at)

    async def spoil_limit(self, key: str, running: int) -> None:
        await self.execute("UPDATE tidewheel.limit_key SET running = $2 WHERE key = $1", key, running)

    async def set_clock_back(self, by: timedelta) -> None:
        await self.clock.advance(-by)

    async def let_time_run(self, by: timedelta) -> None:
        await self.execute("CREATE SEQUENCE tidewheel.looks")
        later = f"at + nextval('tidewheel.looks') * interval '{by.total_seconds()} s'"
        await self.execute(
            "CREATE OR REPLACE FUNCTION tidewheel.now() RETURNS timestamptz LANGUAGE sql VOLATILE "
            f"AS $$ SELECT {later} FROM tidewheel.test_clock $$"
        )

    async def forget_looks(self) -> None:
        await self.execute("UPDATE tidewheel.limit_key SET look_at = NULL")

    async def spoil_waits(self, job_id: UUID, waits: int) -> None:
        await self.execute("UPDATE tidewheel.job SET waits = $2 WHERE id = $1", job_id, waits)

    async def forget_children(self, job_id: UUID) -> None:
        await self.execute("UPDATE tidewheel.job SET awaited = false WHERE id = $1", job_id)

    async def write_as_newer(self, schedule: str) -> None:
        newer = """UPDATE tidewheel.schedule SET definition = (definition::jsonb || '{"newer": 1}')::json"""
        await self.execute(f"{newer} WHERE name = $1", schedule)

    async def subscribe_as_newer(self, change: str) -> None:
        await self.execute("UPDATE tidewheel.subscription SET definition = definition::jsonb || $1::jsonb", change)

    async def happen_as_newer(self) -> None:
        await self.execute("UPDATE tidewheel.outbox SET event = 'newer'")

    async def deliver_as_newer(self, delivery_id: UUID) -> None:
        await self.execute("UPDATE tidewheel.delivery SET event = 'newer' WHERE id = $1", delivery_id)

    async def edges(self) -> list[tuple[UUID, UUID]]:
        return [(row[0], row[1]) for row in await self.execute(_EDGES)]

    async def written(self, kind: str) -> object:
        """The transactions that wrote the rows, and where these are."""
        return await self.execute(
            "SELECT count(*), sum(job.xmin::text::bigint), max(job.ctid) "
            "FROM tidewheel.job JOIN tidewheel.lane ON lane.id = lane WHERE kind = $1",
            kind,
        )

    async def everything(self) -> bytes:
        tables = await self.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'tidewheel'")
        rows = [row for table in tables for row in await self.execute(f"SELECT t::text FROM tidewheel.{table[0]} t")]
        raw = [row["sealed"] for row in await self.execute("SELECT sealed FROM tidewheel.secret")]  # above it is in hex
        return b"".join([*(row[0].encode() for row in rows), *raw])

    async def count(self, table: str) -> int:
        rows = await self.execute(f"SELECT count(*) FROM tidewheel.{table}")
        number: int = rows[0][0]
        return number

    async def hold_claims(self) -> Held:
        await self.execute(
            "CREATE FUNCTION tidewheel.hold_claim() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN PERFORM pg_advisory_xact_lock({_HOLD}); RETURN NEW; END $$"
        )
        await self.execute(
            "CREATE TRIGGER hold BEFORE UPDATE ON tidewheel.job FOR EACH ROW "
            "WHEN (NEW.state = 'running') EXECUTE FUNCTION tidewheel.hold_claim()"
        )
        return await self._hold("SELECT pg_advisory_xact_lock($1)", _HOLD)

    async def hold_jobs(self, job_ids: Sequence[UUID]) -> Held:
        return await self._hold("SELECT FROM tidewheel.job WHERE id = ANY ($1) FOR UPDATE", list(job_ids))

    async def _hold(self, statement: str, value: object) -> Held:
        connection = await asyncpg.connect(self.url)
        await connection.execute("BEGIN")
        await connection.fetch(statement, value)
        return PostgresHeld(self, connection)

    async def cut(self) -> bool:
        await self.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return True


@pytest.fixture(scope="session")
def postgres_template(postgres_server: SharedPostgres) -> Iterator[str]:
    """A migrated database in which time stands still; copying it is quicker than preparing each anew."""
    name = f"tide_contract_template_{secrets.token_hex(4)}"
    postgres_server.execute(f"CREATE DATABASE {name} TEMPLATE {postgres_server.template}")
    with asyncio.Runner() as runner:
        runner.run(_stop_time(postgres_server.database_url(name)))
    prepare_restoring(postgres_server.database_url(name))
    yield name
    postgres_server.pool(name).close()
    postgres_server.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def _stop_time(url: str) -> None:
    from tidewheel.store.postgres import open_store  # noqa: PLC0415 - the other stores' tests do without it

    connection = await asyncpg.connect(url)
    await connection.execute(PostgresBackend.INSTALL_CLOCK)
    await connection.close()
    store = await open_store(url)
    await store.retire(dict.fromkeys(FINAL, timedelta(0)))  # the days that were made before time stood still
    await store.prepare_days()
    await store.close()
