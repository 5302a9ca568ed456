"""Dead letters: their groups, and how they are sent round again."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeVar
from uuid import UUID

import apsw

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
from tidewheel.model.dependency import AT_ONCE as EDGES_AT_ONCE
from tidewheel.model.job import Job
from tidewheel.model.outcome import NO_DELAY
from tidewheel.model.submission import prepare_args
from tidewheel.store.dead_letters import ALL_DEAD, AT_ONCE
from tidewheel.store.pages import Page
from tidewheel.store.records import failure_of
from tidewheel.store.sqlite import depending, steering
from tidewheel.store.sqlite.connection import rows, value
from tidewheel.store.sqlite.searching import check_page, job_in, read_page
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import id_of, instant, micros, some

T = TypeVar("T")
_FIRST: Final = b""
_LAST: Final = b"\xff" * 16


class DeadLetters:
    """See `store.dead_letters.DeadLetterStore`."""

    max_args_bytes: int

    def _write(self, work: Callable[[Session], T]) -> "asyncio.Future[T]":
        raise NotImplementedError

    async def _read(self, look: Callable[[apsw.Connection], T]) -> T:
        raise NotImplementedError

    async def dead_groups(self, where: DeadFilter = ALL_DEAD, *, limit: int = 50) -> list[DeadGroup]:
        values = {**_values(where), "limit": check_page(limit)}
        return [_group(row) for row in await self._read(lambda connection: rows(connection, "dead_groups", values))]

    async def dead_letters(self, where: DeadFilter = ALL_DEAD, *, limit: int = 50, after: UUID | None = None) -> Page:
        beyond = _LAST if after is None else after.bytes
        values = {**_values(where), "limit": check_page(limit), "after": beyond}
        jobs, is_full, _ = await self._read(lambda connection: read_page(connection, "list_dead", values))
        return Page(jobs, jobs[-1].id if is_full else None)

    async def count_dead(self, where: DeadFilter = ALL_DEAD) -> int:
        values = _values(where)
        number: int = await self._read(lambda connection: value(connection, "count_dead", values))
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
        beyond = _FIRST if after is None else after.bytes
        values = {**_values(where), "limit": limit, "after": beyond}
        seen = await self._read(lambda connection: rows(connection, "next_dead", values))
        died = {id_of(job_id): token for job_id, token in seen}
        ids = list(died)
        await self._tell_children_of(ids)
        delays = dict(zip(ids, spread(len(ids), rate, start), strict=True))
        sent, now = await self._write(partial(_send, delays, where.tenant, died))
        return Redriven(sent, ids[-1] if len(ids) == limit else None, instant(now))

    async def redrive_edited(self, job_id: UUID, args: Mapping[str, Any], *, tenant: str | None = None) -> Job:
        await self._tell_children_of([job_id])
        return await self._write(lambda session: self._edit(session, job_id, args, tenant))

    async def _tell_children_of(self, jobs: list[UUID]) -> None:
        """Bring to an end what the ends of jobs began: later children are not to hear of these ends."""
        told = len(jobs)
        while told:
            told = await self._write(lambda session: depending.unblock(session, EDGES_AT_ONCE, jobs))

    def _edit(self, session: Session, job_id: UUID, args: Mapping[str, Any], tenant: str | None) -> Job:
        found = session.rows("get", id=job_id.bytes, tenant=tenant)
        if not found:
            raise NotFound("job", job_id)
        job = job_in(found[0])
        text = prepare_args(args, job.after, max_args_bytes=self.max_args_bytes)
        edited = session.rows("edit_dead", id=job_id.bytes, args=text)
        if not edited or not steering.redrive(session, {job_id: NO_DELAY}, tenant):
            raise not_sent(job)
        return job_in(session.rows("get", id=job_id.bytes, tenant=tenant)[0])


def _send(
    delays: Mapping[UUID, timedelta], tenant: str | None, died: Mapping[UUID, int], session: Session
) -> tuple[list[UUID], int]:
    return steering.redrive(session, delays, tenant, died), session.now


def _values(where: DeadFilter) -> dict[str, Any]:
    where = check_dead_filter(where)
    return {
        "tenant": where.tenant,
        "kind": where.kind,
        "queue": where.queue,
        "fingerprint": where.fingerprint,
        "since": some(micros, where.died_from),
        "until": some(micros, where.died_before),
    }


def _group(row: Any) -> DeadGroup:
    tenant, kind, fingerprint, jobs, first_seen, last_seen, sample, error = row
    return DeadGroup(
        tenant=tenant,
        kind=kind,
        fingerprint=fingerprint,
        jobs=jobs,
        first_seen=instant(first_seen),
        last_seen=instant(last_seen),
        sample=id_of(sample),
        error=failure_of(error),
    )
