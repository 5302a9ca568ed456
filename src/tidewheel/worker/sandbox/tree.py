"""A tree of processes as /proc shows it: for signals where there is no namespace, and for what a task uses.

All that a task starts stays below its root, for the root takes in orphans, as init of its namespace or as subreaper.
A walk is a moment's view; so whoever acts on one walks again until nothing new is found.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_ROUNDS: Final = 1_000


def descendants(root: int, *, stop: bool = False, keep: int = 0) -> Iterator[int]:
    """Yield the processes below one, parents before their children, stopping each but the kept one if asked to."""
    unseen = _children(root)
    while unseen:
        pid = unseen.pop()
        if stop and pid != keep:
            _signal(pid, signal.SIGSTOP)
        yield pid
        unseen += _children(pid)


def resident(pid: int | str) -> int:
    """Return how many bytes of a process are in memory; 0 if it is gone."""
    try:
        file = os.open(f"/proc/{pid}/statm", os.O_RDONLY | os.O_CLOEXEC)  # after each function, so without ceremony
    except OSError:
        return 0
    try:
        return int(os.read(file, 200).split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0
    finally:
        os.close(file)


def cpu_seconds(pid: int) -> float:
    """Return for how long a process and those of its children that it has buried were executed; 0 if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS  # utime, stime, cutime and cstime


def threads_of_user(uid: int) -> int:
    """Return how many threads a user has in all."""
    count = 0
    for path in Path("/proc").iterdir():
        try:
            if path.name.isdigit() and path.stat().st_uid == uid:
                count += len(os.listdir(path / "task"))  # noqa: PTH208 - their number is all that is needed
        except OSError:  # it has ended meanwhile
            continue
    return count


def resident_here() -> int:
    """Return how many bytes of this process are in memory."""
    return resident("self")


def signal_all(root: int, number: signal.Signals) -> None:
    """Signal every process below a root, until no new one is found."""
    seen: set[int] = set()
    for _ in range(_ROUNDS):
        found = set(descendants(root)) - seen
        if not found:
            return
        for pid in found:
            _signal(pid, number)
        seen |= found


def kill_all(root: int, keep: int = 0) -> None:
    """Kill every process below a root and reap those that are its own children, until none is left but the kept one.

    Each is stopped before its children are looked up: what cannot fork any more cannot outrun the walk.
    """
    while True:
        found = [pid for pid in descendants(root, stop=True, keep=keep) if pid != keep]
        if not sum(_signal(pid, signal.SIGKILL) for pid in found):
            return  # none is left, or only another user's: without no-new-privileges a task can start such processes
        reap(keep)
        os.sched_yield()


def reap(keep: int = 0) -> None:
    """Reap the children of this process that have ended, but one."""
    for pid in _children(os.getpid()):
        if pid != keep:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                continue


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - names are all that is needed
            with open(f"/proc/{pid}/task/{thread}/children", "rb", buffering=0) as file:  # noqa: PTH123 - as above
                found += map(int, file.read().split())
    except OSError:  # it has ended meanwhile
        pass
    return found


def _signal(pid: int, number: signal.Signals) -> bool:
    """Signal a process, and tell whether that is allowed."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True
