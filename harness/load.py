"""A mixed load to break things under: short and long, in the loop, in processes, as commands, some cancelled."""

import asyncio
import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from harness.arena import Arena
from harness.cluster import LEASE
from harness.kinds import spec_of
from tidewheel.model.job import JobSpec
from tidewheel.tasks.definition import COMMAND

LIMIT_KEY: Final = "narrow"
LIMIT: Final = 2
SHORT: Final = (0.05, 0.8)
LONG: Final = (3 * LEASE, 5 * LEASE)


class Load:
    """Submits a few jobs a time, some to run after others, repeats some submits under their keys, and cancels some."""

    def __init__(self, arena: Arena, rng: random.Random, *, rate: float = 20.0, commands: bool = True) -> None:
        self._arena = arena
        self._rng = rng
        self._rate = rate
        self._commands = commands
        self._number = 0
        self._latest: list[UUID] = []
        self.acknowledged = 0
        """Jobs that the store has taken."""

    async def run(self, until: Callable[[], bool]) -> None:
        """Go on until told."""
        while not until():
            specs = [self._spec() for _ in range(self._rng.randint(1, 4))]
            jobs = self._latest = await self._arena.client.submit(specs)
            self.acknowledged += len(jobs)
            if self._rng.random() < 0.05:
                await self._arena.client.submit(specs)  # as if the answer had been lost
            if self._rng.random() < 0.15:
                await self._cancel(self._rng.choice(jobs))
            await asyncio.sleep(len(specs) / self._rate)

    async def _cancel(self, job_id: UUID) -> None:
        await asyncio.sleep(self._rng.uniform(0.0, 1.0))
        await self._arena.client.cancel(job_id)

    def _spec(self) -> JobSpec:
        kind, args = self._pick()
        wishes: dict[str, Any] = {}
        if self._rng.random() < 0.2:
            wishes["delay"] = timedelta(milliseconds=self._rng.randint(1, 3000))
        if self._rng.random() < 0.2:
            wishes["limit_keys"] = (LIMIT_KEY,)
        if self._latest and self._rng.random() < 0.1:
            wishes["after"] = (self._rng.choice(self._latest),)
        self._number += 1
        return spec_of(kind, self._arena.memory, f"load-{self._number}", args, **wishes)

    def _pick(self) -> tuple[str, dict[str, Any]]:
        choice = self._rng.random()
        # Some outlast the lease of a lost worker: else what it leaves behind would end before anyone could notice.
        seconds = round(self._rng.uniform(*(LONG if self._rng.random() < 0.15 else SHORT)), 2)
        if choice < 0.5:
            return "quick", {}
        if choice < 0.7:
            return "doze", {"seconds": seconds}
        if choice < 0.85:
            return "nap", {"seconds": seconds}
        if choice < 0.93 and self._commands:
            return COMMAND, {"seconds": seconds}
        return "stumble", {"times": self._rng.randint(0, 2)}
