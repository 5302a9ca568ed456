"""The audit log: who changed what."""

from functools import partial
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import Meta

from tidewheel.model.audit import MAX_SUBJECT, AuditEntry, AuditFilter
from tidewheel.model.checks import check_instant, check_name, check_text
from tidewheel.server.cursors import seal_id, unseal_id
from tidewheel.server.endpoint import Answer, Call
from tidewheel.server.endpoints.looking import PageQuery
from tidewheel.server.endpoints.tenants import scope_of_all
from tidewheel.server.filters import scope_of
from tidewheel.server.job_request import Instant, Name
from tidewheel.server.reading import parameter
from tidewheel.server.service import Service


class AuditQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which entries to list; all conditions must hold."""

    action: Name | None = None
    """Such as `keys.write`."""
    subject: Annotated[str, Meta(min_length=1, max_length=MAX_SUBJECT)] | None = None
    """What it was done to: an id or a name."""
    key_id: UUID | None = None
    """By whom."""
    since: Instant | None = None
    before: Instant | None = None
    all_tenants: bool = False
    """Also of other tenants, and what concerns all; only for keys of all tenants."""


class EntryDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A change."""

    id: UUID
    at: Instant
    actor: str
    """For people: the name of the key, or how they came without one."""
    role: str
    key_id: UUID | None
    tenant: str | None
    """Whose it was; null if it concerned all."""
    action: str
    subject: str
    detail: Any


class EntryPage(msgspec.Struct, frozen=True, kw_only=True):
    """Entries, newest first. A page may be short, even empty, while there is a next one."""

    entries: list[EntryDocument]
    next_cursor: str | None


async def find(service: Service, call: Call[None, AuditQuery]) -> Answer:
    """Return a page of the log."""
    query = call.query
    tenant = scope_of_all(call, wanted=query.all_tenants)
    where = parameter(partial(_filter_of, query, tenant))
    scope = scope_of(f"audit/{tenant or '*'}", query)
    page = await service.store.audited(where, limit=query.limit, after=unseal_id(scope, query.cursor))
    documents = [_document(entry) for entry in page.entries]
    return Answer(EntryPage(entries=documents, next_cursor=seal_id(scope, page.next)))


def _filter_of(query: AuditQuery, tenant: str | None) -> AuditFilter:
    return AuditFilter(
        tenant=tenant,
        action=None if query.action is None else check_name("action", query.action),
        subject=None if query.subject is None else check_text("subject", query.subject, MAX_SUBJECT),
        key_id=query.key_id,
        since=None if query.since is None else check_instant("since", query.since),
        before=None if query.before is None else check_instant("before", query.before),
    )


def _document(entry: AuditEntry) -> EntryDocument:
    return EntryDocument(**msgspec.structs.asdict(entry))
