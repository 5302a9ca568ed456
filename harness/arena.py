"""Where faults are tried: a database, workers on it, a client, and everything that they leave behind, in one folder."""

import asyncio
import secrets
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Literal, Self
from uuid import UUID

from harness.checker import History, Violation, check
from harness.checker.records import Witness
from harness.client import Client
from harness.cluster import GRACE, LEASE, Cluster, WorkerProcess, worker_command
from harness.http_client import HttpClient
from harness.journal import Journal, recorded
from harness.kinds import spec_of
from harness.postgres import DURABLE, PostgresServer
from harness.processes import Process, Role, numbered
from harness.reading import Offset, active, read_all
from harness.servers import Servers
from harness.witness import EVENTS, boottime
from tidewheel.errors import Unavailable
from tidewheel.model.job import Job
from tidewheel.store.base import Store
from tidewheel.wiring import database_of

StoreName = Literal["sqlite", "postgres"]
Commander = Callable[[str], list[str]]
"""Gives the words that start a worker on a database."""

PATIENCE: Final = 45.0
"""Seconds that anything may take on a slow machine before it counts as not happening."""
SILENCE: Final = GRACE + 1.0
"""Seconds from the answer to a cancellation to the last sign of life: the word must reach the worker, and the grace
begins then."""


_MEMORY: Final = Path("/dev/shm")


def tide_worker(database: str) -> list[str]:
    """Return the words that start a real worker, small and with a short lease."""
    return worker_command(database, inline=1, slots=4, lease=LEASE)


class Arena:
    """One run. `async with Arena(...)` opens it; `finish` ends it and returns its history."""

    def __init__(
        self, store: StoreName, *, workers: int = 2, command: Commander = tide_worker, servers: int = 0
    ) -> None:
        self.server = PostgresServer(DURABLE) if store == "postgres" else None
        self.size = workers
        self.folder = Path(tempfile.mkdtemp(prefix="tide-chaos-"))
        """Database, logs and, in the end, all records."""
        self.blobs = self.folder / "blobs"
        self.memory = Path(tempfile.mkdtemp(prefix="tide-chaos-", dir=_MEMORY if _MEMORY.is_dir() else None))
        """Where tasks leave their evidence: the one place outside their own that the walls around them leave open."""
        self._command = command
        self._stack = ExitStack()
        self._began = Offset.now()
        self.journal = Journal(self.folder)
        self.cluster: Cluster
        self.store: Store
        self.client: Client | HttpClient
        """With servers it goes to them, else to the store."""
        self.servers: Servers | None = None
        self._wanted_servers = servers

    async def __aenter__(self) -> Self:
        try:
            await self._open()
        except BaseException as error:
            await self.__aexit__(type(error))
            raise
        return self

    async def __aexit__(self, failure: type[BaseException] | None = None, *_: object) -> None:
        try:
            if failure is not None and hasattr(self, "cluster"):
                print(self.cluster.logs(), f"kept: {self.folder}", sep="\n")
            if hasattr(self, "client") and isinstance(self.client, HttpClient):
                await self.client.close()
            if hasattr(self, "store"):
                await self.store.close()
        finally:
            self._stack.close()
            self.journal.close()
            shutil.rmtree(self.memory, ignore_errors=True)

    async def _open(self) -> None:
        if self.server is not None:
            self._stack.enter_context(self.server)
        url = f"sqlite:///{self.folder}/jobs.db" if self.server is None else self.server.url()
        await database_of(url).migrate()
        self.store = await database_of(url).open()
        self.client = Client(self.store, self.journal)
        self.cluster = self._stack.enter_context(
            Cluster(
                self.folder,
                self.journal,
                self._command(url),
                environment={"CHAOS_DATABASE": url, "TIDE_BLOBS": self.blobs.as_uri()},
                foreign=self._server_pids,
            )
        )
        if self._wanted_servers:
            self.servers = Servers(self.cluster, url, self._wanted_servers)
            self.client = HttpClient(self.servers.urls, self.journal)
        self.restore()

    def _server_pids(self) -> list[int]:
        return [self.server.pid] if self.server is not None and self.server.running else []

    # Load

    async def submit(
        self, kind: str, *, key: str | None = None, wishes: dict[str, Any] | None = None, **args: Any
    ) -> UUID:
        """Submit one job; `wishes` are further fields of its spec."""
        spec = spec_of(kind, self.memory, key or secrets.token_hex(8), args, **(wishes or {}))
        [job_id] = await self.client.submit([spec])
        return job_id

    async def ended(self, *job_ids: UUID) -> list[Job]:
        """Wait until jobs have ended, and return them; as they are if they do not."""
        await self.until(lambda: self._all_finished(job_ids), "the jobs to end")
        return [await self.store.get(job_id) for job_id in job_ids]

    async def _all_finished(self, job_ids: Sequence[UUID]) -> bool:
        return all([(await self.store.get(job_id)).finished_at is not None for job_id in job_ids])

    # What is seen

    def evidence(self, job_id: UUID | None = None) -> list[Witness]:
        """Return what tasks have written so far, of one job or of all."""
        found = [record for record in recorded(self.memory) if isinstance(record, Witness)]
        return [record for record in found if job_id is None or record.job == str(job_id)]

    async def runs(self, job_id: UUID, *, times: int = 1) -> None:
        """Wait until a job was seen to tick in so many executions."""

        async def ticking() -> bool:
            return len({record.run for record in self.evidence(job_id) if record.event == "tick"}) >= times

        await self.until(ticking, f"job {job_id} to run {times} times")

    async def until(self, condition: Callable[[], Any], what: str, patience: float = PATIENCE) -> None:
        """Wait for a condition, told by a coroutine, however long a slow machine may take."""
        deadline = boottime() + patience
        while not await condition():
            if boottime() > deadline:
                raise TimeoutError(f"waited {patience:g} s for {what}\n{self.cluster.logs()}")
            await asyncio.sleep(0.05)

    # Parts

    def restore(self) -> None:
        """Start workers and servers until there are as many as there should be."""
        if self.servers is not None:
            self.servers.restore()
        while len(self.cluster.running) < self.size:
            self.cluster.start()

    async def part(self, role: Role, worker: WorkerProcess | None = None) -> Process:
        """Return a process that plays a part in a worker, as soon as there is one."""
        found: list[Process] = []

        async def there() -> bool:
            found[:] = (worker or self.cluster.running[0]).parts(role)
            return bool(found)

        await self.until(there, f"a {role}")
        return found[0]

    async def owner(self, job_id: UUID) -> tuple[WorkerProcess, Process]:
        """Return the worker that runs a job, and the process in which it does."""
        await self.runs(job_id)
        last = self.evidence(job_id)[-1]
        for worker in self.cluster.running:
            for process in worker.tree():
                if numbered(process.pid) == (last.space, last.pid):
                    return worker, process
        raise LookupError(f"no worker has process {last.pid} of namespace {last.space}")

    # The end

    async def finish(self, *, patience: float = 2 * PATIENCE, deadline: float = 60.0) -> History:
        """Let everything come to rest, stop it, look at what is left, and return the history."""
        self.restore()
        self.journal.healed()
        await self._quiesce(patience)
        self.cluster.stop()
        self.cluster.report_left()
        if (self.memory / EVENTS).exists():
            shutil.copy(self.memory / EVENTS, self.folder)
        offset = self._began.against(Offset.now())
        finals = await read_all(self.store, offset)
        self.journal.add(*finals)
        return History(recorded(self.folder), deadline=deadline, grace=SILENCE, clock_error=offset.error)

    async def _quiesce(self, patience: float) -> None:
        """Wait until all jobs have ended, or until patience does: the checker will then say which are stuck."""
        deadline = boottime() + patience
        while boottime() < deadline:
            try:
                if await active(self.store) == 0:
                    return
            except Unavailable:
                pass  # it may be coming back
            await asyncio.sleep(0.2)

    def judge(self, history: History) -> list[Violation]:
        """Return what was broken; the folder is kept if anything was, and its logs are printed."""
        violations = check(history)
        if violations:
            print(*violations[:50], self.cluster.logs(), f"kept: {self.folder}", sep="\n")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
        return violations
