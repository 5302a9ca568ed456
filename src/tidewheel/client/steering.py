"""The calls of the client that steer jobs: one, or all that meet some conditions."""

from typing import Final, Unpack
from uuid import UUID

import msgspec

from tidewheel.client.options import JobConditions, query_of
from tidewheel.model.job import Job
from tidewheel.store.remote.documents import JobDocument
from tidewheel.store.remote.transport import Transport

MOST_AT_ONCE: Final = 10_000


class Bulk(msgspec.Struct, frozen=True):
    """What an action on many jobs did, or would do."""

    matched: int
    """How many jobs met the conditions."""
    done: int
    """For how many of them it was done; others were faster with the rest."""
    more: bool
    """Whether there are others still: ask again for them."""
    dry_run: bool


class SteeringCalls:
    """A part of `AsyncClient`."""

    _transport: Transport

    async def cancel(self, job_id: UUID, reason: str = "") -> Job:
        """Cancel a job: it never starts, or is asked to stop. One that has ended stays as it is."""
        body = {"reason": reason}
        return (await self._transport.post(f"/v1/jobs/{job_id}/cancel", body, JobDocument, safe=True)).record()

    async def retry(self, job_id: UUID) -> Job:
        """Send a job that ended without success round again. Raises Conflict."""
        return (await self._transport.post(f"/v1/jobs/{job_id}/retry", None, JobDocument, safe=False)).record()

    async def erase(self, job_id: UUID) -> Job:
        """Forget what a finished job was about, and return what is left of it. Raises NotFinished."""
        return (await self._transport.post(f"/v1/jobs/{job_id}/erase", None, JobDocument, safe=True)).record()

    async def cancel_many(
        self, *, reason: str = "", dry_run: bool = False, limit: int = MOST_AT_ONCE, **where: Unpack[JobConditions]
    ) -> Bulk:
        """Cancel the jobs that meet the conditions and have not ended; with `dry_run` they are only counted."""
        body = {"where": query_of(where), "reason": reason, "dry_run": dry_run, "limit": limit}
        return await self._transport.post("/v1/jobs/cancel", body, Bulk, safe=True)

    async def retry_many(
        self, *, dry_run: bool = False, limit: int = MOST_AT_ONCE, **where: Unpack[JobConditions]
    ) -> Bulk:
        """Send the jobs round again that meet the conditions and ended without success; or only count them."""
        body = {"where": query_of(where), "dry_run": dry_run, "limit": limit}
        return await self._transport.post("/v1/jobs/retry", body, Bulk, safe=dry_run)
