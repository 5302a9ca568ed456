"""What of its process a function may change such that the next one in it would suffer; looked at after each.

Folder, variables and standard streams are made anew for each function. The rest is compared, in some millionths of a
second, and a process that is no longer what it was is replaced. What functions change in Python's own objects, such as
modules, is not seen.
"""

import gc
import importlib
import locale
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import Any, Final, NamedTuple

_SIGNALS: Final = tuple(
    getattr(signal, f"SIG{name}") for name in ("HUP", "INT", "USR1", "USR2", "PIPE", "ALRM", "CHLD")
)
"""Those that programs use, but for SIGTERM, which is set for each function; a look at all takes three times as long."""
_LIMITS: Final = tuple(
    getattr(resource, f"RLIMIT_{name}") for name in ("AS", "FSIZE", "NOFILE", "CPU", "NPROC", "DATA", "STACK", "CORE")
)
"""Those that programs use, too."""
_TIMERS: Final = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_ROOM: Final = 64
"""How many files may have been left open before it counts."""


getsignal: Final[Callable[[int], Any]] = importlib.import_module("_signal").getsignal
"""What `signal.getsignal` calls; that turns each answer into an enumeration, which takes longer than all else here."""


class Bearing(NamedTuple):
    """How a process stands."""

    umask: int
    nice: int
    handlers: tuple[Any, ...]
    blocked: frozenset[int]
    timers: tuple[bool, ...]
    limits: tuple[tuple[int, int], ...]
    processors: set[int]
    locale: str
    output: tuple[tuple[int, int] | None, ...]
    """What stdout and stderr are, by device and number."""
    hooks: tuple[Any, ...]
    open_files: int
    """In steps of `_ROOM`, by the lowest number that is free."""


def bearing() -> Bearing:
    """Look at this process. No other thread of it may make files meanwhile."""
    umask = os.umask(0o077)
    os.umask(umask)
    return Bearing(
        umask=umask,
        nice=os.getpriority(os.PRIO_PROCESS, 0),
        handlers=tuple(getsignal(number) for number in _SIGNALS),
        blocked=frozenset(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        timers=tuple(signal.getitimer(which)[0] > 0 for which in _TIMERS),
        limits=tuple(resource.getrlimit(which) for which in _LIMITS),
        processors=os.sched_getaffinity(0),
        locale=locale.setlocale(locale.LC_ALL, None),
        output=(_file(1), _file(2)),
        hooks=(sys.gettrace(), sys.getprofile(), gc.isenabled()),
        open_files=_lowest_free() // _ROOM,
    )


def _file(fd: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(fd)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _lowest_free() -> int:
    try:
        free = os.dup(0)
    except OSError:
        return sys.maxsize  # there is none, or nothing to copy
    os.close(free)
    return free
