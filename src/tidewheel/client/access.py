"""The calls of the client that are about who may do what: keys, tenants and the audit log."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Final, TypedDict, Unpack
from urllib.parse import quote
from uuid import UUID

import msgspec

from tidewheel.client.options import Duration, in_query, plain
from tidewheel.model.access import Role
from tidewheel.model.api_key import ApiKey
from tidewheel.model.audit import AuditEntry
from tidewheel.model.checks import parse_duration
from tidewheel.model.tenant import Tenant
from tidewheel.store.remote.transport import Transport, read

PAGE: Final = 200


class CreatedKey(ApiKey, frozen=True, kw_only=True):
    """A key that was just made."""

    key: str
    """What opens doors. It is shown this once: only a digest of it is kept."""

    def __repr__(self) -> str:
        return f"CreatedKey({self.prefix}…)"


class KeyPage(msgspec.Struct, frozen=True):
    """Keys, newest first."""

    keys: list[ApiKey]
    next_cursor: str | None


class TenantDocument(msgspec.Struct, frozen=True):
    """A tenant as the server shows it."""

    name: str
    weight: float
    max_queued: int | None
    max_payload: int | None
    keep_logs: str | None

    def record(self) -> Tenant:
        keep = None if self.keep_logs is None else parse_duration(self.keep_logs, "keep_logs")
        return Tenant(self.name, self.weight, self.max_queued, self.max_payload, keep)


class TenantList(msgspec.Struct, frozen=True):
    """Tenants, by name."""

    tenants: list[TenantDocument]


class EntryPage(msgspec.Struct, frozen=True):
    """Entries of the audit log, newest first."""

    entries: list[AuditEntry]
    next_cursor: str | None


class AuditConditions(TypedDict, total=False):
    """Which entries; all conditions must hold."""

    action: str
    """Such as `keys.write`."""
    subject: str
    """What it was done to: an id or a name."""
    key_id: UUID
    since: datetime
    before: datetime


class AccessCalls:
    """A part of `AsyncClient`."""

    _transport: Transport

    async def keys(self, *, all_tenants: bool = False) -> AsyncIterator[ApiKey]:
        """Return all keys of a tenant, or of every one, newest first; expired and revoked ones are among them."""
        query: dict[str, Any] = {"limit": PAGE, "all_tenants": str(all_tenants).lower()}
        while True:
            page = await self._transport.get("/v1/keys", KeyPage, query)
            for key in page.keys:
                yield key
            if page.next_cursor is None:
                return
            query["cursor"] = page.next_cursor

    async def create_key(
        self,
        name: str,
        role: Role | str,
        *,
        all_tenants: bool = False,
        expires_in: Duration | None = None,
        rate: float | None = None,
        burst: int | None = None,
    ) -> CreatedKey:
        """Make a key for the tenant one works in, or for all. Raises Invalid, Forbidden."""
        body = {
            "name": name,
            "role": role,
            "all_tenants": all_tenants,
            "expires_in": plain(expires_in),
            "rate": rate,
            "burst": burst,
        }
        given = {field: value for field, value in body.items() if value is not None}
        return await self._transport.post("/v1/keys", given, CreatedKey, safe=False)

    async def revoke_key(self, key_id: UUID) -> ApiKey:
        """Make a key open nothing any more. Raises NotFound."""
        return read(await self._transport.write("DELETE", f"/v1/keys/{key_id}", safe=True), ApiKey)

    async def tenants(self) -> list[Tenant]:
        """Return the tenants that one may see, by name."""
        return [tenant.record() for tenant in (await self._transport.get("/v1/tenants", TenantList)).tenants]

    async def set_tenant(
        self,
        name: str,
        *,
        weight: float = 1.0,
        max_queued: int | None = None,
        max_payload: int | None = None,
        keep_logs: Duration | None = None,
    ) -> Tenant:
        """Give a tenant its share and bounds; what is left out is as for one that was given nothing."""
        body = {
            "weight": weight,
            "max_queued": max_queued,
            "max_payload": max_payload,
            "keep_logs": plain(keep_logs),
        }
        content = await self._transport.write("PUT", f"/v1/tenants/{quote(name, safe='')}", body, safe=True)
        return read(content, TenantDocument).record()

    async def audit(self, *, all_tenants: bool = False, **where: Unpack[AuditConditions]) -> AsyncIterator[AuditEntry]:
        """Return who changed what, newest first; with `all_tenants` also what concerns all."""
        query: dict[str, Any] = in_query(where) | {"limit": PAGE, "all_tenants": str(all_tenants).lower()}
        while True:
            page = await self._transport.get("/v1/audit", EntryPage, query)
            for entry in page.entries:
                yield entry
            if page.next_cursor is None:
                return
            query["cursor"] = page.next_cursor
