"""The children of a supervisor as processes: started, watched, spoken to, and gone with all that they started."""

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

from tidewheel.clock import Clock
from tidewheel.model.worker import WorkerSpec
from tidewheel.observe import Numbers
from tidewheel.worker.counting import Inquiry, Tell
from tidewheel.worker.link import Counted, Link, Message, Ready, Setup, Stop
from tidewheel.worker.loop_watch import WHO_HAS_THE_LOOP, LoopWatch, Stuck
from tidewheel.worker.page import Page
from tidewheel.worker.sandbox.kernel import PR_SET_CHILD_SUBREAPER, prctl

GONE_WITHIN: Final = 5.0
"""Seconds after which a process that was killed and is not gone is reported."""
LOOK_EVERY: Final = 0.005

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MemberSpec:
    """A child that is to be there."""

    module: str
    """What the child runs, as with `python -m`."""
    setup: Setup
    """Without the id, which is new with each start."""
    worker: WorkerSpec | None = None
    """What it registers as; None for a child that takes no jobs."""
    renewable: bool = False
    """Whether another may take its place while it still works."""


class Member:
    """A child process with the worker row that it works under."""

    def __init__(self, spec: MemberSpec, worker_id: UUID | None, started_at: float, tell: Tell) -> None:
        self.spec = spec
        self.worker_id = worker_id
        self.started_at = started_at
        self.page = Page()
        self.stuck: Stuck | None = None
        """Why it was ended by us, if its loop was stuck."""
        self._loop_watch = LoopWatch(self.page, self._ask_who_has_the_loop, self._is_stopped)
        self.fenced = False
        """Whether it was ended because of its lease, which is nobody's fault."""
        self.retired = False
        """Whether another has taken its place."""
        self.ready = asyncio.Event()
        self.gone = asyncio.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._tell = tell
        self._link: Link | None = None
        self._inquiry: Inquiry | None = None
        self.counted: Sequence[Numbers] = ()
        """What it has counted, as it last said."""
        self._ear: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        return -1 if self._process is None else self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Negative for a signal, as `subprocess` has it."""
        return None if self._process is None else self._process.returncode

    async def start(self, setup: Setup, lease_until: float) -> None:
        """Start the process and give it its first word."""
        self.page.lease_until = lease_until
        ours, theirs = socket.socketpair()
        with theirs:
            argv = (sys.executable, "-m", self.spec.module, str(os.getpid()), str(theirs.fileno()), str(self.page.fd))
            # Its own session: what a terminal sends on Ctrl-C is for the supervisor alone.
            self._process = subprocess.Popen(  # noqa: S603, ASYNC220 - our own module; it starts in a millisecond
                argv, pass_fds=(theirs.fileno(), self.page.fd), start_new_session=True, stdin=subprocess.DEVNULL
            )
        self._watch(os.pidfd_open(self._process.pid))
        self._link = await Link.over(ours)
        self._inquiry = Inquiry(self._link, self._tell)
        self._link.send(setup)
        self._ear = asyncio.create_task(self._hear(self._link))

    def say(self, message: Message) -> None:
        """Send a word; one who is gone does not hear it."""
        if self._link is not None:
            self._link.send(message)

    def stop_runs(self, keys: Sequence[tuple[UUID, int]], now: float) -> None:
        """Have it end runs; if its process is stopped it is ended itself, once their grace is over."""
        self.say(Stop(tuple(keys)))
        if self._loop_watch.stop_by is None:
            self._loop_watch.stop_by = now + self.spec.setup.grace.total_seconds()

    def has_none_to_stop(self) -> None:
        """Take note that the store has no run of it that was asked to stop."""
        self._loop_watch.stop_by = None

    async def ask(self, within: float) -> None:
        """Have it say what it has counted; one that is busy or gone has said it before."""
        if self._inquiry is not None and not self.gone.is_set():
            with suppress(TimeoutError):
                await self._inquiry.ask(within)

    def kill(self) -> None:
        """End the process at once; what it started goes with it."""
        self._signal(signal.SIGKILL)

    def fence(self) -> None:
        """End the process because it may not run any longer."""
        self.fenced = True
        self.kill()

    def look(self, now: float) -> bool:
        """Tell whether its loop has been found to be stuck just now."""
        if self.stuck is None:
            self.stuck = self._loop_watch.look(now)
            return self.stuck is not None
        return False

    async def close(self) -> None:
        """Let go of what connects us with a process that is gone."""
        if self._ear is not None:
            self._ear.cancel()
        if self._link is not None:
            await self._link.close()
        self.page.close()

    def _signal(self, number: int) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    def _ask_who_has_the_loop(self) -> None:
        self._signal(WHO_HAS_THE_LOOP)

    def _is_stopped(self) -> bool:
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
        except OSError:
            return False

    async def _hear(self, link: Link) -> None:
        async for word in link.messages():
            if isinstance(word, Ready):
                self.ready.set()
            if isinstance(word, Counted):
                self.counted = word.numbers
            if self._inquiry is not None:
                self._inquiry.hears(word)

    def _watch(self, pidfd: int) -> None:
        loop = asyncio.get_running_loop()

        def ended() -> None:
            loop.remove_reader(pidfd)
            os.close(pidfd)
            if self._process is not None:
                self._process.wait()
            self.gone.set()

        loop.add_reader(pidfd, ended)


def become_reaper() -> None:
    """Have the kernel hand this process the children of its dead descendants."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)


async def strays_gone(members: Iterable[Member], clock: Clock) -> None:
    """Wait until no process is left that a dead child had started.

    The supervisor is their reaper: the kernel hands it the children of its dead children, which have been told to die
    with their parents. Those that nobody told are killed.
    """
    known = {member.pid for member in members}
    latest = clock.monotonic() + GONE_WITHIN
    while strays := [pid for pid in _children() if pid not in known and not _reaped(pid)]:
        for pid in strays:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if clock.monotonic() > latest:
            _log.error("processes %s do not die", strays)
            return
        await clock.sleep(LOOK_EVERY)


def _children() -> list[int]:
    own = Path("/proc/self/task")
    return [int(pid) for thread in own.iterdir() for pid in (thread / "children").read_text().split()]


def _reaped(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
