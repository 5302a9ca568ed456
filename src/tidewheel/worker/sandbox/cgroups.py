"""Control groups: the kernel itself bounds the memory and the processes of a whole tree, and counts what it killed.

Version 2 where the worker's own group was handed over to it (`Delegate=` of systemd, a container with groups of its
own); version 1 where its directories can be written to. A group that has processes may not hand resources on to groups
below it, except the very first one; so a worker that was handed one first moves into a group below it (`make_room`).
"""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from tidewheel.worker.sandbox.limits import MAX_THREADS

LAYER: Final = "cgroup"
LEAF: Final = "worker"
"""The group of the worker's own processes, below the one that was handed over."""
WANTED: Final = ("memory", "pids")
_UNIFIED: Final = ""
_PREFIX: Final = "tide-"
_NO_BOUND: Final = {"memory.max": "max", "memory.limit_in_bytes": "-1"}
_KILLS: Final = ("memory.events", "memory.oom_control")


class Home(msgspec.Struct, frozen=True):
    """The directories in which groups can be made: one in version 2, one for each controller in version 1."""

    directories: tuple[str, ...]


class Group(msgspec.Struct, frozen=True):
    """One group: a directory below each of its home's."""

    directories: tuple[str, ...]

    def make(self) -> None:
        """Make it, with bounds that hold for every task."""
        for directory in self.directories:
            os.mkdir(directory)  # noqa: PTH102 - no parents, and no forgiveness
        self._write("pids.max", str(MAX_THREADS))
        self._write("memory.swap.max", "0")  # what is bounded must not go on in swap

    def take_in(self, pid: int) -> None:
        """Move a process into it; what it starts from now on is in it, too."""
        for directory in self.directories:
            with contextlib.suppress(ProcessLookupError):
                Path(directory, "cgroup.procs").write_text(str(pid))

    def bound(self, memory: int | None) -> None:
        """Set how many bytes all of its processes together may use."""
        for name, no_bound in _NO_BOUND.items():
            self._write(name, no_bound if memory is None else str(memory))

    def kills(self) -> int:
        """Return how many of its processes the kernel has killed because they used too much."""
        for directory in self.directories:
            for name in _KILLS:
                with contextlib.suppress(OSError):
                    return _count_in(Path(directory, name).read_text())
        return 0

    def remove(self) -> None:
        """Remove it; what is still in use stays."""
        for directory in self.directories:
            with contextlib.suppress(OSError):
                os.rmdir(directory)  # noqa: PTH106 - its files are none

    def _write(self, name: str, value: str) -> None:
        for directory in self.directories:
            if os.path.exists(f"{directory}/{name}"):  # noqa: PTH110 - one of two versions has it
                Path(directory, name).write_text(value)


def group_of(home: Home, number: int) -> Group:
    """Return a group that only this process makes."""
    return Group(tuple(f"{directory}/{_PREFIX}{os.getpid()}-{number}" for directory in home.directories))


def find_home(wanted: Sequence[str] = WANTED) -> Home | None:
    """Return where this process may make groups that have what is wanted; None if it may not."""
    own = groups_here()
    unified = own.get(_UNIFIED)
    if unified is not None and (place := _handed_over(unified, wanted)) is not None:
        return Home((str(place),))
    places = [own.get(name) for name in wanted]
    if any(place is None or not os.access(place, os.W_OK) for place in places):
        return None
    return Home(tuple(dict.fromkeys(map(str, places))))


def make_room(wanted: Sequence[str] = WANTED) -> None:
    """Move this process into a group below its own, if that was handed over to it and would else be of no use."""
    own = groups_here().get(_UNIFIED)
    if own is None or own.name == LEAF or _is_first(own) or not _offers(own, wanted) or not _is_ours(own):
        return
    with contextlib.suppress(OSError):
        leaf = own / LEAF
        leaf.mkdir(exist_ok=True)
        (leaf / "cgroup.procs").write_text("0")


def sweep(home: Home) -> None:
    """Remove groups that workers left behind which were killed."""
    for directory in home.directories:
        for path in Path(directory).glob(f"{_PREFIX}*-*"):
            pid = path.name.removeprefix(_PREFIX).partition("-")[0]
            if pid.isdecimal() and not Path("/proc", pid).exists():
                with contextlib.suppress(OSError):
                    path.rmdir()


def _handed_over(own: Path, wanted: Sequence[str]) -> Path | None:
    """Return the group below which this process may make others with what is wanted."""
    place = own.parent if own.name == LEAF else own
    if not _offers(place, wanted) or not os.access(place, os.W_OK):
        return None
    try:
        (place / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in wanted))
    except OSError:  # it has processes, or belongs to someone else
        return None
    return place


def _offers(group: Path, wanted: Sequence[str]) -> bool:
    try:
        return set(wanted) <= set((group / "cgroup.controllers").read_text().split())
    except OSError:
        return False


def _is_first(group: Path) -> bool:
    """Tell whether a group is the first of the machine, which has no type."""
    return not (group / "cgroup.type").exists()


def _is_ours(group: Path) -> bool:
    """Tell whether a group was handed over to us: systemd marks such groups; a container's first one is its own."""
    try:
        return os.getxattr(group, "user.delegate") == b"1"
    except OSError:
        return Path("/proc/self/cgroup").read_text().rpartition("0::")[2].strip() == "/"


def groups_here() -> dict[str, Path]:
    """Return the directory of this process's group for each controller of version 1, and of version 2."""
    try:
        groups = Path("/proc/self/cgroup").read_text().splitlines()
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return {}
    return own_groups(groups, mounts)


def own_groups(groups: Sequence[str], mounts: Sequence[str]) -> dict[str, Path]:
    """Return the same from what the kernel says of a process."""
    paths = {name: path for _, names, path in (line.split(":", 2) for line in groups) for name in names.split(",")}
    found: dict[str, Path] = {}
    for line in mounts:
        left, _, right = line.partition(" - ")
        root, point = left.split()[3:5]
        kind, _, options = right.split(" ", 2)
        names = [_UNIFIED] if kind == "cgroup2" else options.split(",") if kind == "cgroup" else []
        for name in names:
            path = paths.get(name)
            if path is not None and Path(path).is_relative_to(root):
                found[name] = Path(point) / Path(path).relative_to(root)
    return found


def _count_in(events: str) -> int:
    return next((int(line.split()[1]) for line in events.splitlines() if line.startswith("oom_kill ")), 0)
