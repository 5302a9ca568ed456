"""All numbers of a worker: the supervisor's own, those of its children, and what children that are gone had counted."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from tidewheel.observe import Numbers, Registry, merged
from tidewheel.observe.catalogue import (
    LEASES_LOST,
    PROCESS_CPU,
    PROCESS_FILES,
    PROCESS_MEMORY,
    PROCESS_STARTS,
    RENEWALS,
)
from tidewheel.worker.members import Member

ANSWER_WITHIN: Final = 0.5
"""Seconds for a child to say what it has counted; then what it said before is shown."""
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_USER_TIME: Final = 11
"""Where the processor time stands in `/proc/…/stat`, counted from what follows the name."""

Read = Callable[[Path], float]


class Gathering:
    """Asks the children when someone looks."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = members
        self._gone: list[Numbers] = []
        self._registry = Registry()
        self._starts = self._registry.counter(PROCESS_STARTS)
        self._renewals = self._registry.counter(RENEWALS)
        self._lost = self._registry.counter(LEASES_LOST)
        self._lost.add(value=0)
        for metric, read in ((PROCESS_MEMORY, _memory), (PROCESS_CPU, _cpu), (PROCESS_FILES, _files)):
            self._registry.gauge(metric, partial(self._of_processes, read))

    async def all(self) -> list[Numbers]:
        """Return all numbers, added up."""
        await asyncio.gather(*(member.ask(ANSWER_WITHIN) for member in self.members))
        return merged([self._registry.numbers(), self._gone, *(member.counted for member in self.members)])

    def started(self, member: Member) -> None:
        """Count a child that was started."""
        self._starts.add(member.spec.setup.part)

    def keep(self, member: Member) -> None:
        """Keep what a child had counted that is gone, for a counter never falls; what it had busy, it has no more."""
        last = [numbers for numbers in member.counted if numbers.metric.kind != "gauge"]
        self._gone = merged([self._gone, last])
        member.counted = ()

    def beat(self, *, answered: bool) -> None:
        """Count a beat."""
        self._renewals.add("ok" if answered else "unanswered")

    def lost_lease(self) -> None:
        """Count a child that is ended because of its lease."""
        self._lost.add()

    def _of_processes(self, read: Read) -> Mapping[tuple[str, ...], float]:
        pids = {"supervisor": os.getpid(), **{member.spec.setup.part: member.pid for member in self.members}}
        found: dict[tuple[str, ...], float] = {}
        for name, pid in pids.items():
            with suppress(OSError):  # gone, or not yet there
                found[name,] = read(Path(f"/proc/{pid}"))
        return found


def _memory(place: Path) -> float:
    return int((place / "statm").read_text().split()[1]) * _PAGE


def _cpu(place: Path) -> float:
    fields = (place / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[_USER_TIME]) + int(fields[_USER_TIME + 1])) / _TICKS


def _files(place: Path) -> float:
    return len(list((place / "fd").iterdir()))
