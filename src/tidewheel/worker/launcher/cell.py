"""A cell: a tree in which commands run, one after the other, and nothing of one is left when the next begins.

Making a tree costs several times more than executing a program in it; and nothing but processes could carry anything
from one command to the next, for none of them may change the cell: they have no rights to.
"""

import os
import resource
import select
import signal
import socket
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

import msgspec

from tidewheel.worker.launcher.init import Init
from tidewheel.worker.launcher.messages import BodyEnded, CellRequest, Exited, Program
from tidewheel.worker.launcher.receiving import receive
from tidewheel.worker.sandbox.limits import allow_data
from tidewheel.worker.sandbox.parent_death import die_with_parent

_ALL_SIGNALS: Final = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


Start = Callable[[str, Program, Sequence[int]], int]
"""Executes a program from a path, or raises why not."""


class Missing(Exception):
    """There is no such executable."""


class CellInit(Init):
    """The root of a cell. The host speaks to it over a channel of its own, so that programs and words keep order."""

    def __init__(self, *, number: int, reports: socket.socket, namespaced: bool, channel: socket.socket) -> None:
        super().__init__(number=number, reports=reports, namespaced=namespaced)
        self._channel = channel
        self._layers: tuple[str, ...] = ()
        self._decode = msgspec.json.Decoder(CellRequest).decode
        self._body: int | None = None
        self._used = 0.0

    def begin(self, layers: tuple[str, ...], poll: select.poll) -> None:
        """Listen to the host."""
        self._layers = (*layers, "scratch", "environment")
        poll.register(self._channel, select.POLLIN)

    def take_message(self) -> None:
        """Do what the host asks for; end if it has closed the channel."""
        data, fds = receive(self._channel)
        try:
            if not data:
                self._ended = BodyEnded(tree=self._number, status=0)
                return
            request = self._decode(data)
            if isinstance(request, Program):
                self._start(request, fds)
            elif self._body is not None:
                self.obey(request.word)
        finally:
            for fd in fds:
                os.close(fd)

    def take_death(self, pid: int, status: int, usage: resource.struct_rusage) -> None:
        """Clear up after a program, and tell the host."""
        if pid != self._body:
            return
        self._body = None
        self.end_all()
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        before, self._used = self._used, children.ru_utime + children.ru_stime
        self._say(
            Exited(
                layers=self._layers,
                status=os.waitstatus_to_exitcode(status),
                cpu_seconds=self._used - before,
                peak_rss=usage.ru_maxrss * 1024,
            )
        )

    def _start(self, program: Program, standard: Sequence[int]) -> None:
        if program.data is not None:
            allow_data(program.data)
        try:
            self._body = start_command(program, standard, _spawn if self._namespaced else _fork)
        except Missing as error:
            self._say(Exited(layers=self._layers, missing=str(error)))
        if program.data is not None:
            allow_data(None)

    def _say(self, exited: Exited) -> None:
        self._channel.send(msgspec.json.encode(exited))


def start_command(program: Program, standard: Sequence[int], start: Start) -> int:
    """Start a command with these descriptors as stdin, stdout and stderr, and return its pid."""
    try:
        os.chdir(program.cwd)
    except OSError as error:
        raise Missing(f"cwd {program.cwd!r}: {error.strerror}") from error
    refused: OSError | None = None
    for path in _candidates(program.argv[0], program.env["PATH"]):
        try:
            return start(path, program, standard)
        except PermissionError as error:  # another place may have one that it may execute
            refused = error
        except OSError as error:
            refused = error
            break
    why = "it is not on the PATH" if refused is None else refused.strerror
    raise Missing(f"{program.argv[0]!r} cannot be executed: {why}")


def _spawn(path: str, program: Program, standard: Sequence[int]) -> int:
    return os.posix_spawn(
        path,
        program.argv,
        program.env,
        file_actions=[(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(standard)],
        setsid=True,
        setsigmask=[],
        setsigdef=_ALL_SIGNALS,
    )


def _fork(path: str, program: Program, standard: Sequence[int]) -> int:
    """Do the same for a command that no namespace ends with its init: it asks the kernel to, which takes a fork."""
    init = os.getpid()
    why, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(path, program, standard, init, tell)
    os.close(tell)
    with open(why, "rb", buffering=0) as file:  # noqa: PTH123 - the other end is closed when the program is executed
        errno = file.read()
    if errno:
        os.waitpid(pid, 0)
        raise OSError(int(errno), os.strerror(int(errno)))
    return pid


def _become(path: str, program: Program, standard: Sequence[int], init: int, tell: int) -> NoReturn:
    try:
        die_with_parent(lambda: os.getppid() == init)
        os.setsid()
        for number, fd in enumerate(standard):
            os.dup2(fd, number)
        for number in _ALL_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.execve(path, program.argv, program.env)  # noqa: S606 - that is what it is for
    except OSError as error:
        os.write(tell, str(error.errno).encode())
    finally:
        os._exit(70)


def _candidates(name: str, path: str) -> list[str]:
    """Return where a program may be, as a shell would look for it."""
    if "/" in name:
        return [name]
    places = [f"{directory or '.'}/{name}" for directory in path.split(":")]
    return [place for place in places if os.access(place, os.X_OK)]
