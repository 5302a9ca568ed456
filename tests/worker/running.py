"""Real `tide worker` processes and someone who gives them jobs."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import psutil

from tests.postgres import SharedPostgres
from tests.worker import running_app
from tidewheel import App
from tidewheel.clock import SystemClock
from tidewheel.model.states import State
from tidewheel.sdk.job import Job
from tidewheel.sdk.task import Task
from tidewheel.wiring import is_server

ROOT: Final = Path(__file__).parents[2]
DEADLINE: Final = 60.0
"""Seconds that a test waits for what other processes do; generous, for the machine may be busy."""
CLOCK: Final = SystemClock()

T = TypeVar("T")


def until(look: Callable[[], T | bool | None], what: str, within: float = DEADLINE) -> T:
    """Return the first answer that is true."""
    latest = CLOCK.monotonic() + within
    while not (seen := look()):
        assert CLOCK.monotonic() < latest, f"waited {within:g} s for {what}"
        time.sleep(0.01)  # noqa: TID251 - before looking again
    return seen  # type: ignore[return-value] # it is true


class Worker:
    """One worker process with all that it started."""

    def __init__(self, words: Sequence[str], log: Path, *, cwd: Path = ROOT) -> None:
        self.log = log
        self.temporary = log.parent / "tmp"
        """Of all workers of a scene, and of no other: artifacts that an earlier test has used are not there."""
        self.temporary.mkdir(exist_ok=True)
        with log.open("wb") as out:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "tidewheel.cli.main", *words],
                cwd=cwd,
                env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(self.temporary)},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self._seen: dict[int, psutil.Process] = {}

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def ready(self) -> Self:
        until(lambda: "takes jobs of" in self.said or self.popen.poll() is not None, "the worker to begin")
        assert self.popen.poll() is None, self.said
        return self

    def children(self) -> list[psutil.Process]:
        try:
            found = psutil.Process(self.popen.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []
        self._seen |= {process.pid: process for process in found}
        return found

    def tell(self, number: signal.Signals) -> None:
        self.children()
        self.popen.send_signal(number)

    def gone(self, within: float = DEADLINE) -> int:
        """Wait for the end, see that nothing is left, and return the exit code."""
        self.children()
        code = self.popen.wait(within)
        assert not [process for process in self._seen.values() if alive(process)], self.said
        return code

    def all_dead(self) -> None:
        """Wait until nothing is left of a worker that was killed."""
        self.popen.wait(DEADLINE)
        until(lambda: not any(alive(process) for process in self._seen.values()), "all of it to die")

    def stop(self) -> None:
        self.tell(signal.SIGTERM)
        assert self.gone() == 0, self.said
        assert "Traceback" not in self.said, self.said

    def kill(self) -> None:
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Scene:
    """A database, an app that speaks to it, and workers."""

    def __init__(self, folder: Path, database: str) -> None:
        self.folder = folder
        self.database = database
        self.blobs = (folder / "blobs").as_uri()
        """Where large things are, unless a server has them."""
        self._place = () if is_server(database) else ("--blobs", self.blobs)
        self.app = App(database, blobs=None if is_server(database) else self.blobs)
        self.app.registry, self.app.callers = running_app.app.registry, running_app.app.callers
        self.workers: list[Worker] = []
        self._flags = 0

    def start(self, *options: str, app: str = "tests.worker.running_app:app") -> Worker:
        words = ["worker", "--app", app, "--database", self.database, *self._place, *options]
        worker = Worker(words, self.folder / f"worker-{len(self.workers)}.log")
        self.workers.append(worker)
        return worker.ready()

    def enqueue(self, kind: str, *args: Any, using: dict[str, Any] | None = None, **kwargs: Any) -> Job[Any]:
        definition = self.app.registry.get(kind)
        assert definition is not None
        task: Task[..., Any] = Task(self.app, definition)
        return task.using(**(using or {})).enqueue(*args, **kwargs)

    def flag(self) -> Path:
        """Return a file that is not there yet; a task may wait for it."""
        self._flags += 1
        return self.folder / f"flag-{self._flags}"

    def store(self, work: Callable[[Any], Any]) -> Any:
        """Ask the store."""
        return self.app.run(self.app.use(work))

    def attempts(self, job: Job[Any]) -> list[Any]:
        found: list[Any] = self.store(lambda store: store.attempts(job.id))
        return found

    def running(self, job: Job[Any], text: str | None = None) -> Job[Any]:
        """Wait until a job runs, and has said something."""

        def runs() -> bool:
            info = job.info()
            assert info.finished_at is None, info
            return info.state is State.RUNNING and (text is None or text in texts(job))

        until(runs, f"{job} to run")
        return job

    def close(self) -> None:
        try:
            for worker in self.workers:
                if worker.popen.poll() is None:
                    worker.stop()
        finally:
            for worker in self.workers:
                worker.kill()
            self.app.close()


def texts(job: Job[Any], stream: str | None = None) -> list[str]:
    return [line.text for line in job.logs() if stream in (None, line.stream)]


@contextmanager
def a_scene(folder: Path, store: str, server: SharedPostgres | None) -> Iterator[Scene]:
    """Open a scene on a fresh database; at its end all workers are stopped, and leave nothing."""
    if store == "sqlite":
        scene = Scene(folder, f"sqlite:///{folder}/tide.db")
        try:
            yield scene
        finally:
            scene.close()
        return
    assert server is not None
    pool = server.pool()
    name = pool.take()
    scene = Scene(folder, server.database_url(name))
    try:
        yield scene
    finally:
        scene.close()
        pool.give_back(name)
