"""The databases that the contract suite runs on, each with a clock that is told the time and with levers for faults."""

import abc
import asyncio
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol
from uuid import UUID

import apsw
import asyncpg

from tests.builders import some_jobs
from tests.postgres import SharedPostgres
from tidewheel.store.base import Store
from tidewheel.store.sealing import KEY_BYTES, Keyring
from tidewheel.testing import FakeClock

START: Final = datetime(2030, 1, 1, 12, tzinfo=UTC)
CHUNK: Final = 5_000
FIRST_KEY: Final = b"1" * KEY_BYTES
_HOLD: Final = 4711
_EDGES: Final = "SELECT parent, child FROM tidewheel.dependency WHERE child > '00000001-0000-0000-0000-000000000000'"
"""Without the keel of the table."""


class StoreClock(Protocol):
    """The time by which a store decides; it moves only when a test says so."""

    def now(self) -> datetime: ...

    async def advance(self, by: timedelta) -> None: ...


class Held(abc.ABC):
    """Something that a test holds, so that others must wait for it."""

    @abc.abstractmethod
    async def waited_for(self, sessions: int, unless: "asyncio.Task[Any] | None" = None) -> None:
        """Return when so many sessions wait for a lock, or when a task has ended without having to wait."""

    @abc.abstractmethod
    async def release(self) -> None: ...


class Backend(abc.ABC):
    """One fresh database. Stores opened on it are like several processes that share it."""

    name: ClassVar[str]
    clock: StoreClock

    def __init__(self) -> None:
        self._opened: list[Store] = []
        self.keyring = Keyring([FIRST_KEY])
        """What stored secrets are encrypted by."""

    async def open(self) -> Store:
        """Open one more store on the same database."""
        self._opened.append(store := await self._open())
        return store

    def use_keys(self, *keys: bytes) -> None:
        """Let stored secrets be encrypted by the first of these from now on, and be opened by all of them."""
        self.keyring = Keyring(keys)
        for store in self._opened:
            vars(getattr(store, "_own", store))["keyring"] = self.keyring

    async def close(self) -> None:
        """Close all stores; the database stays until `destroy`."""
        while self._opened:
            await self._opened.pop().close()

    def destroy(self) -> None:  # noqa: B027 - files go with their folder
        """Take the database away. Not from inside a running loop."""

    async def fill(self, count: int, **fields: Any) -> list[UUID]:
        """Submit many equal jobs in chunks."""
        store = self._opened[0] if self._opened else await self.open()
        ids: list[UUID] = []
        for first in range(0, count, CHUNK):
            answers = await store.submit(some_jobs(min(CHUNK, count - first), **fields))
            ids += [answer.job_id for answer in answers]
        return ids

    @property
    @abc.abstractmethod
    def place(self) -> str:
        """What another process opens the same database by."""

    @abc.abstractmethod
    async def _open(self) -> Store: ...

    @abc.abstractmethod
    async def fill_raw(self, count: int, like: UUID) -> None:
        """Copy a queued job many times, as quickly as the database can."""

    @abc.abstractmethod
    async def refuse_history_of(self, job_id: UUID) -> None:
        """Let the database refuse to store that this job succeeded."""

    @abc.abstractmethod
    async def refuse_jobs_with_label(self, label: str) -> None:
        """Let the database refuse to store jobs whose labels contain this text, as a full disk would in mid-batch."""

    @abc.abstractmethod
    async def fail_late(self) -> None:
        """Let transactions that end jobs fail from now on, when all of it is written."""

    @abc.abstractmethod
    async def backdate(self, job_id: UUID, run_at: datetime) -> None:
        """Give a waiting job an earlier time, as if its submit had begun then and committed just now."""

    @abc.abstractmethod
    async def spoil_limit(self, key: str, running: int) -> None:
        """Let the counter of a limit say something wrong."""

    @abc.abstractmethod
    async def set_clock_back(self, by: timedelta) -> None:
        """Let the store's clock say an earlier time."""

    @abc.abstractmethod
    async def let_time_run(self, by: timedelta) -> None:
        """Let each look at the store's clock find it so much later."""

    @abc.abstractmethod
    async def forget_looks(self) -> None:
        """Let all limits forget that someone waits for their tokens."""

    @abc.abstractmethod
    async def spoil_waits(self, job_id: UUID, waits: int) -> None:
        """Let a blocked job believe that it waits for another number of parents."""

    @abc.abstractmethod
    async def forget_children(self, job_id: UUID) -> None:
        """Let a job forget that others wait for it."""

    @abc.abstractmethod
    async def write_as_newer(self, schedule: str) -> None:
        """Let the definition of a schedule have a field that only a newer version of the program knows."""

    @abc.abstractmethod
    async def subscribe_as_newer(self, change: str) -> None:
        """Let all subscriptions be such as only a newer version of the program makes: `change` is put into each."""

    @abc.abstractmethod
    async def happen_as_newer(self) -> None:
        """Let all that was noted and not told yet be an event that only a newer version of the program knows."""

    @abc.abstractmethod
    async def edges(self) -> list[tuple[UUID, UUID]]:
        """Return all parents with their children that are stored."""

    @abc.abstractmethod
    async def written(self, kind: str) -> object:
        """Return something that differs once a waiting job of a kind was written to."""

    @abc.abstractmethod
    async def count(self, table: str) -> int:
        """Return how many rows a table has."""

    @abc.abstractmethod
    async def everything(self) -> bytes:
        """Return all that is stored, after the stores were closed."""

    # Levers that only some databases have.

    async def cut(self) -> bool:
        """Cut all connections of the stores, if there are such."""
        return False

    async def hold_claims(self) -> Held | None:
        """Stop claims in the middle, after they looked at their worker and before they commit."""
        return None

    async def hold_jobs(self, job_ids: Sequence[UUID]) -> Held | None:  # noqa: ARG002
        """Lock the rows of jobs, as a session does that was left open and forgotten."""
        return None


class SqliteBackend(Backend):
    """A file; the stores and the test are told the time by one clock."""

    name = "sqlite"
    clock: FakeClock

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._path = folder / f"{secrets.token_hex(4)}.db"
        self.clock = FakeClock(START)

    @property
    def place(self) -> str:
        return f"sqlite:///{self._path}"

    async def _open(self) -> Store:
        from tidewheel.store.sqlite import open_store  # noqa: PLC0415 - a store that is not installed fails its own tests

        return await open_store(self._path, self.clock, keyring=self.keyring)

    async def fill_raw(self, count: int, like: UUID) -> None:
        with self._connection() as connection:
            columns = [row[1] for row in connection.execute("PRAGMA table_info(job)")]
            counted = "unhex(substr(hex(id), 1, 20) || printf('%012x', i))"  # rising ids are quicker than random ones
            values = [counted if column == "id" else column for column in columns]
            connection.execute(
                f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) "
                f"INSERT INTO job ({', '.join(columns)}) SELECT {', '.join(values)} FROM n, job WHERE id = ?",
                (like.bytes,),
            )

    async def refuse_history_of(self, job_id: UUID) -> None:
        self._execute(
            "CREATE TRIGGER refuse_history BEFORE INSERT ON job_history "
            f"WHEN NEW.id = x'{job_id.hex}' AND NEW.state = 'succeeded' "
            "BEGIN SELECT RAISE(ABORT, 'refused by the test'); END"
        )

    async def refuse_jobs_with_label(self, label: str) -> None:
        self._execute(
            f"CREATE TRIGGER refuse_job BEFORE INSERT ON job WHEN NEW.labels LIKE '%{label}%' "
            "BEGIN SELECT RAISE(ABORT, 'refused by the test'); END"
        )

    async def fail_late(self) -> None:
        self._execute(
            "CREATE TRIGGER fail_late AFTER DELETE ON job BEGIN SELECT RAISE(ABORT, 'refused by the test'); END"
        )

    async def backdate(self, job_id: UUID, run_at: datetime) -> None:
        micros = (run_at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        self._execute("UPDATE job SET run_at = ? WHERE id = ?", (micros, job_id.bytes))

    async def spoil_limit(self, key: str, running: int) -> None:
        self._execute("UPDATE limit_key SET running = ? WHERE key = ?", (running, key))

    async def set_clock_back(self, by: timedelta) -> None:
        self.clock.step(-by)

    async def let_time_run(self, by: timedelta) -> None:
        clock, stopped = self.clock, self.clock.now

        def later() -> datetime:
            clock.step(by)
            return stopped()

        clock.now = later  # type: ignore[method-assign]

    async def forget_looks(self) -> None:
        self._execute("UPDATE limit_key SET look_at = NULL")

    async def spoil_waits(self, job_id: UUID, waits: int) -> None:
        self._execute("UPDATE job SET waits = ? WHERE id = ?", (waits, job_id.bytes))

    async def forget_children(self, job_id: UUID) -> None:
        self._execute("UPDATE job SET awaited = 0 WHERE id = ?", (job_id.bytes,))

    async def write_as_newer(self, schedule: str) -> None:
        self._execute("UPDATE schedule SET definition = json_set(definition, '$.newer', 1) WHERE name = ?", (schedule,))

    async def subscribe_as_newer(self, change: str) -> None:
        self._execute("UPDATE subscription SET definition = json_patch(definition, ?)", (change,))

    async def happen_as_newer(self) -> None:
        self._execute("UPDATE outbox SET event = 'newer'")

    async def edges(self) -> list[tuple[UUID, UUID]]:
        with self._connection() as connection:
            found: list[Any] = connection.execute("SELECT parent, child FROM dependency").fetchall()
        return [(UUID(bytes=parent), UUID(bytes=child)) for parent, child in found]

    async def written(self, kind: str) -> object:
        statement = (
            "SELECT count(*), max(updated_at), max(job.rowid) FROM job JOIN lane ON lane.id = lane WHERE kind = ?"
        )
        with self._connection() as connection:
            found: object = connection.execute(statement, (kind,)).fetchall()
        return found

    async def count(self, table: str) -> int:
        with self._connection() as connection:
            number: int = connection.execute(f"SELECT count(*) FROM {table}").get
        return number

    async def everything(self) -> bytes:
        await self.close()
        return b"".join(file.read_bytes() for file in self._path.parent.glob(f"{self._path.name}*"))

    def _connection(self) -> apsw.Connection:
        connection = apsw.Connection(str(self._path))
        connection.set_busy_timeout(10_000)
        return connection

    def _execute(self, statement: str, values: Sequence[Any] = ()) -> None:
        connection = self._connection()
        try:
            connection.execute(statement, values)
        finally:
            connection.close()


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
