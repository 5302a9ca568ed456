"""The root of one tree: starts the body, passes words on to it, reaps orphans, and ends with all that is left.

As init of a namespace it can signal all of it in one step, which nothing can outrun, and nothing outlives it. Without a
namespace it takes in orphans as a subreaper, and walks.
"""

import os
import signal
import socket
from collections.abc import Callable
from typing import Final, NoReturn

import msgspec

from tidewheel.worker.launcher.messages import BodyEnded, Word
from tidewheel.worker.sandbox import tree
from tidewheel.worker.sandbox.layers import Confinement, Sandbox
from tidewheel.worker.sandbox.parent_death import die_with_parent, process_lives

SIGNAL_OF: Final[dict[Word, signal.Signals]] = {
    "stop": signal.SIGTERM,
    "pause": signal.SIGUSR1,
    "resume": signal.SIGUSR2,
    "kill": signal.SIGQUIT,
}
_ORPHANED: Final = signal.SIGHUP
WORDS: Final = frozenset({*SIGNAL_OF.values(), _ORPHANED})
"""What a launcher blocks, so that its children never miss one."""
_WATCHED: Final = WORDS | {signal.SIGCHLD}

StartBody = Callable[[tuple[str, ...]], int]
"""Starts the body, told the layers that are active, and returns its pid."""


class Missing(Exception):
    """There is no such executable."""


class Init:
    """Runs in a process of its own, from the fork to the end."""

    def __init__(self, *, number: int, reports: socket.socket, namespaced: bool, stop_all: bool) -> None:
        self._number = number
        self._reports = reports
        self._namespaced = namespaced
        self._stop_all = stop_all
        """Whether a stop is told to all processes of the tree, or to the body alone, which knows what to do."""

    def run(self, sandbox: Sandbox, wish: Confinement, launcher: int, start: StartBody) -> NoReturn:
        """Confine, start the body, tend it until it ends, and leave nothing."""
        try:
            ended = self._run(sandbox, wish, launcher, start)
        except Missing as error:
            ended = BodyEnded(tree=self._number, missing=str(error))
        except BaseException as error:  # noqa: BLE001 - whatever it is, the host must hear of it
            ended = BodyEnded(tree=self._number, broken=f"{type(error).__name__}: {error}")
        if not self._namespaced:
            tree.kill_all(os.getpid())
        self._reports.send(msgspec.json.encode(ended))
        os._exit(0)

    def _run(self, sandbox: Sandbox, wish: Confinement, launcher: int, start: StartBody) -> BodyEnded:
        signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
        if self._namespaced and os.getpid() != 1:
            raise RuntimeError("not the init of a namespace")
        layers = sandbox.confine(wish)
        die_with_parent(lambda: process_lives(launcher), signal.SIGKILL if self._namespaced else _ORPHANED)
        body = start(layers)
        status, peak = self._tend(body)
        return BodyEnded(tree=self._number, status=status, peak_rss=peak, layers=layers)

    def _tend(self, body: int) -> tuple[int, int]:
        while True:
            told = signal.sigwaitinfo(_WATCHED)
            if told.si_signo == signal.SIGCHLD:
                if (ended := _reap(body)) is not None:
                    return ended
            elif told.si_pid == 0 or not self._namespaced:  # 0 is whoever is outside: a task cannot speak as the host
                self._obey(signal.Signals(told.si_signo), body)

    def _obey(self, word: signal.Signals, body: int) -> None:
        match word:
            case signal.SIGTERM if self._stop_all:
                self._signal_all(signal.SIGTERM)
                self._signal_all(signal.SIGCONT)
            case signal.SIGTERM:
                os.kill(body, signal.SIGTERM)
                self._signal_all(signal.SIGCONT)
            case signal.SIGUSR1:
                self._signal_all(signal.SIGSTOP)
            case signal.SIGUSR2:
                self._signal_all(signal.SIGCONT)
            case _:
                self._signal_all(signal.SIGKILL)

    def _signal_all(self, number: signal.Signals) -> None:
        if not self._namespaced:
            tree.signal_all(os.getpid(), number)
        elif os.getpid() == 1:  # anywhere else this would reach all processes of the user
            try:
                os.kill(-1, number)
            except ProcessLookupError:
                return


def _reap(body: int) -> tuple[int, int] | None:
    """Reap what has ended; return the status and the peak memory of the body if it was among them."""
    found = None
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == body:
            found = os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024
