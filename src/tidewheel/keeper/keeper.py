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
from tidewheel.keeper.record import ChoreRecord
from tidewheel.observe.own_log import note
from tidewheel.store.keeping import DutyStore

LEASE: Final = timedelta(seconds=3.3)
"""How long a node that has fallen silent keeps its duties."""
BEAT: Final = timedelta(seconds=1.5)
"""How often a node says that it is there and hears what its duties are: the next one is found within 5 s of a death."""
STAND_BY: Final = timedelta(seconds=10)
"""How often a node asks that is not needed, for there are enough others."""
LOOK: Final = timedelta(seconds=0.95)
"""How often a node looks what is wanted."""
LEAST_PAUSE: Final = 0.01
"""So that a chore which is always wanted lets others have their turn."""

_log = logging.getLogger(__name__)


class Keeper:
    """One node's share of the chores. Any number of keepers may run; a chore done twice does no harm."""

    def __init__(self, store: DutyStore, chores: Sequence[Chore], clock: Clock, node: UUID) -> None:
        self.records = {chore.name: ChoreRecord() for chore in chores}
        self._store = store
        self._chores = chores
        self._clock = clock
        self._node = node
        self._random = random.Random(node.int)  # noqa: S311 - spreads the nodes, guards nothing
        self._held: frozenset[str] = frozenset()
        self._held_until = float("-inf")
        self._stands_by = False
        self._calls = {chore.name: asyncio.Event() for chore in chores}

    async def run(self) -> None:
        """Do all chores until cancelled, and then give the duties up."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._beat_again_and_again(), name="beat")
                group.create_task(self._look_again_and_again(), name="look")
                for chore in self._chores:
                    group.create_task(self._repeat(chore), name=chore.name)
        finally:
            await asyncio.gather(*(chore.stop(0.0) for chore in self._chores))
            await self._give_up()

    async def beat(self) -> None:
        """Say that this node is there, and hear which duties are its own; those that are new are done at once."""
        now = self._clock.monotonic()
        duties = await self._store.share_duties(self._node, [chore.name for chore in self._chores], LEASE)
        self._stands_by = duties is None
        before = self._held if now < self._held_until else frozenset[str]()
        self._held = frozenset(duty.name for duty in duties or ())
        self._held_until = now + LEASE.total_seconds()
        for name in self._held - before:
            self._calls[name].set()

    async def look(self) -> float:
        """Call the chores that are wanted, if they are ours, and return in how many seconds to look again."""
        waiting = [(chore, chore.wanted) for chore in self._chores if chore.wanted is not None and self._holds(chore)]
        pause = LOOK.total_seconds() * self._random.uniform(0.97, 1.0)
        if waiting:
            agenda = await self._store.agenda()
            for chore, wanted in waiting:
                wait = wanted(agenda)
                if wait is not None and wait > timedelta(0):
                    pause = min(pause, wait.total_seconds())
                elif wait is not None:
                    self._calls[chore.name].set()
        return max(pause, LEAST_PAUSE)

    async def run_once(self, chore: Chore) -> int | None:
        """Do one piece of a chore if its duty is ours; None if it is not."""
        if not self._holds(chore):
            return None
        began, done = self._clock.monotonic(), None
        try:
            done = await chore.run_once()
        finally:
            self.records[chore.name].add(self._clock.monotonic() - began, done)
        return done

    @property
    def duties(self) -> frozenset[str]:
        """The chores that are this node's to do now."""
        return self._held if self._clock.monotonic() < self._held_until else frozenset()

    def _holds(self, chore: Chore) -> bool:
        return chore.name in self.duties

    async def _beat_again_and_again(self) -> None:
        while True:
            try:
                await self.beat()
            except Unavailable as error:
                _log.warning("the duties could not be shared out: %s", error)
            except Exception:  # noqa: BLE001 - a bug here must not end the chores for ever
                _log.exception("the duties could not be shared out, which will be tried again")
            longest, least = (STAND_BY, 0.5) if self._stands_by else (BEAT, 0.97)
            await self._clock.sleep(longest.total_seconds() * self._random.uniform(least, 1.0))

    async def _look_again_and_again(self) -> None:
        while True:
            pause = LOOK.total_seconds()
            try:
                pause = await self.look()
            except Unavailable as error:
                _log.warning("what is wanted could not be looked up: %s", error)
            except Exception:  # noqa: BLE001 - as above
                _log.exception("what is wanted could not be looked up, which will be tried again")
            await self._clock.sleep(pause)

    async def _repeat(self, chore: Chore) -> None:
        note(chore=chore.name)
        while True:
            await self._be_called(chore)
            try:
                done = await self.run_once(chore)
            except Unavailable as error:
                _log.warning("%s: %s", chore.name, error)
            except Exception:  # noqa: BLE001 - a bug in one chore must not end the others
                _log.exception("%s failed, and will be tried again", chore.name)
            else:
                if done:
                    _log.info("%s: %d", chore.name, done)

    async def _be_called(self, chore: Chore) -> None:
        """Wait until the chore is called, or until it is time for it anyway."""
        call = self._calls[chore.name]
        sleep = asyncio.ensure_future(self._clock.sleep(self._pause(chore)))
        called = asyncio.ensure_future(call.wait())
        try:
            await asyncio.wait((sleep, called), return_when=asyncio.FIRST_COMPLETED)
        finally:
            call.clear()
            sleep.cancel()
            called.cancel()

    def _pause(self, chore: Chore) -> float:
        """Return for how long to sleep: with some jitter, unless the chore knows when it is needed next."""
        usual = chore.every.total_seconds() * self._random.uniform(0.9, 1.1)
        asked = chore.pause() if self._holds(chore) else None
        return usual if asked is None else min(usual, max(asked.total_seconds(), LEAST_PAUSE))

    async def _give_up(self) -> None:
        try:
            await self._store.leave_duties(self._node)
        except Unavailable as error:
            _log.warning("the duties could not be given up and will pass to others by themselves: %s", error)
