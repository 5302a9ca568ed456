"""Real workers as children of this process: started, looked into, signalled, and seen to die.

While a cluster is open, this process is where orphans of its workers end up, and it reaps whatever ends up here; so it
must start no children besides, other than those that it had before and the PostgreSQL server it names.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, Self

from harness.checker.records import Left
from harness.journal import Journal
from harness.processes import (
    Process,
    Role,
    Watch,
    adopt_orphans,
    command_of,
    descendants,
    look_at,
    roles,
    send,
    title_of,
)
from harness.witness import boottime

ROOT: Final = Path(__file__).parents[1]
LEASE: Final = 2.0
GRACE: Final = 2.0
"""How long a task has to end once it was asked to, in all runs of the harness."""
SCAN: Final = 0.1
"""Seconds between two looks at which processes there are; a death that is watched for is seen at once."""
PATIENCE: Final = 20.0


def worker_command(database: str, *, inline: int, slots: int, lease: float) -> list[str]:
    """Return the words that start a worker."""
    return [
        *(sys.executable, "-m", "tidewheel.cli.main", "worker"),
        *("--app", "harness.chaos_app:app", "--database", database),
        *("--inline", str(inline), "--slots", str(slots), "--lease", f"{lease:g}s"),
        *("--grace", f"{GRACE:g}s"),
        *("--env", "CHAOS_DATABASE"),
    ]


def has_worker_command() -> bool:
    """Tell whether this program can be a worker at all."""
    words = [sys.executable, "-m", "tidewheel.cli.main", "worker", "--help"]
    answer = subprocess.run(words, cwd=ROOT, capture_output=True, check=False, timeout=60)
    return answer.returncode == 0 and b"--lease" in answer.stdout


class WorkerProcess:
    """One worker: its supervisor, which is our child, and the tree below it."""

    def __init__(self, name: str, popen: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.log = log
        self._popen = popen
        found = look_at(popen.pid)
        assert found is not None, "a child that was not reaped is there, be it dead"
        self.supervisor = found

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def running(self) -> bool:
        now = look_at(self.pid)
        return now is not None and now.start == self.supervisor.start and not now.dead

    def tree(self) -> list[Process]:
        """Return all of it that is alive, parents first."""
        found = [process for process in descendants(self.pid) if not process.dead]
        return [self.supervisor, *found] if self.running else []

    def parts(self, role: Role) -> list[Process]:
        """Return the processes that play a part in it."""
        tree = self.tree()
        known = roles(self.pid, tree, {process.pid: title_of(process.pid) for process in tree})
        return [process for process in tree if known.get(process.pid) == role]


class Cluster:
    """Some workers on one database, everything that descends from them, and a thread that watches them die."""

    def __init__(
        self,
        folder: Path,
        journal: Journal,
        command: Sequence[str],
        *,
        environment: dict[str, str] | None = None,
        foreign: Callable[[], Iterable[int]] = tuple,
    ) -> None:
        """Take where to keep the logs, how to start a worker, and which children of ours are not the cluster's."""
        self._folder = folder
        self._journal = journal
        self._command = list(command)
        self._environment = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
        self._foreign = foreign
        self._before: set[tuple[int, int]] = set()
        self._seen: set[tuple[int, int]] = set()
        self._watch = Watch()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._observe, name="cluster-watch", daemon=True)
        self.workers: list[WorkerProcess] = []
        self._others: list[WorkerProcess] = []

    def __enter__(self) -> Self:
        self._before = {process.name for process in descendants(os.getpid())}
        adopt_orphans(on=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.destroy()
        finally:
            self._stop.set()
            self._thread.join(PATIENCE)
            self._watch.close()
            adopt_orphans(on=False)

    # Workers

    def start(self) -> WorkerProcess:
        """Start one more worker."""
        worker = self._launch(f"worker-{len(self.workers)}", self._command)
        self.workers.append(worker)
        return worker

    def launch(self, name: str, command: Sequence[str]) -> WorkerProcess:
        """Start something else that is watched and ended with the workers."""
        other = self._launch(name, command)
        self._others.append(other)
        return other

    def _launch(self, name: str, command: Sequence[str]) -> WorkerProcess:
        log = self._folder / f"{name}.log"
        with log.open("ab") as out:
            popen = subprocess.Popen(
                list(command),
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        return WorkerProcess(name, popen, log)

    @property
    def running(self) -> list[WorkerProcess]:
        return [worker for worker in self.workers if worker.running]

    def kill(self, victims: Iterable[Process], role: str) -> int:
        """Kill processes on the spot; returns how many were still there."""
        killed = [victim for victim in victims if send(victim, signal.SIGKILL)]
        for victim in killed:
            self._journal.killed(victim.pid, role)
        return len(killed)

    def signal(self, victims: Iterable[Process], number: signal.Signals) -> int:
        """Send any other signal."""
        return sum(send(victim, number) for victim in victims)

    def freeze(self, victims: Sequence[Process]) -> None:
        """Stop processes, and return when none of them does anything more."""
        self.signal(victims, signal.SIGSTOP)
        assert wait_until(lambda: all(map(_still, victims)), PATIENCE), "a process cannot refuse to stop"

    # The end

    def stop(self, patience: float = PATIENCE) -> bool:
        """Ask all workers, and whatever else was started, to end, and tell whether they did."""
        self.signal((one.supervisor for one in self._all_running()), signal.SIGTERM)
        return wait_until(lambda: not self._all_running(), patience)

    def _all_running(self) -> list[WorkerProcess]:
        return [one for one in (*self.workers, *self._others) if one.running]

    def left(self) -> list[Process]:
        """Return what is alive of all that ever descended from our workers, wherever it has gone."""
        return [process for process in self._ours() if not process.dead]

    def report_left(self, patience: float = 2.0) -> None:
        """Write down what is still there; after the workers have ended."""
        wait_until(lambda: not self.left(), patience)
        for process in self.left():
            self._journal.add(Left(t=boottime(), pid=process.pid, command=command_of(process.pid)))

    def destroy(self) -> None:
        """Kill all that is left."""

        def gone() -> bool:
            # A stopped process dies of this, too; repeated, for one may fork while we look.
            return not [send(process, signal.SIGKILL) for process in self.left()]

        wait_until(gone, PATIENCE)

    def watches(self, pid: int) -> bool:
        """Tell whether a process was seen in time for its death to be written down."""
        return self._watch.watches(pid)

    def logs(self, last: int = 4000) -> str:
        """Return the ends of the workers' logs, for whoever must find out what went wrong."""
        written = [
            worker for worker in (*self.workers, *self._others) if worker.log.exists()
        ]  # until all was found good
        parts = [f"--- {worker.name}\n{worker.log.read_text(errors='replace')[-last:]}" for worker in written]
        return "\n".join(parts)

    # The thread

    def _ours(self) -> list[Process]:
        """Return all below this process that is the cluster's, dead or alive."""
        others = set(self._foreign())
        below = descendants(os.getpid())
        apart = {process.pid for process in below if process.pid in others or process.name in self._before}
        for process in below:  # parents come first
            if process.parent in apart:
                apart.add(process.pid)
        return [process for process in below if process.pid not in apart]

    def _observe(self) -> None:
        while not self._stop.is_set():
            self._look(SCAN)
        self._look(0)  # at those that were killed last

    def _look(self, within: float) -> None:
        """Watch whoever is new, reap whoever is dead, and wait a while for deaths."""
        for process in self._ours():
            if process.name not in self._seen:
                self._seen.add(process.name)
                self._watch.add(process)
            if process.dead and process.parent == os.getpid():
                self._reap(process.pid)
        for process in self._watch.deaths(within):
            self._journal.died(process.pid)

    def _reap(self, pid: int) -> None:
        """Take away a dead child of ours: a worker, or an orphan that came to us."""
        for one in (*self.workers, *self._others):
            if one.pid == pid:
                one._popen.poll()
                return
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _still(process: Process) -> bool:
    now = look_at(process.pid)
    return now is None or now.start != process.start or now.state in "TtZX"


def wait_until(condition: Callable[[], bool], patience: float) -> bool:
    """Wait for what other processes do, and tell whether it came."""
    deadline = boottime() + patience
    while not (met := condition()) and boottime() < deadline:
        time.sleep(0.02)
    return met
