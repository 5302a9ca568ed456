"""Does the chores, each under its duty, until it is told to stop."""

import asyncio
import logging
import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from tidewheel.clock import Clock
from tidewheel.errors import Unavailable
from tidewheel.keeper.chores import Chore
from tidewheel.store.base import UpkeepStore

LEASE: Final = timedelta(seconds=5)
"""How long a duty stays with a node that has fallen silent."""

_log = logging.getLogger(__name__)


class Keeper:
    """One node's share of the chores. Any number of keepers may run; a chore done twice does no harm."""

    def __init__(self, store: UpkeepStore, chores: Sequence[Chore], clock: Clock, holder: UUID) -> None:
        self._store = store
        self._chores = chores
        self._clock = clock
        self._holder = holder
        self._random = random.Random(holder.int)  # noqa: S311 - spreads the nodes, guards nothing
        self._renew_at: dict[str, float] = {}

    async def run(self) -> None:
        """Do all chores until cancelled, and then give the duties up."""
        try:
            async with asyncio.TaskGroup() as group:
                for chore in self._chores:
                    group.create_task(self._repeat(chore), name=chore.name)
        finally:
            await self._give_up()

    async def run_once(self, chore: Chore) -> int | None:
        """Do one piece of a chore if its duty is ours or free; None if another node has it."""
        if not await self._holds(chore):
            return None
        return await chore.run_once()

    async def _holds(self, chore: Chore) -> bool:
        """Tell whether the duty is ours; it is renewed only when half of its lease has gone."""
        now, lease = self._clock.monotonic(), max(LEASE, 2 * chore.every)
        if now < self._renew_at.get(chore.name, now):
            return True
        self._renew_at.pop(chore.name, None)
        if await self._store.take_duty(chore.name, self._holder, lease) is None:
            return False
        self._renew_at[chore.name] = now + lease.total_seconds() / 2
        return True

    async def _repeat(self, chore: Chore) -> None:
        while True:
            pause = chore.every.total_seconds() * self._random.uniform(0.9, 1.1)
            try:
                done = await self.run_once(chore)
            except Unavailable as error:
                _log.warning("%s: %s", chore.name, error)
            except Exception:  # noqa: BLE001 - a bug in one chore must not end the others
                _log.exception("%s failed, and will be tried again", chore.name)
            else:
                if done:
                    _log.info("%s: %d", chore.name, done)
                if done is not None and chore.pause is not None:
                    pause = min(pause, chore.pause())
            await self._clock.sleep(pause)

    async def _give_up(self) -> None:
        try:
            for chore in self._chores:
                await self._store.release_duty(chore.name, self._holder)
        except Unavailable as error:
            _log.warning("the duties could not be given up and will pass to others by themselves: %s", error)
