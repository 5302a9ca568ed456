"""What endpoints work with: the store, the blobs, the intake, and who waits for what."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final
from uuid import UUID

from tidewheel.blobs import Blobs
from tidewheel.clock import Clock
from tidewheel.model.job import Job
from tidewheel.model.states import FINAL
from tidewheel.server.access import AuditRecorder, Eraser, Quotas
from tidewheel.server.doorbell import Doorbell
from tidewheel.server.intake import Intake
from tidewheel.server.roster import Roster
from tidewheel.store.base import Store

FIRST_PAUSE: Final = 0.01
LONGEST_PAUSE: Final = 0.5
_GROWTH: Final = 1.5
MOST_WAITERS: Final = 2_000
"""Requests that wait for jobs at once; whoever comes on top is answered without a wait."""
LARGE_AT_ONCE: Final = 2
"""Large results that are in memory at once."""


class Service:
    """One server's share of the work; everything that lasts is in the store."""

    def __init__(self, store: Store, blobs: Blobs, clock: Clock) -> None:
        self.store = store
        self.blobs = blobs
        self.clock = clock
        self.intake = Intake(store)
        self.doorbell = Doorbell(store, clock)
        self.roster = Roster(store)
        self.quotas = Quotas(store, clock)
        self.audit = AuditRecorder(store, clock)
        self.eraser = Eraser(store, blobs)
        self.large = asyncio.Semaphore(LARGE_AT_ONCE)
        self.pages: Callable[[], Mapping[str, bytes]] = dict
        """What is made once from the table of endpoints: the OpenAPI document and the docs."""
        self.stopping = asyncio.Event()
        """Set when the server is about to end: who waits is answered now."""
        self.followers = 0
        """How many streams tell what happens to a job."""
        self._waiters = 0

    async def close(self) -> None:
        """Store what is still to be written down."""
        await self.audit.close()

    async def ended(self, job_id: UUID, tenant: str | None, seconds: float) -> Job:
        """Return a job once it has ended, or as it is when the time has passed."""
        latest, pause = self.clock.monotonic() + seconds, FIRST_PAUSE
        if self._waiters >= MOST_WAITERS:
            latest = self.clock.monotonic()
        self._waiters += 1
        try:
            while True:
                job = await self.store.get(job_id, tenant=tenant)
                left = latest - self.clock.monotonic()
                if job.state in FINAL or left <= 0 or self.stopping.is_set():
                    return job
                await self.pause(min(pause, left))
                pause = min(pause * _GROWTH, LONGEST_PAUSE)
        finally:
            self._waiters -= 1

    async def pause(self, seconds: float) -> None:
        """Wait, but not while the server is about to end."""
        sleep = asyncio.ensure_future(self.clock.sleep(seconds))
        stop = asyncio.ensure_future(self.stopping.wait())
        try:
            await asyncio.wait([sleep, stop], return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleep.cancel()
            stop.cancel()
