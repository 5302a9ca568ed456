"""The calls of the client that are about jobs that wait, and about those that died."""

from collections.abc import AsyncIterator
from typing import Any, Final, Unpack
from uuid import UUID

from tidewheel.client.schedule_options import DeadConditions
from tidewheel.model.dead_letter import DeadFilter, DeadGroup
from tidewheel.model.job import Job
from tidewheel.model.why import Reason
from tidewheel.store.explaining import Explanation
from tidewheel.store.remote.dead_letters import DeadPage, GroupList, RedriveAnswer, conditions
from tidewheel.store.remote.transport import Transport

PAGE: Final = 200
PIECE: Final = 1000
"""How many one request sends round."""
_ALL: Final = "/v1/dead-letters"


class DeadLetterCalls:
    """A part of `AsyncClient`."""

    _transport: Transport

    async def why(self, job_id: UUID) -> list[Reason]:
        """Return all that keeps a job from running now, each with a sentence; or that it runs, or has ended."""
        return (await self._transport.get(f"/v1/jobs/{job_id}/why", Explanation)).reasons

    async def dead_groups(self, *, limit: int = 50, **where: Unpack[DeadConditions]) -> list[DeadGroup]:
        """Return what died of what, the largest group first."""
        query = conditions(DeadFilter(**where)) | {"limit": limit}
        return (await self._transport.get(f"{_ALL}/groups", GroupList, query)).groups

    async def dead_letters(self, *, full: bool = False, **where: Unpack[DeadConditions]) -> AsyncIterator[Job]:
        """Return all dead letters that meet the conditions, newest first; without arguments unless `full`."""
        query: dict[str, Any] = conditions(DeadFilter(**where)) | {"limit": PAGE, "full": str(full).lower()}
        while True:
            page = await self._transport.get(_ALL, DeadPage, query)
            for job in page.jobs:
                yield job.record()
            if page.next_cursor is None:
                return
            query["cursor"] = page.next_cursor

    async def redrive(
        self, *, rate: float | None = None, dry_run: bool = False, **where: Unpack[DeadConditions]
    ) -> int:
        """Send dead letters round again and return how many; `rate` is how many become due in a second.

        With `dry_run` they are only counted. They go in pieces: if this is interrupted, ask again for the rest.
        """
        body: dict[str, Any] = {"where": conditions(DeadFilter(**where)), "dry_run": dry_run, "limit": PIECE}
        body |= {} if rate is None else {"rate": rate}
        done = 0
        while True:
            answer = await self._transport.post(f"{_ALL}/redrive", body, RedriveAnswer, safe=dry_run)
            if dry_run:
                return answer.matched
            done += answer.done
            if answer.next_after is None:
                return done
            body |= {"start": answer.next_start, "after": answer.next_after}
            body["where"] = {"died_before": answer.as_of, **body["where"]}  # those that die again had their turn
