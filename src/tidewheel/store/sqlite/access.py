"""The part of the store that is about keys, tenants, the audit log and erasure."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TypeVar
from uuid import UUID

import apsw

from tidewheel.clock import Clock
from tidewheel.model.access import Actor
from tidewheel.model.api_key import ApiKey, KeySpec, Known, Proof, check_key_spec
from tidewheel.model.audit import KEEP_AUDIT, AuditFilter, AuditPage, Change, prepare_changes
from tidewheel.model.job import Job
from tidewheel.model.tenant import Tenant, check_tenant
from tidewheel.store.access import check_keys_page
from tidewheel.store.access_rows import refuse_other_tenants, tenant_set
from tidewheel.store.sqlite import auditing, keys, sharing
from tidewheel.store.sqlite.connection import value
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import some, span

T = TypeVar("T")


class Access:
    """See `store.access`."""

    _clock: Clock

    def _write(self, work: Callable[[Session], T]) -> "asyncio.Future[T]":
        raise NotImplementedError

    async def _read(self, look: Callable[[apsw.Connection], T]) -> T:
        raise NotImplementedError

    async def create_key(self, spec: KeySpec, proof: Proof, *, by: Actor) -> ApiKey:
        check_key_spec(spec, by)
        return await self._write(lambda session: keys.create(session, spec, proof, by))

    async def create_first_key(self, spec: KeySpec, proof: Proof, *, by: Actor) -> ApiKey | None:
        check_key_spec(spec, by)
        return await self._write(lambda session: keys.create_first(session, spec, proof, by))

    async def has_keys(self) -> bool:
        return await self._read(keys.has_any)

    async def find_key(self, prefix: str) -> Known | None:
        return await self._read(lambda connection: keys.find(connection, prefix, self._clock.now()))

    async def note_key_use(self, key_id: UUID) -> None:
        await self._write(lambda session: keys.note_use(session, key_id))

    async def revoke_key(self, key_id: UUID, *, by: Actor) -> ApiKey:
        return await self._write(lambda session: keys.revoke(session, key_id, by))

    async def keys(self, *, tenant: str | None = None, limit: int = 100, after: UUID | None = None) -> list[ApiKey]:
        check_keys_page(limit)
        return await self._read(lambda connection: keys.page(connection, tenant, limit, after))

    async def set_tenant(self, tenant: Tenant, *, by: Actor) -> Tenant:
        check_tenant(tenant)
        refuse_other_tenants(by)
        return await self._write(lambda session: _set_tenant(session, tenant, by))

    async def count_unfinished(self, tenant: str, most: int) -> int:
        values = {"tenant": tenant, "most": most}
        number: int = await self._read(lambda connection: value(connection, "count_unfinished", values))
        return number

    async def audit(self, changes: Sequence[Change]) -> None:
        prepare_changes(changes)  # what is wrong with them is said before the writer is asked
        if changes:
            await self._write(lambda session: auditing.audit(session, changes))

    async def audited(self, where: AuditFilter, *, limit: int = 100, after: UUID | None = None) -> AuditPage:
        check_keys_page(limit)
        return await self._read(lambda connection: auditing.audited(connection, where, limit, after))

    async def retire_audit(self, *, keep: timedelta = KEEP_AUDIT, limit: int = 10_000) -> int:
        return await self._write(lambda session: auditing.retire(session, keep, limit))

    async def erase(self, job_id: UUID, *, by: Actor) -> Job:
        return await self._write(lambda session: auditing.erase(session, job_id, by))


def _set_tenant(session: Session, tenant: Tenant, by: Actor) -> Tenant:
    session.run(
        "set_tenant",
        name=tenant.name,
        weight=float(tenant.weight),
        max_queued=tenant.max_queued,
        max_payload=tenant.max_payload,
        keep_logs=some(span, tenant.keep_logs),
    )
    session.lanes.changed(session.connection)
    session.lanes.read(session.connection)
    auditing.audit(session, [tenant_set(by, tenant)])
    return sharing.tenants(session.connection, tenant.name)[0]
