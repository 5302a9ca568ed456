"""Steering: cancel jobs, and send them round again; one, or all that meet some conditions."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Annotated, Any, Final, NamedTuple
from uuid import UUID

import msgspec
from msgspec import Meta

from tidewheel.errors import Conflict, Invalid, NotFound, TooMany
from tidewheel.model.access import Action
from tidewheel.model.states import ACTIVE, REDRIVABLE, State
from tidewheel.server.endpoint import Answer, Call, NoQuery
from tidewheel.server.filters import BulkRequest, Conditions, filter_of
from tidewheel.server.job_document import job_document
from tidewheel.server.names import id_in
from tidewheel.server.recording import record
from tidewheel.server.room import room_for, room_up_to
from tidewheel.server.service import Service
from tidewheel.store.base import JobFilter

OK: Final = 200
ACCEPTED: Final = 202
PAGE: Final = 500
AT_ONCE: Final = 50
MOST_COUNTED: Final = 50_000
"""How far a dry run counts."""


class CancelRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a job is cancelled."""

    reason: Annotated[str, Meta(max_length=1000)] = ""


class BulkAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a bulk action did, or would do."""

    matched: int
    """How many jobs met the conditions."""
    done: int
    """For how many of them it was done; others were faster with the rest."""
    more: bool
    """Whether there are others still."""
    dry_run: bool


class Acted(NamedTuple):
    """What an action did with some jobs."""

    done: int
    full: bool = False
    """Whether there is no room for more."""


Act = Callable[[Sequence[UUID]], Awaitable[Acted]]


class Bulk(NamedTuple):
    """An action on many jobs."""

    action: Action
    states: Sequence[State]
    """Of which state the jobs must be."""
    act: Act
    """Returns for how many of these it was done."""


async def cancel(service: Service, call: Call[CancelRequest, NoQuery]) -> Answer:
    """Cancel a job: one that waits never starts, one that runs is asked to stop."""
    job = await service.store.cancel(id_in(call), tenant=call.scope, reason=call.body.reason)
    service.audit.note(call.actor, Action.JOBS_CANCEL, job.id, tenant=job.tenant, reason=call.body.reason or None)
    return Answer(job_document(job, service.clock.now()), ACCEPTED if job.cancelling else OK)


async def retry(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Send a job that ended without success round again."""
    job_id, tenant = id_in(call), call.scope
    owner = (await service.store.get(job_id, tenant=tenant)).tenant
    async with room_for(service.quotas, owner, 1) as room:
        redriven = await service.store.redrive([job_id], tenant=tenant)
        room.used = len(redriven)
    job = await service.store.get(job_id, tenant=tenant)
    if not redriven:
        raise Conflict(f"job {job_id} is {job.state} and was not sent round again")
    await record(service, call, Action.JOBS_RETRY, job_id)
    return Answer(job_document(job, service.clock.now()), ACCEPTED)


async def erase(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Forget what a finished job was about; the store writes down who wanted it."""
    job = await service.store.get(id_in(call), tenant=call.scope)
    left = await service.eraser.erase(job.id, call.actor)
    return Answer(job_document(left, service.clock.now()))


async def cancel_many(service: Service, call: Call[BulkRequest, NoQuery]) -> Answer:
    """Cancel all active jobs that meet the conditions."""
    tenant, reason = call.scope, call.body.reason

    async def cancel_some(ids: Sequence[UUID]) -> Acted:
        done = 0
        for first in range(0, len(ids), AT_ONCE):
            group = (service.store.cancel(job_id, tenant=tenant, reason=reason) for job_id in ids[first:][:AT_ONCE])
            ends = await asyncio.gather(*group, return_exceptions=True)
            failures = [end for end in ends if isinstance(end, BaseException) and not isinstance(end, NotFound)]
            if failures:
                raise failures[0]
            done += sum(not isinstance(end, BaseException) for end in ends)
        return Acted(done)

    return await _many(service, call, Bulk(Action.JOBS_CANCEL, ACTIVE, cancel_some))


async def retry_many(service: Service, call: Call[BulkRequest, NoQuery]) -> Answer:
    """Send all jobs round again that ended without success and meet the conditions."""

    async def redrive_some(ids: Sequence[UUID]) -> Acted:
        async with room_up_to(service.quotas, call.scope, len(ids)) as room:
            room.used = len(await service.store.redrive(ids[: room.jobs], tenant=call.scope))
            return Acted(room.used, full=room.jobs < len(ids))

    return await _many(service, call, Bulk(Action.JOBS_RETRY, REDRIVABLE, redrive_some))


async def _many(service: Service, call: Call[BulkRequest, NoQuery], bulk: Bulk) -> Answer:
    request = call.body
    where = _filter_of(request.where, call.scope, bulk.states)
    if request.dry_run:
        return Answer(await _act(service, where, request, None))
    told: dict[str, Any] = {"where": _told(request.where), "reason": request.reason or None}
    try:
        answer = await _act(service, where, request, bulk.act)
    except BaseException:
        # Some of it may have been done, and that must not go unseen.
        service.audit.note(call.actor, bulk.action, tenant=call.tenant, **told, interrupted=True)
        raise
    await record(service, call, bulk.action, jobs=answer.done, **told)
    return Answer(answer)


async def _act(
    service: Service,
    where: JobFilter,
    request: BulkRequest,
    act: Act | None,
) -> BulkAnswer:
    """Do something with all jobs that meet the conditions, or only count them."""
    most = MOST_COUNTED if act is None else request.limit
    matched, done, more = 0, 0, False
    async for page in _pages(service, where):
        ids = page[: most - matched]
        acted = Acted(0) if act is None else await _unless_full(act, ids, done)
        matched, done = matched + len(ids), done + acted.done
        if acted.full or len(ids) < len(page):
            more = True
            break
    return BulkAnswer(matched=matched, done=done, more=more, dry_run=act is None)


async def _unless_full(act: Act, ids: Sequence[UUID], done: int) -> Acted:
    """Act, and raise TooMany only if nothing was done before, for else whoever asked must hear of that."""
    try:
        return await act(ids)
    except TooMany:
        if not done:
            raise
        return Acted(0, full=True)


def _told(where: Conditions) -> dict[str, Any]:
    """Return the conditions that were named."""
    named: dict[str, Any] = {name: value for name, value in msgspec.to_builtins(where).items() if value is not None}
    return named


def _filter_of(where: Conditions, tenant: str | None, states: Sequence[State]) -> JobFilter:
    if where == Conditions():
        raise Invalid("where", "must name at least one condition")
    try:
        chosen = filter_of(where, tenant)
    except Invalid as error:
        raise Invalid(f"where.{error.field}", error.why) from None
    return msgspec.structs.replace(chosen, states=frozenset(states) & (chosen.states or frozenset(states)))


async def _pages(service: Service, where: JobFilter) -> AsyncIterator[list[UUID]]:
    """Return the ids of the jobs that meet the conditions, page by page; what was asked to stop already is left out."""
    after: UUID | None = None
    while where.states:
        page = await service.store.find(where, limit=PAGE, after=after)
        yield [job.id for job in page.jobs if not job.cancelling]
        if (after := page.next) is None:
            return
