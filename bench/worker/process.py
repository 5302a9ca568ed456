"""A real `tide worker` as a child process: started, seen to work, looked into, and ended."""

import asyncio
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from uuid import UUID

import psutil

from bench.grounds.ground import Place
from bench.jobs import fill
from bench.worker.loads import WARM, Load
from tidewheel.model.job import Job
from tidewheel.store.base import JobFilter

ROOT: Final = Path(__file__).parents[2]
PATIENCE: Final = 60.0
"""Seconds for a worker to come up or to end."""
STALLED: Final = 300.0
"""Seconds after which jobs that do not end count as lost."""
LOOK_EVERY: Final = 0.2
PAGE: Final = 100


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What kind of worker: its runners, its slots, and whether it has a keeper."""

    inline: int = 0
    slots: int = 0
    keeper: bool = False

    @property
    def takers(self) -> int:
        """How many of its processes claim jobs."""
        return self.inline + (self.slots > 0)

    def words(self, url: str, blobs: Path) -> list[str]:
        """Return the words that start it."""
        return [
            *(sys.executable, "-m", "tidewheel.cli.main", "worker", "--app", "bench.worker.app:app"),
            *("--database", url, "--blobs", blobs.as_uri()),
            *("--inline", str(self.inline), "--slots", str(self.slots)),
            "--keeper" if self.keeper else "--no-keeper",
        ]


class RunningWorker:
    """One worker and all processes below it."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path, shape: Shape) -> None:
        self._process = process
        self._log = log
        self.shape = shape

    def cpu(self) -> float:
        """Return the seconds of CPU that its processes have used."""
        return sum(map(_cpu, self._tree()))

    def memory(self) -> int:
        """Return the bytes of memory that are its own; what processes share is divided among them."""
        total = 0
        for process in self._tree():
            with suppress(psutil.NoSuchProcess):
                total += process.memory_full_info().pss
        return total

    def check(self) -> None:
        """Raise if it has ended."""
        if self._process.poll() is not None:
            raise RuntimeError(f"the worker ended with {self._process.returncode}:\n{self.said()}")

    def said(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]

    async def end(self) -> None:
        """Ask it to stop; kill it and all below it if it does not."""
        tree = self._tree()
        self._process.send_signal(signal.SIGTERM)
        try:
            await asyncio.to_thread(self._process.wait, PATIENCE)
        except subprocess.TimeoutExpired:
            for process in tree:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            self._process.wait()

    def _tree(self) -> list[psutil.Process]:
        try:
            top = psutil.Process(self._process.pid)
            return [top, *top.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


@asynccontextmanager
async def running(place: Place, shape: Shape, loads: Sequence[Load]) -> AsyncIterator[RunningWorker]:
    """Start a worker, and give it when each of its processes that claim has done jobs of these loads."""
    with tempfile.TemporaryDirectory(prefix="tide-bench-worker-") as folder:
        log = Path(folder) / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                shape.words(place.url, Path(folder) / "blobs"),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,  # Ctrl-C is for us; we end it
            )
        worker = RunningWorker(process, log, shape)
        try:
            await _warm(place, worker, loads)
            yield worker
        finally:
            await worker.end()


async def emptied(place: Place, worker: RunningWorker, tenant: str) -> None:
    """Return when no job of a tenant is active any more."""
    deadline = time.monotonic() + STALLED
    while await place.any_active(tenant):
        worker.check()
        if time.monotonic() > deadline:
            raise RuntimeError(f"jobs do not end; the worker said:\n{worker.said()}")
        await asyncio.sleep(LOOK_EVERY)


async def jobs_since(place: Place, load: Load, since: datetime) -> list[Job]:
    """Return the jobs of a load that were made since then."""
    where = JobFilter(kind=load.lane.kind, tenant=load.lane.tenant, created_from=since)
    jobs: list[Job] = []
    page = await place.store.find(where, limit=PAGE)
    jobs += page.jobs
    while page.next is not None:
        page = await place.store.find(where, limit=PAGE, after=page.next)
        jobs += page.jobs
    return jobs


async def _warm(place: Place, worker: RunningWorker, loads: Sequence[Load]) -> None:
    """Give it jobs that do not count until each process that claims has ended some: caches and estimates are there."""
    seen: set[UUID | None] = set()
    deadline = time.monotonic() + PATIENCE
    while len(seen) < worker.shape.takers:
        if time.monotonic() > deadline:
            raise RuntimeError(f"only {len(seen)} of {worker.shape.takers} claim; the worker said:\n{worker.said()}")
        for load in loads:
            since = datetime.now(UTC)
            warming = load.of_tenant(WARM)
            await fill(place.store, load.warm, load.warm, warming.make)
            await emptied(place, worker, WARM)
            seen |= {job.last_worker for job in await jobs_since(place, warming, since)}


def _cpu(process: psutil.Process) -> float:
    """Add up what the kernel noted of each thread, to the nanosecond: the usual clock ticks too slowly for idleness."""
    total = 0
    with suppress(FileNotFoundError, ProcessLookupError):
        for thread in Path(f"/proc/{process.pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                total += int((thread / "schedstat").read_text().split()[0])
    return total / 1e9
