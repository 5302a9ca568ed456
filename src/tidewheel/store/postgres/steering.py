"""Steering single jobs: cancel and redrive."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from tidewheel.errors import NotFound
from tidewheel.model.checks import check_text
from tidewheel.model.ids import time_of
from tidewheel.model.job import Job
from tidewheel.model.outcome import NO_DELAY
from tidewheel.model.states import WAITING, Cause, State
from tidewheel.store.postgres.connection import SQL, Connection
from tidewheel.store.postgres.ending import Ending, finish, tell_children
from tidewheel.store.postgres.parts import Part
from tidewheel.store.postgres.releasing import EndedParent
from tidewheel.store.postgres.searching import find_job

NOT_SEEN: Final[Mapping[UUID, int]] = {}


class Steering(Part):
    """See `store.base.JobStore`."""

    async def cancel(self, job_id: UUID, *, tenant: str | None = None, reason: str = "") -> Job:
        check_text("reason", reason, 1000)

        async def cancel(connection: Connection) -> Job | None:
            row = await connection.fetchrow(SQL["lock_job"], job_id, tenant)
            if row is not None and row["state"] == State.RUNNING:
                await connection.execute(SQL["ask_to_stop"], job_id, reason)
            elif row is not None:
                await finish(connection, WAITING, [Ending.waiting(job_id, Cause.CANCELLED, reason)])
            return await find_job(connection, job_id, tenant)

        job = await self._db.transaction(cancel)
        if job is None:
            raise NotFound("job", job_id)
        if job.cancelling or job.limit_keys:
            self._hints.send()
        return job

    async def redrive(self, job_ids: Sequence[UUID], *, tenant: str | None = None) -> list[UUID]:
        ids = sorted(set(job_ids))
        await self._tell_children_of(ids)
        sent = await self._db.write(lambda connection: send_round(connection, dict.fromkeys(ids, NO_DELAY), tenant))
        if sent:
            self._hints.send()
        return [job_id for job_id in dict.fromkeys(job_ids) if job_id in sent]

    async def _tell_children_of(self, ids: list[UUID]) -> None:
        """Bring to an end what the ends of jobs began: later children are not to hear of these ends."""

        async def tell(connection: Connection) -> int:
            rows = await connection.fetch(SQL["take_named_ended_parents"], ids)
            await tell_children(connection, {row["parent"]: EndedParent(row["state"], row["beyond"]) for row in rows})
            return len(rows)

        while await self._db.transaction(tell):
            pass


async def send_round(
    connection: Connection, delays: Mapping[UUID, timedelta], tenant: str | None, died: Mapping[UUID, int] = NOT_SEEN
) -> set[UUID]:
    """Send finished jobs round again, each after its delay, and return which went.

    `died` are the tokens with which jobs were seen dead: whatever became of them since, these are left alone unless
    they still are.
    """
    made, tokens = [time_of(job_id) for job_id in delays], [died.get(job_id) for job_id in delays]
    rows = await connection.fetch(SQL["redrive"], list(delays), made, tenant, list(delays.values()), tokens)
    return {row["id"] for row in rows}
