"""Takes jobs from the store whenever there is room; when there are none, sleeps until one is due or a hint comes."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final, Protocol
from uuid import UUID

from tidewheel.clock import Clock
from tidewheel.errors import Unavailable
from tidewheel.model.job import Claimed, Run
from tidewheel.store.base import ClaimRequest, RunStore
from tidewheel.store.bell import SOON, Bell
from tidewheel.store.telling import HintStore
from tidewheel.worker.counting import RunNumbers
from tidewheel.worker.page import Page
from tidewheel.worker.patience import Patience
from tidewheel.worker.settler import RunKey

POLL: Final = SOON.total_seconds()
"""Seconds between looks at the most: no bell rings for what becomes due later than that."""
POLL_IN_DOUBT: Final = 1.0
"""Seconds between looks at the most while rings may be lost."""
RECONCILE_EVERY: Final = 5.0
FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 2.0

_log = logging.getLogger(__name__)


class Taker(Protocol):
    """Who runs what is claimed."""

    def attach(self, wake: Callable[[], None]) -> None:
        """Take what is to be called when what is wanted has changed while the claimer sleeps."""

    def wanted(self) -> ClaimRequest | None:
        """Return what there is room for now, or None."""

    async def room(self) -> None:
        """Return when there may be room."""

    def accept(self, claimed: Claimed) -> None:
        """Take runs to be started in this order."""

    def held(self) -> set[RunKey]:
        """Return the runs that are here, those whose outcome is not stored yet included."""

    def disown(self, keys: Iterable[RunKey]) -> None:
        """End those of these runs that still go on; they are no longer this worker's, so nothing is reported."""


class ClaimStore(RunStore, HintStore, Protocol):
    """What a claimer asks of a store."""


class Claimer:
    """Claims for one taker, one claim at a time."""

    def __init__(
        self, store: ClaimStore, worker_id: UUID, taker: Taker, page: Page, *, clock: Clock, numbers: RunNumbers
    ) -> None:
        self._store = store
        self._worker_id = worker_id
        self._taker = taker
        self._page = page
        self._clock = clock
        self._numbers = numbers
        self._doubt = False
        self._looked = clock.monotonic()

    async def run(self) -> None:
        """Claim until cancelled. Raises LeaseLost when the store no longer counts this worker as alive."""
        patience = Patience(self._clock, first=FIRST_PAUSE, longest=LONGEST_PAUSE)
        async with self._store.listen() as bell:
            self._taker.attach(bell.ring)
            while True:
                try:
                    await self._turn(bell)
                except Unavailable as error:
                    self._doubt = True  # a claim may have happened whose answer was lost
                    _log.warning("cannot claim: %s", error)
                    await patience.pause()
                else:
                    patience.renew()

    async def _turn(self, bell: Bell) -> None:
        if self._doubt or self._clock.monotonic() - self._looked >= RECONCILE_EVERY:
            await self._reconcile()
        request = self._taker.wanted()
        if request is None:
            await self._wait_for_room()
            return
        asked_at = self._clock.monotonic()
        claimed = await self._claim(request, asked_at)
        if self._clock.monotonic() >= self._page.lease_until:
            self._doubt = True  # too late to be trusted: the supervisor is about to end this process
            return
        if claimed.runs:
            self._taker.accept(claimed)
        if len(claimed.runs) < request.limit:
            passed = self._clock.monotonic() - asked_at
            await bell.wait(_pause(claimed, passed, POLL if bell.healthy else POLL_IN_DOUBT))

    async def _claim(self, request: ClaimRequest, asked_at: float) -> Claimed:
        try:
            claimed = await self._store.claim(request)
        except Unavailable:
            self._numbers.unclaimed()
            raise
        self._numbers.claimed(self._clock.monotonic() - asked_at, claimed.runs)
        return claimed

    async def _wait_for_room(self) -> None:
        try:
            async with asyncio.timeout(RECONCILE_EVERY):
                await self._taker.room()
        except TimeoutError:
            return

    async def _reconcile(self) -> None:
        """Compare what is here with what the store says is here. No claim is under way meanwhile."""
        held = self._taker.held()
        self._looked = self._clock.monotonic()
        if not held and not self._doubt:
            return
        owned = {(run.job_id, run.token): run for run in await self._store.owned(self._worker_id)}
        self._doubt = False
        adopted = [run for key, run in owned.items() if key not in held]
        if adopted:
            _log.info("adopted %d runs whose claim was not answered", len(adopted))
            self._taker.accept(Claimed(_in_order(adopted)))
        self._taker.disown((held & self._taker.held()) - owned.keys())


def _pause(claimed: Claimed, passed: float, longest: float) -> float:
    """Return how long to sleep if nobody rings; `passed` is the time since the store was asked what time it is."""
    if claimed.next_due is None or claimed.now is None:
        return longest
    return min(longest, max(0.0, (claimed.next_due - claimed.now).total_seconds() - passed))


def _in_order(runs: list[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: (run.priority, run.run_at, run.job_id))
