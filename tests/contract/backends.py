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

from tests.builders import some_jobs
from tidewheel.store.base import Store
from tidewheel.store.sealing import KEY_BYTES, Keyring
from tidewheel.testing import FakeClock

START: Final = datetime(2030, 1, 1, 12, tzinfo=UTC)
CHUNK: Final = 5_000
FIRST_KEY: Final = b"1" * KEY_BYTES


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
    async def deliver_as_newer(self, delivery_id: UUID) -> None:
        """Let a delivery be of such an event."""

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

    async def deliver_as_newer(self, delivery_id: UUID) -> None:
        self._execute("UPDATE delivery SET event = 'newer' WHERE id = ?", (delivery_id.bytes,))

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
