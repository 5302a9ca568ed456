"""Plain functions, in a pool of processes that the launcher forks and that are used again."""

import asyncio
import os
from pathlib import Path

from tidewheel.clock import Clock
from tidewheel.errors import Invalid
from tidewheel.tasks.definition import Isolation
from tidewheel.tasks.ending import End, Ended
from tidewheel.tasks.registry import CatalogueEntry
from tidewheel.worker.execution import Execution, Order, Sink
from tidewheel.worker.executors import scratch
from tidewheel.worker.executors.launching import Launcher, LauncherOptions
from tidewheel.worker.executors.pool import Child
from tidewheel.worker.executors.underway import EndedAtOnce
from tidewheel.worker.executors.watch import Watch
from tidewheel.worker.sandbox.layers import Confinement


class ProcessExecutor:
    """Runs the tasks of an app whose mode is `process`."""

    def __init__(
        self, options: LauncherOptions, *, clock: Clock, directory: Path, slots: int, warm: int | None = None
    ) -> None:
        self._options = options
        self._scratch = str(directory)
        self._slots = slots
        self._warm = slots if warm is None else min(warm, slots)
        """How many runners are forked before they are needed."""
        self._watch = Watch(clock)
        self._launcher: Launcher | None = None
        self._launching = asyncio.Lock()
        self._idle: dict[Isolation, list[Child]] = {"standard": [], "strict": [], "none": []}
        self._children: set[Child] = set()
        self._count = 0

    async def open(self) -> list[CatalogueEntry]:
        """Load the app and fork the first runners; return its tasks, or raise `Invalid` with the reason."""
        launcher = await self._living_launcher()
        for _ in range(self._warm):
            self._idle["standard"].append(await self._new_child(launcher, "standard"))
        return launcher.catalogue

    async def start(self, order: Order, sink: Sink) -> Execution:
        """Begin a run in a runner that is free, or in a new one."""
        child = self._free_child(order.isolation)
        try:
            child = child or await self._new_child(await self._living_launcher(), order.isolation)
        except (Invalid, OSError) as error:
            return EndedAtOnce(Ended(end=End.ERROR, message=f"its process could not be started: {error}"))
        run = child.begin(order, sink)
        child.free.add_done_callback(lambda free: self._take_back(child, reusable=free.result()))
        return run

    async def close(self) -> None:
        """End everything at once."""
        self._watch.close()
        if self._launcher is not None:
            await self._launcher.close()
        await asyncio.gather(*(child.ended() for child in self._children))
        await scratch.settled()

    def _free_child(self, isolation: Isolation) -> Child | None:
        idle = self._idle[isolation]
        while idle:
            child = idle.pop()
            if not child.tree.gone.done() and child.launcher.lives:
                return child
        return None

    async def _new_child(self, launcher: Launcher, isolation: Isolation) -> Child:
        self._make_room()
        self._count += 1
        directory = f"{self._scratch}/runner-{self._count}"
        os.mkdir(directory, 0o700)  # noqa: PTH102 - text is what is needed
        child = Child(launcher, Confinement(isolation=isolation, scratch=directory), self._watch)
        self._children.add(child)
        await child.open(self._children.discard)
        return child

    def _make_room(self) -> None:
        """End a runner that waits behind other layers, if there are as many as may run at once."""
        if len(self._children) < self._slots:
            return
        for idle in self._idle.values():
            if idle:
                idle.pop(0).retire()
                return

    def _take_back(self, child: Child, *, reusable: bool) -> None:
        if reusable:
            self._idle[child.isolation].append(child)

    async def _living_launcher(self) -> Launcher:
        async with self._launching:
            if self._launcher is None or not self._launcher.lives:
                self._launcher = await Launcher.open(self._options)
            return self._launcher
