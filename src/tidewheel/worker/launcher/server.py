"""The launcher's own process: loads the app, then forks, passes words on and reaps, until the host is gone."""

import contextlib
import gc
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import msgspec

from tidewheel.errors import Invalid
from tidewheel.tasks.registry import Registry
from tidewheel.worker.launcher.cell import CellInit
from tidewheel.worker.launcher.init import SIGNAL_OF, WORDS, Init, RunnerInit
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
)
from tidewheel.worker.launcher.receiving import receive
from tidewheel.worker.sandbox.layers import Sandbox
from tidewheel.worker.sandbox.parent_death import die_with_parent

_TASKS_A_MESSAGE: Final = 200
_WHY: Final = 2_000


class _Tree(NamedTuple):
    number: int
    namespaced: bool


class Launcher:
    """Serves one host over one socket."""

    def __init__(self, host: socket.socket, settings: Settings) -> None:
        self._host = host
        self._settings = settings
        self._sandbox = Sandbox(settings.grounds)
        self._self = os.pidfd_open(os.getpid())
        self._trees: dict[int, _Tree] = {}
        """By the pid of their init."""
        self._registry = Registry()
        self._decode: Callable[[bytes], Request] = msgspec.json.Decoder(Request).decode
        self._woken, self._wake = socket.socketpair()

    def serve(self) -> None:
        """Do what the host says until it closes the socket."""
        if not self._load():
            return
        gc.collect()
        gc.freeze()  # what is there now stays there, so children need not copy it when they collect
        gc.disable()
        for end in (self._woken, self._wake):
            end.setblocking(False)  # noqa: FBT003 - it has no name
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_BLOCK, WORDS)
        poll = select.poll()
        poll.register(self._host, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if self._woken.fileno() in ready:
                self._reap()
            if self._host.fileno() in ready and not self._hear():
                return

    def _load(self) -> bool:
        if self._settings.app is None:
            self._say(Loaded([], complete=True, lacking=self._sandbox.lacking_for_strict()))
            return True
        from tidewheel.tasks.loading import load_registry  # noqa: PLC0415 - a launcher of commands stays small

        try:
            self._registry = load_registry(self._settings.app).registry
        except Invalid as error:
            self._say(Unloadable(error.field, error.why[:_WHY]))
            return False
        if threading.active_count() > 1:
            print(  # noqa: T201 - to the log of the worker
                f"{self._settings.app} starts threads when it is imported; they do not exist in tasks", file=sys.stderr
            )
        tasks, lacking = self._registry.catalogue(), self._sandbox.lacking_for_strict()
        for start in range(0, max(len(tasks), 1), _TASKS_A_MESSAGE):
            some = tasks[start : start + _TASKS_A_MESSAGE]
            self._say(Loaded(some, complete=start + _TASKS_A_MESSAGE >= len(tasks), lacking=lacking))
        import tidewheel.worker.launcher.runner  # noqa: F401, PLC0415 - once here, not in each child

        return True

    def _hear(self) -> bool:
        """Do one thing that the host asks for; False if the host is gone."""
        data, fds = receive(self._host)
        if not data:
            return False
        request = self._decode(data)
        try:
            if isinstance(request, Tell):
                self._tell(request)
            else:
                self._start(request, fds)
        finally:
            for fd in fds:
                os.close(fd)
        return True

    def _tell(self, request: Tell) -> None:
        for pid, tree in self._trees.items():
            if tree.number == request.tree:  # not reaped, so the pid is still its own
                certain = request.word == "kill" and tree.namespaced
                os.kill(pid, signal.SIGKILL if certain else SIGNAL_OF[request.word])
                return

    def _start(self, request: Fork, fds: list[int]) -> None:
        isolation = request.confinement.isolation
        try:
            pid = self._sandbox.fork(isolation)
        except OSError as error:
            self._say(BodyEnded(tree=request.tree, broken=f"cannot fork: {error.strerror}"))
            self._say(Gone(request.tree, 0.0))
            return
        namespaced = self._sandbox.has_namespaces(isolation)
        if pid == 0:
            with _never_returning():
                signal.set_wakeup_fd(-1)
                self._init_of(request, fds, namespaced=namespaced).run(self._sandbox, request.confinement, self._self)
            os._exit(70)
        self._trees[pid] = _Tree(request.tree, namespaced)
        self._say(Started(request.tree, pid))

    def _init_of(self, request: Fork, fds: list[int], *, namespaced: bool) -> Init:
        if request.body == "cell":
            return CellInit(
                number=request.tree, reports=self._host, namespaced=namespaced, channel=socket.socket(fileno=fds[0])
            )

        def start(layers: tuple[str, ...]) -> int:
            body = self._fork_runner(fds, layers, namespaced=namespaced)
            for fd in fds:
                os.close(fd)
            return body

        return RunnerInit(number=request.tree, reports=self._host, namespaced=namespaced, start=start)

    def _fork_runner(self, fds: list[int], layers: tuple[str, ...], *, namespaced: bool) -> int:
        init = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        status = 70
        with _never_returning():
            die_with_parent(lambda: os.getppid() == init)
            os.setsid()
            self._close_own()
            _serve_runner(self._registry, fds, layers, None if namespaced else init)
            status = 0
        os._exit(status)

    def _close_own(self) -> None:
        """Close what is not for user code."""
        for end in (self._host, self._woken, self._wake):
            end.close()
        os.close(self._self)

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(4096)
        while True:
            try:
                pid, _, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if (tree := self._trees.pop(pid, None)) is not None:
                self._say(Gone(tree.number, usage.ru_utime + usage.ru_stime))

    def _say(self, report: Report) -> None:
        self._host.send(msgspec.json.encode(report))


@contextlib.contextmanager
def _never_returning() -> Iterator[None]:
    """Print whatever is raised: in a forked process nothing may reach the code of its parent."""
    try:
        yield
    except BaseException:  # noqa: BLE001 - as above
        sys.excepthook(*sys.exc_info())


def _serve_runner(registry: Registry, fds: list[int], layers: tuple[str, ...], init: int | None) -> None:
    from tidewheel.worker.launcher.runner import Runner  # noqa: PLC0415 - loaded by the launcher, if it has an app

    channel, stdout, stderr = fds
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - a descriptor is all that is wanted
        os.dup2(nothing.fileno(), 0)
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    os.close(stdout)
    os.close(stderr)
    signal.set_wakeup_fd(-1)
    for number in (*WORDS, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    runner = Runner(registry, socket.socket(fileno=channel), init)
    signal.signal(signal.SIGTERM, runner.on_stop)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    runner.serve(layers)


def _stand_back() -> None:
    """Let tasks take the processor when it is free or their turn comes, and not the moment that they are given work.

    Else each task that is begun pushes aside the worker that begins it, and with it all the others.
    """
    with contextlib.suppress(OSError):  # some containers forbid it
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def main(arguments: list[str]) -> None:
    """Be a launcher: the descriptor of the socket and the settings, as JSON, are the arguments."""
    settings = msgspec.json.decode(arguments[1], type=Settings)
    die_with_parent(lambda: os.getppid() == settings.host)
    _stand_back()
    host = socket.socket(fileno=int(arguments[0]))
    host.set_inheritable(False)
    Launcher(host, settings).serve()
