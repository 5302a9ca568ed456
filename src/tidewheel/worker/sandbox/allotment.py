"""How much of the machine this process may use: all of it, or what the control groups above it leave it.

A container sees the memory and the cores of its whole machine. What it may use is told by its control groups alone: by
its own and by all above it, of which the tightest counts.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import Final

from tidewheel.worker.sandbox.cgroups import groups_here

_UNIFIED: Final = ""
_MILLI: Final = 1000

Groups = Mapping[str, Path]
"""The directory of a process's group for each controller of version 1, and of version 2 under the empty name."""


def memory() -> int:
    """Return how many bytes of memory this process and those around it may use."""
    return memory_within(groups_here(), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def cpu() -> int:
    """Return how many thousandths of cores this process and those around it may use."""
    return cpu_within(groups_here(), _MILLI * len(os.sched_getaffinity(0)))


def cores() -> int:
    """Return how many processes can make use of that at once."""
    return ceil(cpu() / _MILLI)


def memory_within(groups: Groups, most: int) -> int:
    """Return how much of so many bytes some groups leave."""
    bounds = [
        *_bounds(groups.get(_UNIFIED), _bytes_in("memory.max")),
        *_bounds(groups.get("memory"), _bytes_in("memory.limit_in_bytes")),
    ]
    return min([most, *bounds])


def cpu_within(groups: Groups, most: int) -> int:
    """Return how much of so many thousandths of cores some groups leave, and at least one of them."""
    bounds = [*_bounds(groups.get(_UNIFIED), _unified_quota), *_bounds(groups.get("cpu"), _quota)]
    return max(1, min([most, *bounds]))


def _bounds(group: Path | None, read: Callable[[Path], int]) -> Iterator[int]:
    """Return what a group and those above it say; one without a bound says nothing that is a number."""
    for one in () if group is None else (group, *group.parents):
        with suppress(OSError, ValueError):
            yield read(one)


def _bytes_in(name: str) -> Callable[[Path], int]:
    return lambda group: int((group / name).read_text())


def _unified_quota(group: Path) -> int:
    quota, period = (group / "cpu.max").read_text().split()
    return _share(int(quota), int(period))


def _quota(group: Path) -> int:
    quota, period = (int((group / f"cpu.cfs_{name}_us").read_text()) for name in ("quota", "period"))
    return _share(quota, period)


def _share(quota: int, period: int) -> int:
    if quota < 0 or period <= 0:
        raise ValueError("no bound")
    return quota * _MILLI // period
