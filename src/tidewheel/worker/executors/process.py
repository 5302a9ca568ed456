"""Plain functions, in a pool of processes that the launcher forks and that are used again."""

import asyncio
from pathlib import Path
from typing import Final

from tidewheel.clock import Clock
from tidewheel.errors import Invalid
from tidewheel.tasks.definition import Isolation
from tidewheel.tasks.ending import End, Ended
from tidewheel.tasks.registry import CatalogueEntry
from tidewheel.worker.execution import Execution, Order, Sink
from tidewheel.worker.executors import scratch
from tidewheel.worker.executors.groups import Groups
from tidewheel.worker.executors.idle import Idle
from tidewheel.worker.executors.launching import Launcher, LauncherKeeper, LauncherOptions
from tidewheel.worker.executors.pool import Child
from tidewheel.worker.executors.underway import EndedAtOnce, Kills
from tidewheel.worker.executors.watch import Watch

_SHARE_LEFT: Final = 0.1
_LEAST_LEFT: Final = 16 * 1024 * 1024
"""How much of its bound a run may find in use by what others left: a share, or what any first run leaves."""
_Bounded = tuple[Child, Kills | None]
"""A runner whose memory is bounded for its next run, and what counts its kills, if anything does."""


class ProcessExecutor:
    """Runs the tasks of an app whose mode is `process`."""

    def __init__(
        self, options: LauncherOptions, *, clock: Clock, directory: Path, slots: int, warm: int | None = None
    ) -> None:
        self._launchers = LauncherKeeper(options)
        self._directory = directory
        self._slots = slots
        self._warm = slots if warm is None else min(warm, slots)
        """How many runners are forked before they are needed."""
        self._watch = Watch(clock)
        self._groups = Groups(wanted=options.grounds.cgroups)
        self._idle: Idle[Child] = Idle(slots)
        self._children: set[Child] = set()
        self._count = 0

    async def open(self) -> list[CatalogueEntry]:
        """Load the app and fork the first runners; return its tasks, or raise `Invalid` with the reason."""
        launcher = await self._launchers.get()
        for _ in range(self._warm):
            self._idle.keep(await self._new_child(launcher, "standard"))
        return launcher.catalogue

    async def start(self, order: Order, sink: Sink) -> Execution:
        """Begin a run in a runner that is free, or in a new one."""
        try:
            child, kills = await self._used_child(order) or await self._fresh_child(order)
            return child.begin(order, sink, self._idle.keep, kills)
        except (Invalid, OSError) as error:
            return EndedAtOnce(Ended(end=End.ERROR, message=f"its process could not be started: {error}"))

    async def _used_child(self, order: Order) -> _Bounded | None:
        """Return a runner that is free; None if there is none, or if others have made it too large for this run."""
        child = self._idle.take(order.isolation)
        if child is None:
            return None
        if order.memory is not None and child.growth > max(order.memory * _SHARE_LEFT, _LEAST_LEFT):
            child.retire()  # its memory would be counted as this run's
            return None
        try:
            return child, await self._groups.bound(child.tree, order.memory)
        except OSError:
            child.retire()
            return None

    async def _fresh_child(self, order: Order) -> _Bounded:
        child = await self._new_child(await self._launchers.get(), order.isolation)
        try:
            return child, await self._groups.bound(child.tree, order.memory)
        except OSError:
            child.retire()
            raise

    async def close(self) -> None:
        """End everything at once."""
        self._watch.close()
        await self._launchers.close()
        await asyncio.gather(*(child.ended() for child in self._children))
        await scratch.settled()

    async def _new_child(self, launcher: Launcher, isolation: Isolation) -> Child:
        if len(self._children) >= self._slots and (dropped := self._idle.drop()) is not None:
            await dropped.ended()  # one behind other layers makes room, and is no more than asked to until it has ended
        self._count += 1
        place = scratch.Place(self._directory, f"runner-{self._count}")
        child = Child(launcher, isolation, place, self._watch)
        self._children.add(child)
        await child.open(self._children.discard)
        return child
