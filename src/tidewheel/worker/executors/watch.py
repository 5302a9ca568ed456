"""Watching what trees of processes use, from outside, where the kernel does not bound it for us."""

import asyncio
from pathlib import Path
from typing import Final

from tidewheel.clock import Clock
from tidewheel.tasks.ending import End
from tidewheel.worker.executors.underway import Underway
from tidewheel.worker.sandbox import tree
from tidewheel.worker.sandbox.limits import MAX_PROCESSES

_EVERY: Final = 0.1
_OOM_EVERY: Final = 10
"""Looks between two readings of how often the kernel has killed for want of memory."""


class Watch:
    """Looks at every run some times a second, and ends those that have grown too large or too many."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._runs: set[Underway] = set()
        self._looking: asyncio.Task[None] | None = None
        self._oom_before = self._oom_last = _oom_kills()

    def add(self, run: Underway) -> None:
        """Watch a run until it is removed."""
        self._runs.add(run)
        if self._looking is None or self._looking.done():
            self._oom_before = self._oom_last = _oom_kills()
            self._looking = asyncio.get_running_loop().create_task(self._look())

    def remove(self, run: Underway) -> None:
        """Watch it no more."""
        self._runs.discard(run)

    def recent_oom_kills(self) -> int:
        """Return how many processes the kernel has killed for want of memory in the last second or two."""
        return _oom_kills() - self._oom_before

    def close(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()

    async def _look(self) -> None:
        looks = 0
        while self._runs:
            await self._clock.sleep(_EVERY)
            looks += 1
            if looks % _OOM_EVERY == 0:
                self._oom_before, self._oom_last = self._oom_last, _oom_kills()
            for run in list(self._runs):
                if (root := run.holder.pid) is not None:
                    _judge(run, root)


def _judge(run: Underway, root: int) -> None:
    used = 0
    for count, pid in enumerate(tree.descendants(root), 1):
        if count > MAX_PROCESSES:
            run.kill(End.ERROR, f"too many processes: more than {MAX_PROCESSES}")
            return
        if run.order.memory is not None:
            used += tree.resident(pid)
    if run.order.memory is not None and used > run.order.memory:
        run.kill(End.OOM, f"used {used} bytes of memory, and {run.order.memory} were allowed")
    elif run.kills is not None and run.kills():  # the kernel ends one process; the others would go on without it
        run.kill(End.OOM, f"wanted more than the {run.order.memory} bytes of memory that were allowed")


def _oom_kills() -> int:
    for line in Path("/proc/vmstat").read_text().splitlines():
        if line.startswith("oom_kill "):
            return int(line.split()[1])
    return 0
