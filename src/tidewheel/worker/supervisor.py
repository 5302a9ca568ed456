"""The supervisor: keeps the children of a worker running and their leases renewed, and ends them when it cannot.

It runs no user code and waits for nobody but the store, so whatever a task does, the beats go on. When the store does
not answer, the supervisor ends all runs before the lease does, and begins anew when the store is back. Should it be
unable to do even that (stopped, swapped out), the kernel's timer ends it, and with it all its children.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final, Protocol
from uuid import UUID

import msgspec

from tidewheel.clock import Clock
from tidewheel.errors import Unavailable
from tidewheel.store.base import RunStore, WorkerStore
from tidewheel.store.telling import HintStore
from tidewheel.worker.blame import blames, ends_of, exit_words
from tidewheel.worker.deadman import DeadMan
from tidewheel.worker.gathering import Gathering
from tidewheel.worker.link import Drain, TakeOver
from tidewheel.worker.members import Member, MemberSpec, become_reaper, strays_gone
from tidewheel.worker.patience import Patience
from tidewheel.worker.renewal import FIRST_PAUSE, LONGEST_PAUSE, Renewal
from tidewheel.worker.sandbox import cgroups

WATCH_EVERY: Final = 0.2
"""Seconds between two looks at who has the event loops."""
STOPS_EVERY: Final = 0.1
"""Seconds between two looks at who was asked to stop, at the least."""
BEGIN_ANEW_AFTER: Final = 1.0
"""Seconds after which a chore of the supervisor that failed begins anew."""
DRAIN_SLACK: Final = 15.0
"""Seconds after which a child that should have drained is killed."""
READY_WITHIN: Final = 30.0
"""Seconds for a new server to come up."""
QUICK_DEATH: Final = 10.0
"""A child that lived no longer than this many seconds is started again only after a pause."""

_log = logging.getLogger(__name__)


class SupervisorStore(WorkerStore, RunStore, HintStore, Protocol):
    """What a supervisor asks of a store."""


class Supervisor:
    """Runs one worker."""

    def __init__(self, store: SupervisorStore, specs: Sequence[MemberSpec], clock: Clock, *, ttl: timedelta) -> None:
        self._store = store
        self._specs = specs
        self._clock = clock
        self._deadman = DeadMan()
        self._members: list[Member] = []
        self._draining = False
        self._group: asyncio.TaskGroup | None = None
        self._renewing = False
        self.numbers = Gathering(self._members)
        self._renewal = Renewal(store, self.numbers, clock, self._deadman, ttl=ttl)
        self._random = random.Random()  # noqa: S311 - spreads retries, guards nothing
        become_reaper()
        cgroups.make_room()

    async def run(self) -> None:
        """Work until drained."""
        chores = (self._renewal.run, self._watch_loops, self._hear_stops)
        others = [asyncio.ensure_future(always(chore, self._clock)) for chore in chores]
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for spec in self._specs:
                    group.create_task(self._keep(spec))
        finally:
            for work in others:
                work.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            self._deadman.disarm()

    def drain(self, seconds: float) -> None:
        """Take no more jobs; give back what has not ended after so many seconds, and end."""
        self._draining = True
        for member in self._members:
            member.say(Drain(seconds))
            asyncio.get_running_loop().call_later(seconds + DRAIN_SLACK, member.kill)

    async def renew(self, seconds: float) -> int:
        """Put new servers in the place of those that run, which have so many seconds to end; return how many.

        New connections go to the new ones before the old ones end. If a new one does not come up, all stays as it is.
        """
        olds = [member for member in self._members if member.spec.renewable and not member.retired]
        if not olds or self._draining or self._renewing or self._group is None:
            return 0
        self._renewing = True
        try:
            news = [await self._start(old.spec) for old in olds]
            if not await self._all_ready(news):
                for member in news:
                    member.retired = True
                    member.kill()
                    self._group.create_task(self._see_off(member))
                return 0
            for old, new in zip(olds, news, strict=True):
                old.retired = True
                self._group.create_task(self._keep(new.spec, new))
            news[0].say(TakeOver(len(olds), len(news)))
            for old in olds:
                old.say(Drain(seconds))
                asyncio.get_running_loop().call_later(seconds + DRAIN_SLACK, old.kill)
            return len(olds)
        finally:
            self._renewing = False

    async def _all_ready(self, members: Sequence[Member]) -> bool:
        latest = self._clock.monotonic() + READY_WITHIN
        while not all(member.ready.is_set() for member in members):
            if any(member.gone.is_set() for member in members) or self._clock.monotonic() > latest:
                _log.warning("new servers do not come up: the old ones stay")
                return False
            await self._clock.sleep(WATCH_EVERY)
        return True

    @property
    def ready(self) -> bool:
        """Whether all children are up and the lease holds."""
        return (
            self._renewal.holds
            and len(self._members) >= len(self._specs)
            and all(one.ready.is_set() for one in self._members)
        )

    def kill(self) -> None:
        """End all children at once."""
        self._draining = True
        for member in self._members:
            member.kill()

    # The children

    async def _keep(self, spec: MemberSpec, member: Member | None = None) -> None:
        """Keep one child there, until draining or until another has taken its place."""
        patience = self._patience()
        while not self._draining or member is not None:
            try:
                member = member or await self._start(spec)
            except Unavailable:
                return  # told to stop before the store was there
            await self._see_off(member)
            if member.retired:
                return
            started_at, fenced, member = member.started_at, member.fenced, None
            if self._clock.monotonic() - started_at > QUICK_DEATH or fenced:
                patience.renew()
            elif not self._draining:
                await patience.pause()

    async def _see_off(self, member: Member) -> None:
        """Wait for the end of a child, and leave nothing of it."""
        await member.gone.wait()
        await strays_gone(self._members, self._clock)
        self.numbers.keep(member)
        if blames(member):
            how = exit_words(member.exit_code or 0)
            _log.warning("%s ended with %s", member.spec.setup.name, how, extra={"worker_id": str(member.worker_id)})
        if member.worker_id is not None:
            await self._give_back(member, member.worker_id)
        self._members.remove(member)
        await member.close()

    async def _start(self, spec: MemberSpec) -> Member:
        setup, worker_id = spec.setup, None
        if spec.worker is not None:
            worker_id = await self._renewal.register(spec.worker, lambda: self._draining)
            setup = msgspec.structs.replace(setup, worker_id=worker_id)
        member = Member(spec, worker_id, self._clock.monotonic(), self.numbers.all)
        self._members.append(member)
        self.numbers.started(member)
        await member.start(setup, self._renewal.lease.until)
        _log.debug("%s started as process %d", setup.name, member.pid, extra={"worker_id": str(worker_id)})
        if self._draining:
            member.say(Drain(0))
        return member

    async def _give_back(self, member: Member, worker_id: UUID) -> None:
        """Tell the store that a child is gone: what it ran can run elsewhere at once."""
        patience = self._patience()
        while True:
            try:
                if blames(member):
                    ends = ends_of(member, await self._store.owned(worker_id), self._random.random())
                    await self._store.settle(worker_id, ends)
                await self._store.deregister(worker_id)
            except Unavailable as error:
                _log.warning("runs of %s wait to be given back: %s", member.spec.setup.name, error)
                if self._draining:
                    return  # whoever reaps it gives them back
                await patience.pause()
            else:
                return

    def _patience(self) -> Patience:
        return Patience(self._clock, first=FIRST_PAUSE, longest=LONGEST_PAUSE)

    # What the children do

    async def _watch_loops(self) -> None:
        """End children whose event loop is held by a run that should have ended, or does not turn at all."""
        while True:
            await self._clock.sleep(WATCH_EVERY)
            now = self._clock.monotonic()
            for member in self._members:
                if member.look(now):
                    self._end_stuck(member)

    def _end_stuck(self, member: Member) -> None:
        run = None if member.stuck is None else member.stuck.run
        about = {"worker_id": str(member.worker_id)} | ({} if run is None else {"job_id": str(run.job_id)})
        what = "its event loop is stuck" if run is None else f"job {run.job_id} does not end"
        _log.warning("%s: ending %s", what, member.spec.setup.name, extra=about)
        member.kill()

    async def _hear_stops(self) -> None:
        """Pass on who was asked to stop, without waiting for the next beat."""
        async with self._store.listen() as bell:
            while True:
                if not await bell.wait(self._renewal.lease.pause):
                    continue
                members = self._renewal.workers()
                try:
                    stops = await self._store.stopping(list(members)) if members else []
                except Unavailable:
                    stops = []  # the next beat tells
                for worker_id, job_id, token in stops:
                    members[worker_id].stop_runs([(job_id, token)], self._clock.monotonic())
                await self._clock.sleep(STOPS_EVERY)


async def always(chore: Callable[[], Awaitable[None]], clock: Clock) -> None:
    """Do a chore that never ends until cancelled; should it fail, that is told, and it begins anew."""
    while True:
        try:
            await chore()
        except Exception:  # noqa: BLE001 - a worker without this chore would be no worker
            _log.exception("%s failed, and begins anew", chore.__name__)
            await clock.sleep(BEGIN_ANEW_AFTER)
