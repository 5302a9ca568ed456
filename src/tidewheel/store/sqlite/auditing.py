"""The audit log, and erasure, which leaves nothing else behind."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

import apsw

from tidewheel.errors import NotFinished, NotFound
from tidewheel.model.access import Actor
from tidewheel.model.audit import AuditFilter, AuditPage, Change, prepare_changes
from tidewheel.model.job import Job
from tidewheel.store.access_rows import SCAN, entry_of, job_erased
from tidewheel.store.sqlite.connection import rows, value
from tidewheel.store.sqlite.log_lines import unindex
from tidewheel.store.sqlite.phrases import erase_phrases, own_phrases
from tidewheel.store.sqlite.searching import job_in
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import DIALECT, id_of, micros, some, span

_OF_JOB: Final = ("erase_attempts", "erase_notes", "erase_logs", "erase_happenings", "erase_deliveries")
_LAST: Final = b"\xff" * 16


def audit(session: Session, changes: Sequence[Change]) -> None:
    """See `store.access.AuditStore.audit`."""
    now = session.now
    for row in prepare_changes(changes):
        session.run(
            "add_audit",
            id=session.make_id().bytes,
            now=now,
            actor=row.actor,
            role=row.role,
            key_id=None if row.key_id is None else row.key_id.bytes,
            tenant=row.tenant,
            action=row.action,
            subject=row.subject,
            detail=row.detail,
        )


def audited(connection: apsw.Connection, where: AuditFilter, limit: int, after: UUID | None) -> AuditPage:
    """See `store.access.AuditStore.audited`."""
    values = {
        "tenant": where.tenant,
        "after": _LAST if after is None else after.bytes,
        "action": where.action,
        "subject": where.subject,
        "key_id": None if where.key_id is None else where.key_id.bytes,
        "since": some(micros, where.since),
        "before": some(micros, where.before),
        "scan": SCAN,
        "limit": limit,
    }
    of_tenant = "" if where.tenant is None else "_of_tenant"
    entries = [entry_of(row, DIALECT) for row in rows(connection, f"audited{of_tenant}", values)]
    if len(entries) == limit:
        return AuditPage(entries, entries[-1].id)
    return AuditPage(entries, some(id_of, value(connection, f"audit_edge{of_tenant}", values)))


def retire(session: Session, keep: timedelta, limit: int) -> int:
    """See `store.access.AuditStore.retire_audit`."""
    until = session.now - span(keep)
    return len(session.rows("retire_audit", until=until, limit=limit))


def erase(session: Session, job_id: UUID, by: Actor) -> Job:
    """See `store.access.ErasureStore.erase`."""
    said = own_phrases(session, job_id)
    tenant = session.value("erase_job", id=job_id.bytes, tenant=by.tenant, now=session.now)
    if tenant is not None:
        unindex(session, job_id)
        erase_phrases(session, said)
        for step in _OF_JOB:
            session.run(step, id=job_id.bytes)
        audit(session, [job_erased(by, job_id, tenant)])
    found = session.rows("get", id=job_id.bytes, tenant=by.tenant)
    if not found:
        raise NotFound("job", job_id)
    job = job_in(found[0])
    if tenant is None:
        raise NotFinished(job_id, job.state)
    return job
