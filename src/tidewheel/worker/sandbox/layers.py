"""All layers together: which there are on this machine, and how a process puts them on."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from tidewheel.tasks.definition import Isolation
from tidewheel.worker.sandbox import cgroups, kernel, landlock, limits, namespaces, tree
from tidewheel.worker.sandbox.namespaces import Ability

SESSION: Final = "session"
NO_NEW_PRIVILEGES: Final = "no-new-privileges"
LANDLOCK: Final = "landlock"
SUBREAPER: Final = "subreaper"
_STRICT_TCP: Final = "landlock-tcp"


class Confinement(msgspec.Struct, frozen=True, kw_only=True):
    """How one tree of processes is to be confined."""

    isolation: Isolation
    scratch: str
    """The only directory that it may write to."""


class Grounds(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for all tasks of a worker."""

    hidden: tuple[str, ...] = ()
    """Files and directories that no task may read."""
    writable: tuple[str, ...] = ()
    """Files and directories that tasks may write to besides their scratch directory."""
    namespaces: bool = True
    """Whether to use namespaces where the kernel offers them."""
    cgroups: bool = True
    """Whether to use control groups where the worker may make them."""


class Sandbox:
    """What a launcher finds out once, for all of its children."""

    def __init__(self, grounds: Grounds) -> None:
        self._ability = namespaces.probe() if grounds.namespaces else Ability.NONE
        self._user = (os.getuid(), os.getgid())
        self._others = 0 if self._ability is Ability.USER else tree.threads_of_user(os.getuid())
        version = landlock.version()
        self._landlock, self._closes_tcp = version > 0, landlock.knows_tcp(version)
        devices = landlock.writing(map(Path, (*landlock.DEVICES, *grounds.writable)))
        hidden = [Path(path) for path in grounds.hidden]
        self._standard = [*landlock.reading_all_but(hidden), *devices]
        self._strict = [*landlock.reading_but(_own_files(), hidden), *devices]

    def has_namespaces(self, isolation: Isolation) -> bool:
        """Tell whether a tree is a namespace of its own, so that its end is certain."""
        return isolation != "none" and self._ability is not Ability.NONE

    def lacking_for_strict(self) -> str | None:
        """Return why a tree cannot have all that strict stands for on this machine; None if it can."""
        if not self._landlock:
            return "the kernel has no Landlock, or it is off, so files cannot be kept from a task"
        if self._ability is Ability.NONE and not self._closes_tcp:
            return "the kernel has neither namespaces for this user nor Landlock for TCP, so the network stays open"
        return None

    def fork(self, isolation: Isolation) -> int:
        """Fork a process that then must call `confine`."""
        ability = self._ability if isolation != "none" else Ability.NONE
        return namespaces.fork(ability, strict=isolation == "strict")

    def confine(self, wish: Confinement) -> tuple[str, ...]:
        """Put all layers on that are wished for and can be had, and return their names."""
        os.setsid()
        if wish.isolation == "none":
            kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
            return (SESSION, SUBREAPER)
        strict = wish.isolation == "strict"
        entered = namespaces.enter(self._ability, self._user, strict=strict)
        if not entered:
            kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        limits.apply(others=self._others)
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        kernel.drop_capabilities()
        layers = [SESSION, *(entered or [SUBREAPER]), "limits", NO_NEW_PRIVILEGES, "no-capabilities"]
        if self._landlock:
            layers += self._lock(wish.scratch, strict=strict, cut_off="network-namespace" in entered)
        return tuple(layers)

    def _lock(self, scratch: str, *, strict: bool, cut_off: bool) -> Sequence[str]:
        rules = [*(self._strict if strict else self._standard), *landlock.writing([Path(scratch)])]
        if strict:  # the tree's own /proc, if it has one, is not the one that was there at the start
            rules += landlock.reading([Path("/proc")])
        landlock.restrict(rules, tcp=not strict or cut_off, abstract_sockets=not strict)
        return (LANDLOCK, _STRICT_TCP) if strict and not cut_off and self._closes_tcp else (LANDLOCK,)


def _own_files() -> list[Path]:
    """Return what strict tasks may read: the system's programs and libraries, the interpreter and the app."""
    places = {*landlock.SYSTEM, sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path}
    return [Path(place) for place in sorted(places) if place]


class Layer(msgspec.Struct, frozen=True):
    """One layer on this machine."""

    name: str
    active: bool
    why: str


def report() -> list[Layer]:
    """Say which layers tasks get on this machine, and why others are missing."""
    ability, version = namespaces.probe(), landlock.version()
    has = ability is not Ability.NONE
    how = {
        Ability.ROOT: "the worker may make namespaces",
        Ability.USER: "by way of a user namespace",
        Ability.NONE: "the kernel allows no namespaces to this user; processes are found through /proc instead",
    }[ability]
    return [
        Layer(SESSION, active=True, why="each task has a session and process group of its own"),
        Layer("parent-death", active=True, why="the kernel kills each process with its parent"),
        Layer("environment", active=True, why="tasks see an allow-list of the worker's environment"),
        Layer("limits", active=True, why="core dumps off, open files and private memory bounded"),
        Layer(NO_NEW_PRIVILEGES, active=True, why="set-user-id programs give no rights, and capabilities are dropped"),
        Layer("pid-namespace", active=has, why=how),
        Layer("network-namespace", active=has, why=f"{how}; only for strict tasks"),
        Layer(LANDLOCK, active=version > 0, why=f"version {version}" if version else "the kernel has it not, or off"),
        _report_groups(),
    ]


def _report_groups() -> Layer:
    if cgroups.find_home() is None:
        return Layer(cgroups.LAYER, active=False, why="no group was handed over; memory is watched by sampling instead")
    return Layer(cgroups.LAYER, active=True, why="tasks with a bound on their memory get a group of their own")
