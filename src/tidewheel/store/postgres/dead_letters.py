"""Dead letters: their groups, and how they are sent round again."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from tidewheel.errors import NotFound
from tidewheel.model.dead_letter import (
    DeadFilter,
    DeadGroup,
    Redriven,
    check_dead_filter,
    check_piece,
    check_rate,
    not_sent,
    spread,
)
from tidewheel.model.ids import time_of
from tidewheel.model.job import Job
from tidewheel.model.outcome import NO_DELAY
from tidewheel.model.submission import prepare_args
from tidewheel.store.dead_letters import ALL_DEAD, AT_ONCE
from tidewheel.store.pages import Page
from tidewheel.store.postgres.connection import SQL, Connection
from tidewheel.store.postgres.parts import DIALECT
from tidewheel.store.postgres.searching import FIRST_ID, LAST_ID, check_page, find_job, read_page
from tidewheel.store.postgres.steering import Steering, send_round
from tidewheel.store.records import JobRow, failure_of, job_of

_WIDTH = len(JobRow._fields)


class DeadLetters(Steering):
    """See `store.dead_letters.DeadLetterStore`."""

    max_args_bytes: int

    async def dead_groups(self, where: DeadFilter = ALL_DEAD, *, limit: int = 50) -> list[DeadGroup]:
        values = (*_values(where), check_page(limit))
        rows = await self._db.read(lambda connection: connection.fetch(SQL["dead_groups"], *values))
        return [DeadGroup(**{**row, "error": failure_of(row["error"])}) for row in rows]

    async def dead_letters(self, where: DeadFilter = ALL_DEAD, *, limit: int = 50, after: UUID | None = None) -> Page:
        values = (*_values(where), after or LAST_ID, check_page(limit))

        async def look(connection: Connection) -> tuple[list[Any], bool]:
            async with connection.transaction(readonly=True):
                return await read_page(connection, SQL["list_dead"], values, limit)

        rows, is_full = await self._db.read(look)
        return Page([job_of(row[:_WIDTH], DIALECT) for row in rows], rows[-1]["id"] if is_full else None)

    async def count_dead(self, where: DeadFilter = ALL_DEAD) -> int:
        values = _values(where)
        number: int = await self._db.read(lambda connection: connection.fetchval(SQL["count_dead"], *values))
        return number

    async def redrive_dead(
        self,
        where: DeadFilter,
        *,
        rate: float | None = None,
        start: timedelta = AT_ONCE,
        limit: int = 1000,
        after: UUID | None = None,
    ) -> Redriven:
        check_piece(limit, start, check_rate(rate))
        values = (*_values(where), after or FIRST_ID, limit)
        as_of = await self._db.read(lambda connection: connection.fetchval(SQL["now"]))
        rows = await self._db.read(lambda connection: connection.fetch(SQL["next_dead"], *values))
        died: dict[UUID, int] = {row["id"]: row["token"] for row in rows}
        ids = list(died)
        await self._tell_children_of(ids)
        delays = dict(zip(ids, spread(len(ids), rate, start), strict=True))
        sent: set[UUID] = set()
        if ids:
            sent = await self._db.write(lambda connection: send_round(connection, delays, where.tenant, died))
        if sent:
            self._hints.send()
        return Redriven([job_id for job_id in ids if job_id in sent], ids[-1] if len(ids) == limit else None, as_of)

    async def redrive_edited(self, job_id: UUID, args: Mapping[str, Any], *, tenant: str | None = None) -> Job:
        await self._tell_children_of([job_id])

        async def edit(connection: Connection) -> Job:
            job = await find_job(connection, job_id, tenant)
            if job is None:
                raise NotFound("job", job_id)
            text = prepare_args(args, job.after, max_args_bytes=self.max_args_bytes)
            edited = await connection.fetchval(SQL["edit_dead"], job_id, text, time_of(job_id))
            if edited is None or not await send_round(connection, {job_id: NO_DELAY}, tenant):
                raise not_sent(job)
            return await find_job(connection, job_id, tenant) or job

        job = await self._db.transaction(edit)
        self._hints.send()
        return job


def _values(where: DeadFilter) -> tuple[Any, ...]:
    where = check_dead_filter(where)
    return (where.tenant, where.kind, where.queue, where.fingerprint, where.died_from, where.died_before)
