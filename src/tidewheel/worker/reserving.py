"""Reservations: what becomes free is kept for a job that was long too large, so that small ones do not starve it."""

from datetime import timedelta
from typing import Final

import msgspec

from tidewheel.clock import Clock
from tidewheel.errors import Unavailable
from tidewheel.model.resources import Needs, Offer, Resources, fits, should_reserve, spare
from tidewheel.store.base import ClaimRequest, RunStore

LOOK_EVERY: Final = 2.0
"""Seconds between two questions to the store."""


class Reservation:
    """What one host keeps, if anything."""

    def __init__(self, store: RunStore, offer: Offer, after: timedelta, clock: Clock) -> None:
        self._store = store
        self._offer = offer
        self._after = after
        self._clock = clock
        self._asked = clock.monotonic()
        self._kept: Needs | None = None

    async def look(self, request: ClaimRequest, free: Resources) -> bool:
        """Find out, now and then, whether a job has been too large for long; tell whether that has changed."""
        if self._clock.monotonic() - self._asked < min(LOOK_EVERY, self._after.total_seconds()):
            return False
        self._asked = self._clock.monotonic()
        try:
            oldest = await self._store.oldest_unfit(msgspec.structs.replace(request, free=free), self._offer.resources)
        except Unavailable:
            return False  # the next look tells
        before, self._kept = self._kept, None
        if oldest is not None:
            needs, waited = oldest
            if should_reserve(waited, needs, free, self._offer, after=self._after):
                self._kept = needs
        return self._kept != before

    def apply(self, request: ClaimRequest, free: Resources) -> ClaimRequest:
        """Return the claim that leaves alone what is kept, or takes the very job that it was kept for."""
        if self._kept is None:
            return msgspec.structs.replace(request, free=free)
        if fits(self._kept, free):
            return msgspec.structs.replace(request, limit=1, free=free, needs=self._kept)
        return msgspec.structs.replace(request, free=spare(free, self._kept))

    def taken(self, needs: Needs) -> None:
        """Note that a run with these needs has begun."""
        if needs == self._kept:
            self._kept = None
