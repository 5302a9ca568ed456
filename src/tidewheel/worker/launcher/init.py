"""The root of one tree: serves what runs in it, passes words on, reaps orphans, and ends with all that is left.

As init of a namespace it can signal all of it in one step, which nothing can outrun, and nothing outlives it. Without a
namespace it takes in orphans as a subreaper, and walks.
"""

import contextlib
import os
import resource
import select
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Final, NoReturn

import msgspec

from tidewheel.worker.launcher.messages import BodyEnded, Word
from tidewheel.worker.sandbox import kernel, tree
from tidewheel.worker.sandbox.layers import Confinement, Sandbox
from tidewheel.worker.sandbox.parent_death import die_with_parent, process_lives

SIGNAL_OF: Final[dict[Word, signal.Signals]] = {
    "stop": signal.SIGTERM,
    "pause": signal.SIGUSR1,
    "resume": signal.SIGUSR2,
    "kill": signal.SIGQUIT,
}
_WORD_OF: Final = {number: word for word, number in SIGNAL_OF.items()}
_ORPHANED: Final = signal.SIGCONT
"""What an init without a namespace gets when its launcher dies. Nothing but SIGKILL and this reaches a process that is
stopped; and were it killed, nobody would be left who finds what its tree has started."""
WORDS: Final = frozenset({*SIGNAL_OF.values(), signal.SIGHUP})
"""What a launcher blocks, so that its children never miss one."""
_WATCHED: Final = WORDS | {signal.SIGCHLD}


class Init:
    """Runs in a process of its own, from the fork to the end."""

    def __init__(self, *, number: int, reports: socket.socket, namespaced: bool) -> None:
        self._number = number
        self._reports = reports
        self._namespaced = namespaced
        self._ended: BodyEnded | None = None
        """Set when it is time to go."""

    def run(self, sandbox: Sandbox, wish: Confinement, launcher: int) -> NoReturn:
        """Confine, serve until there is nothing more to do, and leave nothing."""
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
            if self._namespaced and os.getpid() != 1:
                raise RuntimeError("not the init of a namespace")  # noqa: TRY301 - the host must hear of it
            layers = sandbox.confine(wish)
            die_with_parent(lambda: process_lives(launcher), signal.SIGKILL if self._namespaced else _ORPHANED)
            ended = self._serve(layers, launcher)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the host must hear of it
            ended = BodyEnded(tree=self._number, broken=f"{type(error).__name__}: {error}")
        if not self._namespaced:
            tree.kill_all(os.getpid())
        with contextlib.suppress(ConnectionError):  # the host may be gone
            self._reports.send(msgspec.json.encode(ended))
        os._exit(0)

    def _serve(self, layers: tuple[str, ...], launcher: int) -> BodyEnded:
        signals = kernel.signal_descriptor(_WATCHED)
        poll = select.poll()
        poll.register(signals, select.POLLIN)
        poll.register(launcher, select.POLLIN)  # readable once it is dead; whoever else wakes an init ends nothing
        self.begin(layers, poll)
        while self._ended is None:
            for fd, _ in poll.poll():
                if fd == signals:
                    self._take_signal(*kernel.read_signal(signals))
                elif fd == launcher:
                    self._end_by_force()
                else:
                    self.take_message()
        return self._ended

    def _take_signal(self, number: signal.Signals, sender: int) -> None:
        if number == signal.SIGCHLD:
            for pid, status, usage in reaped():
                self.take_death(pid, status, usage)
        elif sender and self._namespaced:  # someone inside: a task cannot speak as the host
            return
        elif (word := _WORD_OF.get(number, "kill")) != "kill":
            self.obey(word)
        else:
            self._end_by_force()

    def _end_by_force(self) -> None:
        self.end_all()
        self._ended = BodyEnded(tree=self._number, status=-signal.SIGKILL)

    # What differs

    def begin(self, layers: tuple[str, ...], poll: select.poll) -> None:
        """Start what is to be served."""

    def take_message(self) -> None:
        """Take what is waiting on a descriptor that was registered."""

    def take_death(self, pid: int, status: int, usage: resource.struct_rusage) -> None:
        """Take note that a process ended and was reaped."""

    def obey(self, word: Word) -> None:
        """Do what the host says with all processes."""
        self.signal_all(signal.SIGTERM if word == "stop" else signal.SIGSTOP if word == "pause" else signal.SIGCONT)
        if word == "stop":  # what is paused hears nothing
            self.signal_all(signal.SIGCONT)

    # All processes

    def signal_all(self, number: signal.Signals) -> None:
        """Signal every process of the tree but this one."""
        if not self._namespaced:
            tree.signal_all(os.getpid(), number)
        elif os.getpid() == 1:  # anywhere else this would reach all processes of the user
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, number)

    def end_all(self) -> None:
        """Kill every process of the tree but this one, and return once none is left."""
        if not self._namespaced:
            tree.kill_all(os.getpid())
            return
        self.signal_all(signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.wait4(-1, 0)


class RunnerInit(Init):
    """The root of a tree whose body is a runner: it ends with it."""

    def __init__(
        self, *, number: int, reports: socket.socket, namespaced: bool, start: Callable[[tuple[str, ...]], int]
    ) -> None:
        super().__init__(number=number, reports=reports, namespaced=namespaced)
        self._start = start
        self._body = 0

    def begin(self, layers: tuple[str, ...], poll: select.poll) -> None:  # noqa: ARG002 - it has nothing to wait for
        """Start the runner."""
        self._body = self._start(layers)

    def take_death(self, pid: int, status: int, usage: resource.struct_rusage) -> None:
        """End if it was the runner."""
        if pid == self._body:
            self._ended = BodyEnded(
                tree=self._number, status=os.waitstatus_to_exitcode(status), peak_rss=usage.ru_maxrss * 1024
            )

    def obey(self, word: Word) -> None:
        """Ask the runner alone to stop: it knows what to do with its processes."""
        if word == "stop":
            os.kill(self._body, signal.SIGTERM)
            self.signal_all(signal.SIGCONT)
        else:
            super().obey(word)


def reaped() -> Iterator[tuple[int, int, resource.struct_rusage]]:
    """Reap what has ended."""
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, status, usage
