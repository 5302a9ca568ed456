"""The host's side of a launcher: starts it, asks it for trees, and hears what became of them."""

import asyncio
import collections
import contextlib
import os
import select
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

import msgspec

from tidewheel.errors import Invalid
from tidewheel.tasks.registry import CatalogueEntry
from tidewheel.worker.launcher.messages import (
    MAX_MESSAGE,
    BodyEnded,
    Fork,
    Gone,
    Loaded,
    Program,
    Report,
    Request,
    Run,
    Settings,
    Started,
    Tell,
    Unloadable,
    Word,
)
from tidewheel.worker.sandbox import environment
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
        self.body: BodyEnded | None = None
        """How the body ended; None if it was killed with the whole tree."""
        self.cpu_seconds = 0.0
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def tell(self, word: Word) -> None:
        """Pass a word on to it; nothing happens if it has ended."""
        if not self.gone.done():
            self._launcher.send(Tell(self.number, word))

    def is_gone(self) -> None:
        """Note that nothing of it is left."""
        if not self.gone.done():
            self.gone.set_result(None)


class Launcher:
    """One launcher process. Must be opened by the main thread: the launcher dies with the thread that started it."""

    def __init__(self, sock: socket.socket, process: "subprocess.Popen[bytes]", app: str | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = sock
        self._app = app
        self._process = process
        self._trees: dict[int, Tree] = {}
        self._count = 0
        self._unsent: collections.deque[tuple[bytes, list[int]]] = collections.deque()
        self._loaded: asyncio.Future[list[CatalogueEntry]] = self._loop.create_future()
        self.catalogue: list[CatalogueEntry] = []
        self.dead: asyncio.Future[None] = self._loop.create_future()
        """Done once the launcher and every init have ended."""
        self._dying = False
        self._pidfd = os.pidfd_open(process.pid)
        self._loop.add_reader(self._pidfd, self._note_death)
        self._loop.add_reader(self._socket, self._hear)

    @classmethod
    async def open(cls, options: LauncherOptions) -> Self:
        """Start a launcher and wait until it has loaded the app, or raise `Invalid` with the reason."""
        ours, process = start_launcher(options)
        ours.setblocking(False)  # noqa: FBT003 - it has no name
        launcher = cls(ours, process, options.app)
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

    def fork(self, confinement: Confinement, fds: list[int]) -> Tree:
        """Ask for a tree with a runner; takes over its channel, stdout and stderr."""
        tree = self._new_tree()
        self.send(Fork(tree=tree.number, confinement=confinement), fds)
        return tree

    def run(self, confinement: Confinement, program: Program, fds: list[int]) -> Tree:
        """Ask for a tree with a command; takes over its stdin, stdout and stderr."""
        tree = self._new_tree()
        self.send(Run(tree=tree.number, confinement=confinement, program=program), fds)
        return tree

    def send(self, request: Request, fds: list[int] | None = None) -> None:
        """Send a request as soon as there is room, and close the descriptors that went along."""
        self._unsent.append((msgspec.json.encode(request), fds or []))
        if len(self._unsent) == 1:
            self._send()

    async def close(self) -> None:
        """End it and all of its trees, at once."""
        if not self.dead.done():
            self._process.kill()
        await self.dead

    def _new_tree(self) -> Tree:
        self._count += 1
        tree = self._trees[self._count] = Tree(self, self._count)
        if self.dead.done():
            del self._trees[self._count]
            tree.is_gone()
        return tree

    def _send(self) -> None:
        self._loop.remove_writer(self._socket)
        while self._unsent:
            data, fds = self._unsent[0]
            try:
                socket.send_fds(self._socket, [data], fds)
            except BlockingIOError:
                self._loop.add_writer(self._socket, self._send)
                return
            except OSError:  # it has died, which is noticed where its words are heard
                pass
            self._unsent.popleft()
            for fd in fds:
                os.close(fd)

    def _hear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            for _ in range(64):
                try:
                    data = self._socket.recv(MAX_MESSAGE)
                except ConnectionError:
                    data = b""
                if not data:
                    self._mourn()
                    return
                self._note(_decode(data))

    def _note(self, report: Report) -> None:
        match report:
            case Loaded():
                self.catalogue += report.tasks
                if report.complete and not self._loaded.done():
                    self._loaded.set_result(self.catalogue)
            case Unloadable():
                if not self._loaded.done():
                    self._loaded.set_exception(Invalid(report.field, report.why))
            case Started():
                self._trees[report.tree].pid = report.pid
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
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        for fd in (fd for _, fds in self._unsent for fd in fds):
            os.close(fd)
        self._unsent.clear()
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
