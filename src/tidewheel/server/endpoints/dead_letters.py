"""Dead letters: what died of what, and sending it round again."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any, Final, NamedTuple
from uuid import UUID

import msgspec
from msgspec import Meta

from tidewheel.errors import Invalid, TooMany
from tidewheel.model.access import Action
from tidewheel.model.dead_letter import MOST_AT_ONCE, DeadFilter, DeadGroup, Redriven, check_dead_filter, check_rate
from tidewheel.model.outcome import Failure
from tidewheel.server.cursors import seal_id, unseal_id
from tidewheel.server.endpoint import Answer, Call, NoQuery
from tidewheel.server.filters import MOST_PER_CALL, MOST_PER_PAGE, scope_of
from tidewheel.server.job_document import JobDocument, job_document
from tidewheel.server.job_request import Instant, Name
from tidewheel.server.names import id_in
from tidewheel.server.reading import parameter
from tidewheel.server.recording import record
from tidewheel.server.room import room_for, room_up_to
from tidewheel.server.service import Service
from tidewheel.tasks.builtin import check_call

ACCEPTED: Final = 202
PIECE: Final = 500
"""How many are sent round in one transaction."""


class DeadConditions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of them must hold."""

    kind: Name | None = None
    queue: Name | None = None
    fingerprint: Annotated[str, Meta(max_length=100)] | None = None
    """That of a group."""
    died_from: Instant | None = None
    died_before: Instant | None = None


class GroupQuery(DeadConditions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters to group."""

    limit: Annotated[int, Meta(ge=1, le=MOST_PER_PAGE)] = 50


class DeadQuery(DeadConditions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters to list."""

    limit: Annotated[int, Meta(ge=1, le=MOST_PER_PAGE)] = 50
    cursor: Annotated[str, Meta(max_length=200)] | None = None
    """The `next_cursor` of the page before."""
    after: UUID | None = None
    """Begin after the job with this id instead."""
    full: bool = False
    """With arguments."""


class RedriveRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters to send round again, and how fast."""

    where: DeadConditions = DeadConditions()
    rate: float | None = None
    """How many become due in a second; all at once if it is not given."""
    dry_run: bool = False
    """Only count them."""
    limit: Annotated[int, Meta(ge=1, le=MOST_PER_CALL)] = 1_000
    """How many at most; `more` tells whether there are others."""
    start: Annotated[float, Meta(ge=0, le=31_536_000)] = 0.0
    """After how many seconds the first becomes due; for whoever goes on, the `next_start` of the answer before."""
    after: UUID | None = None
    """Begin after the job with this id; for whoever goes on, the `next_after` of the answer before."""
    with_ids: bool = False
    """Also tell which ones went."""


class EditRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to send round."""

    args: Mapping[str, Any] | None = None
    """Other arguments, all of them; the old ones if they are not given."""


class GroupDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Dead letters of one kind that seem to have one cause."""

    tenant: str
    kind: str
    fingerprint: str
    jobs: int
    first_seen: Instant
    last_seen: Instant
    sample: UUID
    """The youngest of them."""
    error: Failure | None
    """What the sample says."""


class GroupList(msgspec.Struct, frozen=True, kw_only=True):
    """Groups, the largest first."""

    groups: list[GroupDocument]


class DeadPage(msgspec.Struct, frozen=True, kw_only=True):
    """Dead letters, newest first. A page may be short, even empty, while there is a next one."""

    jobs: list[JobDocument]
    next_cursor: str | None
    """Leads to the next page; null at the end."""
    next_after: UUID | None
    """The same as an id, for `after`."""


class RedriveAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a redrive did, or would do."""

    matched: int
    """How many were found; of a dry run all that there are."""
    done: int
    """How many were sent round."""
    more: bool
    """Whether there are others still."""
    next_start: float
    """When the next one would become due at this rate, in seconds from now."""
    next_after: UUID | None = None
    """Where to go on; null at the end."""
    as_of: Instant | None = None
    """Before when the next ones should have died, for those that die again meanwhile have had their turn."""
    ids: list[UUID] | None = None
    """Which ones went, for those who asked."""
    dry_run: bool


async def groups(service: Service, call: Call[None, GroupQuery]) -> Answer:
    """Return the groups of dead letters."""
    where = parameter(partial(_filter, call.query, call.scope))
    found = await service.views.ask(lambda store: store.dead_groups(where, limit=call.query.limit))
    return Answer(GroupList(groups=[_group(group) for group in found]))


async def find(service: Service, call: Call[None, DeadQuery]) -> Answer:
    """Return a page of dead letters."""
    query = call.query
    where = parameter(partial(_filter, query, call.scope))
    scope = scope_of("dead-letters", query)
    after = unseal_id(scope, query.cursor) or query.after
    page = await service.views.ask(lambda store: store.dead_letters(where, limit=query.limit, after=after))
    now = service.clock.now()
    documents = [job_document(job, now, full=query.full) for job in page.jobs]
    return Answer(DeadPage(jobs=documents, next_cursor=seal_id(scope, page.next), next_after=page.next))


async def redrive(service: Service, call: Call[RedriveRequest, NoQuery]) -> Answer:
    """Send dead letters round again, or count them."""
    request, rate = call.body, check_rate(call.body.rate)
    where = _where(request.where, call.scope)
    if request.dry_run:
        number = await service.store.count_dead(where)
        return Answer(RedriveAnswer(matched=number, done=0, more=False, next_start=request.start, dry_run=True))
    try:
        went = await _redrive(service, request, where)
    except BaseException:
        # Some of it may have been done, and that must not go unseen.
        service.audit.note(call.actor, Action.JOBS_RETRY, tenant=call.tenant, interrupted=True, **_told(request))
        raise
    done = len(went.ids)
    await record(service, call, Action.JOBS_RETRY, jobs=done, **_told(request))
    answer = RedriveAnswer(
        matched=done,
        done=done,
        more=went.next is not None and await service.store.count_dead(went.where) > 0,
        next_start=request.start + (0.0 if rate is None else done / rate),
        next_after=went.next,
        as_of=went.as_of,
        ids=went.ids if request.with_ids else None,
        dry_run=False,
    )
    return Answer(answer)


class Went(NamedTuple):
    """Dead letters that were sent round."""

    ids: list[UUID]
    where: DeadFilter
    """What was looked for in the end."""
    next: UUID | None
    """Where it goes on."""
    as_of: datetime
    """When the first went."""


async def _redrive(service: Service, request: RedriveRequest, where: DeadFilter) -> Went:
    """Send dead letters round, piece by piece."""
    rate, after, as_of = request.rate, request.after, None
    ids: list[UUID] = []
    while True:
        start = request.start + (0.0 if rate is None else len(ids) / rate)
        limit = min(PIECE, MOST_AT_ONCE, request.limit - len(ids))
        try:
            piece = await _piece(service, where, Turn(rate, timedelta(seconds=start), limit, after))
        except TooMany:  # of those that went before, whoever asked must hear
            if as_of is None:
                raise
            return Went(ids, where, after, as_of)
        ids, after, as_of = [*ids, *piece.jobs], piece.next, as_of or piece.as_of
        if after is None or len(ids) >= request.limit:
            return Went(ids, where, after, as_of)
        if where.died_before is None:  # what dies again meanwhile has had its turn
            where = msgspec.structs.replace(where, died_before=piece.as_of)


class Turn(NamedTuple):
    """Which dead letters go next, and when."""

    rate: float | None
    start: timedelta
    limit: int
    after: UUID | None


async def _piece(service: Service, where: DeadFilter, turn: Turn) -> Redriven:
    """Send as many round in one transaction as their tenant has room for."""
    async with room_up_to(service.quotas, where.tenant, turn.limit) as room:
        piece = await service.store.redrive_dead(
            where, rate=turn.rate, start=turn.start, limit=room.jobs, after=turn.after
        )
        room.used = len(piece.jobs)
        return piece


async def retry(service: Service, call: Call[EditRequest, NoQuery]) -> Answer:
    """Send one dead letter round again, with other arguments if some are given."""
    job_id, args, tenant = id_in(call), call.body.args, call.scope
    known = await service.store.get(job_id, tenant=tenant)
    if args is not None:
        check_call(known.kind, args)
    size = 0 if args is None else len(msgspec.json.encode(args))
    async with room_for(service.quotas, known.tenant, 1, size=size) as room:
        job = await service.store.redrive_edited(job_id, known.args if args is None else args, tenant=tenant)
        room.used = 1
    await record(service, call, Action.JOBS_RETRY, job_id, tenant=job.tenant, edited=call.body.args is not None)
    return Answer(job_document(job, service.clock.now()), ACCEPTED)


def _told(request: RedriveRequest) -> dict[str, Any]:
    """Return what the audit log says of a redrive."""
    named = {name: value for name, value in msgspec.to_builtins(request.where).items() if value is not None}
    return {"where": named, "rate": request.rate}


def _where(conditions: DeadConditions, tenant: str | None) -> DeadFilter:
    try:
        return _filter(conditions, tenant)
    except Invalid as error:
        raise Invalid(f"where.{error.field}", error.why) from None


def _filter(conditions: DeadConditions, tenant: str | None) -> DeadFilter:
    return check_dead_filter(
        DeadFilter(
            tenant=tenant,
            kind=conditions.kind,
            queue=conditions.queue,
            fingerprint=conditions.fingerprint,
            died_from=conditions.died_from,
            died_before=conditions.died_before,
        )
    )


def _group(group: DeadGroup) -> GroupDocument:
    return GroupDocument(
        tenant=group.tenant,
        kind=group.kind,
        fingerprint=group.fingerprint,
        jobs=group.jobs,
        first_seen=group.first_seen,
        last_seen=group.last_seen,
        sample=group.sample,
        error=group.error,
    )
