"""Results and files of jobs that retention has removed: once a job is not there any more, its blobs go, too."""

import hashlib
import logging
from datetime import timedelta
from typing import Final
from uuid import UUID

from tidewheel.blobs import Blobs
from tidewheel.blobs.blobs import OWNER
from tidewheel.clock import Clock
from tidewheel.model.ids import time_of
from tidewheel.store.artifacts import ArtifactStore

PAGE: Final = 1_000
"""How many jobs are looked up at once."""
PAGES: Final = 50
"""How many pages are gone through before others have their turn."""
YOUNGEST: Final = timedelta(days=1)
"""How old a job must be before anything of it is removed, also if it is kept for a shorter time: whoever has put back a
database and finds the blobs newer than that has so long to notice."""

_log = logging.getLogger(__name__)


class Collector:
    """Goes through all jobs that left something behind, page by page, and begins anew at the end.

    The store cannot tell which jobs it has removed: on PostgreSQL they go with a whole day. It can tell which are
    there, and what is of none of those is of nobody.
    """

    def __init__(self, store: ArtifactStore, blobs: Blobs, clock: Clock) -> None:
        self._store = store
        self._blobs = blobs
        self._clock = clock
        self._after = ""
        self._told = False

    async def run_once(self) -> int:
        """Remove what is of jobs that are gone, and return how much that was; nothing in another database's place."""
        if not await self._is_ours():
            return 0
        removed = 0
        for _ in range(PAGES):
            jobs, more = await self._blobs.jobs_with_outputs(self._after, PAGE)
            removed += await self._remove_of(await self._gone(jobs))
            self._after = more or ""
            if more is None:
                break
        return removed

    async def _is_ours(self) -> bool:
        """Tell whether the outputs here are of this database, by a mark that the first one leaves."""
        own = hashlib.sha256(b"outputs" + await self._store.signing_key()).hexdigest()
        ours = await self._blobs.owner(own) == own
        if not ours and not self._told:
            self._told = True
            _log.warning(
                "nothing is removed from the blobs: %r there is the mark of another database. If that is gone, "
                "remove the mark",
                OWNER,
            )
        return ours

    async def _gone(self, jobs: list[UUID]) -> list[UUID]:
        latest = self._clock.now() - YOUNGEST
        old = [job_id for job_id in jobs if time_of(job_id) < latest]
        if not old:
            return []
        known = await self._store.known_jobs(old)
        return [job_id for job_id in old if job_id not in known]

    async def _remove_of(self, jobs: list[UUID]) -> int:
        return sum([await self._blobs.delete_outputs(job_id) for job_id in jobs])
