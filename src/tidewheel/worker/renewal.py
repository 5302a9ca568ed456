"""The lease that the children of a worker share: registered for, renewed by beats, and given up in time."""

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Final, Protocol
from uuid import UUID

from tidewheel.clock import Clock
from tidewheel.errors import Unavailable
from tidewheel.model.worker import WorkerSpec
from tidewheel.store.base import WorkerStore
from tidewheel.worker.gathering import Gathering
from tidewheel.worker.lease import Lease
from tidewheel.worker.members import Member, strays_gone
from tidewheel.worker.patience import Patience

RETRY_EVERY: Final = 0.25
"""Seconds between two tries to beat while the store does not answer."""
REGISTERED_WITHIN: Final = 0.5
"""The share of a lease that the answer to a registration may take: beats need the rest."""
FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 10.0

_log = logging.getLogger(__name__)


class Switch(Protocol):
    """What ends this process unless it is set anew; see `DeadMan`."""

    def arm(self, at: float) -> None:
        """Set when."""

    def disarm(self) -> None:
        """Kill nobody until armed again."""


class Renewal:
    """Holds one lease for all children that take jobs."""

    def __init__(self, store: WorkerStore, numbers: Gathering, clock: Clock, switch: Switch, *, ttl: timedelta) -> None:
        self._store = store
        self._members = numbers.members
        self._numbers = numbers
        self._ttl = ttl
        self._clock = clock
        self._switch = switch
        self.lease = Lease(ttl, clock.monotonic())

    @property
    def holds(self) -> bool:
        """Whether there is a lease to be trusted, or nobody who needs one."""
        return not self.workers() or self._clock.monotonic() < self.lease.fence_at

    def workers(self) -> dict[UUID, Member]:
        """Return the children that hold the lease."""
        return {
            member.worker_id: member
            for member in self._members
            if member.worker_id is not None and not member.fenced and not member.gone.is_set()
        }

    async def register(self, spec: WorkerSpec, is_over: Callable[[], bool]) -> UUID:
        """Return the id of a new worker; the lease of the first one begins. Raises Unavailable if it is over before."""
        patience = Patience(self._clock, first=FIRST_PAUSE, longest=LONGEST_PAUSE)
        most = REGISTERED_WITHIN * self._ttl.total_seconds()
        while True:
            sent_at = self._clock.monotonic()
            try:
                async with asyncio.timeout(most):
                    worker = await self._store.register(spec)
            except Unavailable as error:
                why = error
            except TimeoutError:
                why = Unavailable("no answer in time for the lease")
            else:
                if self._clock.monotonic() - sent_at <= most:
                    self._begin(sent_at)
                    return worker.id
                why = Unavailable("the answer came too late for the lease")
            _log.warning("cannot register: %s", why)
            if is_over():
                raise why
            await patience.pause()

    def _begin(self, sent_at: float) -> None:
        """Begin the lease, unless others hold it already and renew it."""
        if not self.workers():
            self.lease = Lease(self._ttl, sent_at)
            self._switch.arm(self.lease.until)

    async def run(self) -> None:
        """Beat until cancelled, and end all runs when the lease is about to pass."""
        while True:
            answered = await self.beat()
            if not answered and self._clock.monotonic() >= self.lease.fence_at:
                await self._fence()
            await self._clock.sleep(self.lease.pause if answered else min(self.lease.pause, RETRY_EVERY))

    async def beat(self) -> bool:
        """Beat for all children; tell whether that was answered in time."""
        members = self.workers()
        if not members:
            self._switch.disarm()
            return True
        sent_at = self._clock.monotonic()
        try:
            async with asyncio.timeout(max(self.lease.fence_at - sent_at, 0)):
                beats = await self._store.beat(list(members), clock=self._clock.now())
        except Exception as error:  # noqa: BLE001 - whatever it is, the next beat must be tried, and the lease watched
            _log.warning("no answer to a beat: %s", "too late" if isinstance(error, TimeoutError) else repr(error))
            return self._counted(answered=False)
        if not self.lease.renew(sent_at, self._clock.monotonic()):
            return self._counted(answered=False)
        self._switch.arm(self.lease.until)
        for beat in beats:
            member = members.pop(beat.worker_id)
            member.page.lease_until = self.lease.until
            if beat.cancelling:
                member.stop_runs(beat.cancelling, sent_at)
            else:
                member.has_none_to_stop()
        for member in members.values():
            _log.warning("%s is no longer alive for the store", member.spec.setup.name)
            self._end_lease(member)
        return self._counted(answered=True)

    def _counted(self, *, answered: bool) -> bool:
        self._numbers.beat(answered=answered)
        return answered

    def _end_lease(self, member: Member) -> None:
        self._numbers.lost_lease()
        member.fence()

    async def _fence(self) -> None:
        """End all runs, for the lease is about to pass; the kernel's timer stands behind us meanwhile."""
        members = list(self.workers().values())
        _log.warning("the lease passes without an answer from the store: ending all runs")
        for member in members:
            self._end_lease(member)
        for member in members:
            await member.gone.wait()
        await strays_gone(self._members, self._clock)
        if not self.workers():
            self._switch.disarm()
