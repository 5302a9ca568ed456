"""Looking at jobs: one, many, their attempts and their relatives."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final
from uuid import UUID

import msgspec
from msgspec import Meta

from tidewheel.model.dependency import Relative
from tidewheel.model.states import State
from tidewheel.model.why import Reason
from tidewheel.server.cursors import seal_id, unseal_id
from tidewheel.server.endpoint import Answer, Call, NoQuery
from tidewheel.server.filters import MOST_PER_PAGE, JobQuery, filter_of, scope_of
from tidewheel.server.job_document import AttemptDocument, JobDocument, attempt_document, job_document
from tidewheel.server.job_request import Instant
from tidewheel.server.names import id_in
from tidewheel.server.reading import parameter
from tidewheel.server.service import Service
from tidewheel.store.pages import MOST_ATTEMPTS, NEWEST


class PageQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which part of a list to return."""

    limit: Annotated[int, Meta(ge=1, le=MOST_PER_PAGE)] = 50
    cursor: Annotated[str, Meta(max_length=200)] | None = None
    """The `next_cursor` of the page before."""
    after: UUID | None = None
    """Begin after the job with this id instead."""


class JobPage(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs, newest first. A page may be short, even empty, while there is a next one."""

    jobs: list[JobDocument]
    next_cursor: str | None
    """Leads to the next page; null at the end."""
    next_after: UUID | None
    """The same as an id, for `after`."""


class AttemptQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which attempts to return."""

    limit: Annotated[int, Meta(ge=1, le=MOST_ATTEMPTS)] = MOST_ATTEMPTS
    before: Annotated[int, Meta(ge=0, le=NEWEST)] = NEWEST
    """Only those before the one with this token."""


class AttemptList(msgspec.Struct, frozen=True, kw_only=True):
    """The last attempts of a job, first to last: those that did not end in success, and the last one."""

    attempts: list[AttemptDocument]
    next_before: int | None
    """Leads to those before, as `before`; null if these are all."""


class RelativeDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A parent or a child of a job."""

    id: UUID
    kind: str | None
    state: State | None
    """Null if its record was removed."""


class RelativePage(msgspec.Struct, frozen=True, kw_only=True):
    """Parents or children of a job, by their ids."""

    jobs: list[RelativeDocument]
    next_cursor: str | None


class WhyDocument(msgspec.Struct, frozen=True, kw_only=True):
    """All that keeps a job from running now, or that it runs or has ended."""

    as_of: Instant
    state: State
    reasons: list[Reason]
    """At least one; `type` says which, `sentence` says it in words."""


async def get(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Return a job."""
    job_id = id_in(call)
    job = await service.views.ask(lambda store: store.get(job_id, tenant=call.scope))
    return Answer(job_document(job, service.clock.now()))


async def find(service: Service, call: Call[None, JobQuery]) -> Answer:
    """Return a page of jobs."""
    query = call.query
    where = parameter(partial(filter_of, query, call.scope))
    scope = scope_of(_JOBS, query)
    after = unseal_id(scope, query.cursor) or query.after
    page = await service.views.ask(lambda store: store.find(where, limit=query.limit, after=after))
    now = service.clock.now()
    documents = [job_document(job, now, full=query.full) for job in page.jobs]
    return Answer(JobPage(jobs=documents, next_cursor=seal_id(scope, page.next), next_after=page.next))


async def explain(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Return why a job does not run."""
    job_id = id_in(call)
    told = await service.views.ask(lambda store: store.why(job_id, tenant=call.scope))
    return Answer(WhyDocument(as_of=told.as_of, state=told.state, reasons=told.reasons))


async def attempts(service: Service, call: Call[None, AttemptQuery]) -> Answer:
    """Return the attempts of a job."""
    job_id, query = id_in(call), call.query
    found = await service.views.ask(
        lambda store: store.attempts(job_id, tenant=call.scope, before=query.before, limit=query.limit)
    )
    before = found[0].token if len(found) == query.limit else None
    return Answer(AttemptList(attempts=[attempt_document(attempt) for attempt in found], next_before=before))


async def parents(service: Service, call: Call[None, PageQuery]) -> Answer:
    """Return the jobs that a job waits or waited for."""
    job_id, query = id_in(call), call.query
    scope = f"parents/{job_id}"
    after = unseal_id(scope, query.cursor) or query.after
    found = await service.views.ask(
        lambda store: store.parents_of(job_id, limit=query.limit, after=after, tenant=call.scope)
    )
    return _relatives(scope, found, query.limit)


async def children(service: Service, call: Call[None, PageQuery]) -> Answer:
    """Return the jobs that wait or waited for a job."""
    job_id, query = id_in(call), call.query
    scope = f"children/{job_id}"
    after = unseal_id(scope, query.cursor) or query.after
    found = await service.views.ask(
        lambda store: store.children_of(job_id, limit=query.limit, after=after, tenant=call.scope)
    )
    return _relatives(scope, found, query.limit)


def _relatives(scope: str, found: Sequence[Relative], limit: int) -> Answer:
    documents = [RelativeDocument(id=one.job_id, kind=one.kind, state=one.state) for one in found]
    last = found[-1].job_id if len(found) == limit else None
    return Answer(RelativePage(jobs=documents, next_cursor=seal_id(scope, last)))


_JOBS: Final = "jobs"
