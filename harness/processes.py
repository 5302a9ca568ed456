"""Processes as the kernel shows them: whose child each is, what part of a worker it plays, and when it dies."""

import contextlib
import ctypes
import os
import re
import select
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, cast

from harness.witness import pid_space

Role = Literal["supervisor", "runner", "host", "keeper", "launcher", "task"]

_PROC: Final = Path("/proc")
_LINE: Final = 4096
_SET_CHILD_SUBREAPER: Final = 36
_PART: Final = re.compile(r"tidewheel\.(?:cli\.children|worker)\.(runner|host|keeper|launcher)\b")


class Process(NamedTuple):
    """One process. Number and start together name it for good, for numbers are used again."""

    pid: int
    start: int
    """In ticks of the kernel since boot."""
    parent: int
    state: str
    """`R`, `S`, `T` (stopped), `Z` (dead, and only waiting to be reaped), …"""

    @property
    def name(self) -> tuple[int, int]:
        return self.pid, self.start

    @property
    def dead(self) -> bool:
        return self.state in "ZX"


def adopt_orphans(*, on: bool) -> None:
    """Let processes whose parent dies become children of this one, so that none gets out of sight."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SET_CHILD_SUBREAPER, int(on), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def look_at(pid: int) -> Process | None:
    """Return a process as it is now; None if there is none."""
    try:
        file = os.open(f"{_PROC}/{pid}/stat", os.O_RDONLY)  # whoever looks at all processes does this very often
    except FileNotFoundError:
        return None
    try:
        text = os.read(file, _LINE)
    except ProcessLookupError:
        return None
    finally:
        os.close(file)
    # The name of the program is in parentheses, and may itself contain some.
    fields = text.rpartition(b")")[2].split()
    return Process(pid=pid, start=int(fields[19]), parent=int(fields[1]), state=fields[0].decode())


def all_processes() -> list[Process]:
    """Return every process of the machine that we can see."""
    numbers = (int(entry.name) for entry in os.scandir(_PROC) if entry.name.isdigit())
    return [process for number in numbers if (process := look_at(number)) is not None]


def descendants(of: int, among: Iterable[Process] | None = None) -> list[Process]:
    """Return all processes below one, parents before their children."""
    children: dict[int, list[Process]] = {}
    for process in all_processes() if among is None else among:
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    unseen = [of]
    while unseen:
        below = children.get(unseen.pop(0), [])
        found += below
        unseen += [process.pid for process in below]
    return found


def command_of(pid: int) -> str:
    """Return the words with which a process was started."""
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def title_of(pid: int) -> str:
    """Return the words with which a process was started, and the name it gave itself since."""
    try:
        return f"{command_of(pid)} [{(_PROC / str(pid) / 'comm').read_text().strip()}]"
    except (FileNotFoundError, ProcessLookupError):
        return ""


def numbered(pid: int) -> tuple[int, int]:
    """Return the namespace that a process lives in, and its number there, as it would tell them itself."""
    try:
        status = (_PROC / str(pid) / "status").read_text()
        inner = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[-1]
        return pid_space(pid), int(inner)
    except (FileNotFoundError, ProcessLookupError):
        return 0, pid


def roles(supervisor: int, tree: Sequence[Process], titles: Mapping[int, str]) -> dict[int, Role]:
    """Return the part that each process of a worker plays, parents first.

    The parts say in their command line or in their name who they are; what is below a launcher, or below a host that
    has none, is a task.
    """
    found: dict[int, Role] = {supervisor: "supervisor"}
    for process in tree:
        above = found.get(process.parent)
        if above in ("launcher", "task"):
            found[process.pid] = "task"
        elif (named := _named(titles.get(process.pid, ""))) is not None:
            found[process.pid] = named
        elif above == "host":
            found[process.pid] = "task"
    return found


def _named(title: str) -> Role | None:
    found = _PART.search(title)
    return None if found is None else cast("Role", found[1])


def send(process: Process, number: signal.Signals) -> bool:
    """Send a signal to this very process; False if it is gone, even if its number is in use again."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        now = look_at(process.pid)  # after the handle was taken: it cannot change any more
        if now is None or now.start != process.start or now.dead:
            return False
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


class Watch:
    """Tells of the deaths of processes, also of those that are not our children."""

    def __init__(self) -> None:
        self._handles: dict[int, Process] = {}
        self._poll = select.poll()

    def add(self, process: Process) -> None:
        """Watch a process; one that is dead by now is told of at once."""
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(process.pid)
            self._handles[handle] = process
            self._poll.register(handle, select.POLLIN)

    def watches(self, pid: int) -> bool:
        """Tell whether the death of a process would be told of."""
        return any(process.pid == pid for process in list(self._handles.values()))

    def deaths(self, within: float) -> Iterator[Process]:
        """Wait until someone dies, or until the time is over, and yield who died."""
        for handle, _ in self._poll.poll(int(within * 1000)):
            self._poll.unregister(handle)
            os.close(handle)
            yield self._handles.pop(handle)

    def close(self) -> None:
        for handle in self._handles:
            os.close(handle)
        self._handles.clear()
