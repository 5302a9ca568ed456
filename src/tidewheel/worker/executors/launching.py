"""The host's side of a launcher: starts it, asks it for trees, and hears what became of them."""

import asyncio
import contextlib
import os
import select
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Self

import msgspec

from tidewheel.errors import Invalid
from tidewheel.tasks.registry import CatalogueEntry
from tidewheel.worker.executors.wire import Wire
from tidewheel.worker.launcher.messages import (
    BodyEnded,
    Fork,
    Gone,
    Loaded,
    Report,
    Request,
    Settings,
    Started,
    Tell,
    Unloadable,
    Word,
)
from tidewheel.worker.sandbox import cgroups, environment
from tidewheel.worker.sandbox.cgroups import Group
from tidewheel.worker.sandbox.layers import Confinement, Grounds

_LOAD_SECONDS: Final = 60
_decode = msgspec.json.Decoder(Report).decode


@dataclass(frozen=True, kw_only=True)
class LauncherOptions:
    """What a launcher is started with."""

    app: str | None = None
    """`module:attribute`; None for commands alone."""
    directory: Path = field(default_factory=Path.cwd)
    """Where the app is looked for."""
    grounds: Grounds = field(default_factory=Grounds)
    environment: Mapping[str, str] = field(default_factory=dict)
    """What tasks see besides the allow-list of the worker's own."""


class Tree:
    """A tree of processes that the launcher was asked for."""

    def __init__(self, launcher: "Launcher", number: int) -> None:
        self._launcher = launcher
        self.number = number
        self.pid: int | None = None
        """The init, once it is known."""
        self.started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done once it is."""
        self.group: Group | None = None
        """The control group that it was moved into, if it was."""
        self.body: BodyEnded | None = None
        """How the body ended; None if it was killed with the whole tree."""
        self.cpu_seconds = 0.0
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def tell(self, word: Word) -> None:
        """Pass a word on to it; nothing happens if it has ended."""
        if not self.gone.done():
            self._launcher.send(Tell(self.number, word))

    @property
    def layers(self) -> tuple[str, ...]:
        """What was put on from outside."""
        return () if self.group is None else (cgroups.LAYER,)

    def has_started(self, pid: int) -> None:
        """Note who its init is."""
        self.pid = pid
        self.started.set_result(None)

    def is_gone(self) -> None:
        """Note that nothing of it is left."""
        if not self.gone.done():
            self.gone.set_result(None)


class Launcher:
    """One launcher process. Must be opened by the main thread: the launcher dies with the thread that started it."""

    def __init__(self, sock: socket.socket, process: "subprocess.Popen[bytes]", app: str | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._wire = Wire(sock, lambda data: self._note(_decode(data)), self._mourn)
        self._app = app
        self._process = process
        self._trees: dict[int, Tree] = {}
        self._count = 0
        self._loaded: asyncio.Future[None] = self._loop.create_future()
        self.catalogue: list[CatalogueEntry] = []
        self.lacking: str | None = None
        """Why it cannot give all that strict stands for, if it cannot."""
        self.dead: asyncio.Future[None] = self._loop.create_future()
        """Done once the launcher and every init have ended."""
        self._dying = self._wire_is_closed = False
        self._pidfd = os.pidfd_open(process.pid)
        self._loop.add_reader(self._pidfd, self._note_death)

    @classmethod
    async def open(cls, options: LauncherOptions) -> Self:
        """Start a launcher and wait until it has loaded the app, or raise `Invalid` with the reason."""
        launcher = cls(*start_launcher(options), options.app)
        try:
            async with asyncio.timeout(_LOAD_SECONDS):
                await launcher._loaded
        except TimeoutError:
            await launcher.close()
            raise Invalid("app", f"{options.app} did not load within {_LOAD_SECONDS} seconds") from None
        except BaseException:
            await launcher.close()
            raise
        return launcher

    @property
    def pid(self) -> int:
        """The process, for tests and for the curious."""
        return self._process.pid

    @property
    def lives(self) -> bool:
        """Whether it can start anything."""
        return not self._dying

    def fork(self, body: Literal["runner", "cell"], confinement: Confinement, fds: list[int]) -> Tree:
        """Ask for a tree; takes the descriptors over."""
        self._count += 1
        tree = Tree(self, self._count)
        self.send(Fork(tree=tree.number, body=body, confinement=confinement), fds)
        if self._wire_is_closed:
            tree.is_gone()
        else:
            self._trees[tree.number] = tree
        return tree

    def send(self, request: Request, fds: list[int] | None = None) -> None:
        """Send a request, and close the descriptors that went along."""
        self._wire.send(msgspec.json.encode(request), fds)

    async def close(self) -> None:
        """End it and all of its trees, at once."""
        if not self.dead.done():
            self._process.kill()
        await asyncio.shield(self.dead)

    def _note(self, report: Report) -> None:
        match report:
            case Loaded():
                self.catalogue += report.tasks
                self.lacking = report.lacking
                if report.complete and not self._loaded.done():
                    self._loaded.set_result(None)
            case Unloadable():
                if not self._loaded.done():
                    self._loaded.set_exception(Invalid(report.field, report.why))
            case Started():
                self._trees[report.tree].has_started(report.pid)
            case BodyEnded():
                self._trees[report.tree].body = report
            case Gone():
                tree = self._trees.pop(report.tree)
                tree.cpu_seconds = report.cpu_seconds
                tree.is_gone()

    def _note_death(self) -> None:
        self._dying = True
        self._loop.remove_reader(self._pidfd)

    def _mourn(self) -> None:
        """Clean up after the launcher, whose inits have closed the socket too: all of them are dead or dying."""
        self._note_death()
        self._wire_is_closed = True
        if not self._loaded.done():
            self._loaded.set_exception(Invalid("app", f"the process that loads {self._app} died"))
            self._loaded.exception()  # heard, whether or not someone still waits
        self._burying = self._loop.create_task(self._bury())

    async def _bury(self) -> None:
        """Wait until the kernel has cleared the namespaces of all trees away."""
        trees, self._trees = list(self._trees.values()), {}
        await self._loop.run_in_executor(None, _wait_for, [tree.pid for tree in trees if tree.pid], self._process)
        os.close(self._pidfd)
        for tree in trees:
            tree.is_gone()
        self.dead.set_result(None)


class LauncherKeeper:
    """Has a launcher at hand, a new one if the last has died."""

    def __init__(self, options: LauncherOptions) -> None:
        self._options = options
        self._launcher: Launcher | None = None
        self._opening = asyncio.Lock()

    async def get(self) -> Launcher:
        """Return a launcher that lives."""
        async with self._opening:
            if self._launcher is None or not self._launcher.lives:
                self._launcher = await Launcher.open(self._options)
            return self._launcher

    async def close(self) -> None:
        """End it with all of its trees."""
        async with self._opening:
            if self._launcher is not None:
                await self._launcher.close()


def start_launcher(options: LauncherOptions) -> tuple[socket.socket, "subprocess.Popen[bytes]"]:
    """Start the process of a launcher, and return it with the socket to it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    settings = Settings(host=os.getpid(), app=options.app, grounds=options.grounds)
    arguments = [str(theirs.fileno()), msgspec.json.encode(settings).decode()]
    with theirs, contextlib.ExitStack() as unless_started:
        unless_started.callback(ours.close)
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "tidewheel.worker.launcher", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            pass_fds=[theirs.fileno()],
            cwd=options.directory,
            env={**environment.clean(os.environ), **options.environment},
            start_new_session=True,
        )
        unless_started.pop_all()
    return ours, process


def _wait_for(pids: list[int], process: "subprocess.Popen[bytes]") -> None:
    """Wait for processes that are not our children; a descriptor of one never stands for another."""
    process.wait()
    for pid in pids:
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            select.select([pidfd], [], [])
        finally:
            os.close(pidfd)
