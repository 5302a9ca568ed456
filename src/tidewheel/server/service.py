"""What endpoints work with: the store, the blobs, the intake, and who waits for what."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from tidewheel.blobs import Blobs
from tidewheel.clock import Clock
from tidewheel.model.job import Job
from tidewheel.model.states import FINAL
from tidewheel.server.access import AuditRecorder, Eraser, Quotas
from tidewheel.server.doorbell import Doorbell
from tidewheel.server.intake import Intake
from tidewheel.server.metrics import ServerMetrics
from tidewheel.server.places import Places
from tidewheel.server.roster import Roster
from tidewheel.server.run_lines import RunLines
from tidewheel.server.views import Views
from tidewheel.store.base import Store

FIRST_PAUSE: Final = 0.01
LONGEST_PAUSE: Final = 0.5
_GROWTH: Final = 1.5
MOST_WAITERS: Final = 2_000
"""Requests that wait for jobs at once; whoever comes on top is answered without a wait."""
LOOKS_AT_ONCE: Final = 2
"""Large results that are in memory at once, to be looked at on their way in."""
UPLOADS_AT_ONCE: Final = 8
DOWNLOADS_AT_ONCE: Final = 32
FRESH: Final = 3600.0
"""Seconds for which an artifact counts as used without another word to the store."""
MOST_FRESH: Final = 10_000


class UsedArtifacts:
    """Artifacts that were counted as used not long ago."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[tuple[str, str], float] = {}

    def is_fresh(self, tenant: str, digest: str) -> bool:
        """Tell whether the store need not hear of it."""
        return self._clock.monotonic() < self._seen.get((tenant, digest), float("-inf")) + FRESH

    def note(self, tenant: str, digest: str) -> None:
        """Note that the store has heard of it."""
        if len(self._seen) >= MOST_FRESH:
            self._seen.clear()
        self._seen[tenant, digest] = self._clock.monotonic()


class Service:
    """One server's share of the work; everything that lasts is in the store."""

    def __init__(self, store: Store, blobs: Blobs, clock: Clock, views: Views | None = None) -> None:
        self.store = store
        self.views = views or Views(store, clock)
        self.blobs = blobs
        self.clock = clock
        self.intake = Intake(store)
        self.doorbell = Doorbell(store, clock)
        self.roster = Roster(store)
        self.quotas = Quotas(store, clock)
        self.run_lines = RunLines()
        self.audit = AuditRecorder(store, clock)
        self.eraser = Eraser(store, blobs)
        self.looks = asyncio.Semaphore(LOOKS_AT_ONCE)
        self.uploads = Places("uploads", UPLOADS_AT_ONCE)
        self.downloads = Places("downloads", DOWNLOADS_AT_ONCE)
        self.artifacts = UsedArtifacts(clock)
        self._signing_key: bytes | None = None
        self.under_way = 0
        """How many requests are being answered."""
        self.metrics = ServerMetrics(store, clock, lambda: self.under_way)
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

    async def signing_key(self) -> bytes:
        """Return the secret by which all servers of the store sign."""
        if self._signing_key is None:
            self._signing_key = await self.store.signing_key()
        return self._signing_key

    async def ended(self, job_id: UUID, tenant: str | None, seconds: float, gone: "asyncio.Future[None] | None") -> Job:
        """Return a job once it has ended, or as it is when the time has passed or nobody waits any more."""
        latest, pause = self.clock.monotonic() + seconds, FIRST_PAUSE
        if self._waiters >= MOST_WAITERS:
            latest = self.clock.monotonic()
        self._waiters += 1
        try:
            while True:
                job = await self.store.get(job_id, tenant=tenant)
                left = latest - self.clock.monotonic()
                left_alone = gone is not None and gone.done()
                if job.state in FINAL or left <= 0 or self.stopping.is_set() or left_alone:
                    return job
                await self.pause(min(pause, left), gone)
                pause = min(pause * _GROWTH, LONGEST_PAUSE)
        finally:
            self._waiters -= 1

    async def pause(self, seconds: float, gone: "asyncio.Future[None] | None" = None) -> None:
        """Wait, but not while the server is about to end, nor for one who is gone."""
        sleep = asyncio.ensure_future(self.clock.sleep(seconds))
        stop = asyncio.ensure_future(self.stopping.wait())
        ends: list[asyncio.Future[Any]] = [sleep, stop] if gone is None else [sleep, stop, gone]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleep.cancel()
            stop.cancel()
