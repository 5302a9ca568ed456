"""Keys: given out, recognised and revoked; and tenants."""

from uuid import UUID

from tidewheel.errors import NotFound
from tidewheel.model.access import Actor
from tidewheel.model.api_key import USED_EVERY, ApiKey, KeySpec, Known, Proof, check_key_spec
from tidewheel.model.tenant import Tenant, check_tenant
from tidewheel.store.access import check_keys_page
from tidewheel.store.access_rows import key_created, key_of, key_revoked, refuse_other_tenants, tenant_set
from tidewheel.store.postgres.auditing import Auditing
from tidewheel.store.postgres.connection import SQL, Connection, one
from tidewheel.store.postgres.parts import DIALECT, tenant_id

_LAST = UUID(int=2**128 - 1)


class Keys(Auditing):
    """See `store.access.KeyStore` and `TenantStore`."""

    async def create_key(self, spec: KeySpec, proof: Proof, *, by: Actor) -> ApiKey:
        check_key_spec(spec, by)
        return await self._db.transaction(lambda connection: self._add_key(connection, spec, proof, by))

    async def create_first_key(self, spec: KeySpec, proof: Proof, *, by: Actor) -> ApiKey | None:
        check_key_spec(spec, by)

        async def create(connection: Connection) -> ApiKey | None:
            await connection.execute(SQL["lock_first_key"])
            if await connection.fetchval(SQL["has_api_keys"]):
                return None
            return await self._add_key(connection, spec, proof, by)

        return await self._db.transaction(create)

    async def has_keys(self) -> bool:
        found: bool = await self._db.read(lambda connection: connection.fetchval(SQL["has_api_keys"]))
        return found

    async def find_key(self, prefix: str) -> Known | None:
        row = await self._db.read(lambda connection: connection.fetchrow(SQL["find_api_key"], prefix))
        return None if row is None else Known(key_of(row[:-2], DIALECT), row["digest"], row["now"])

    async def note_key_use(self, key_id: UUID) -> None:
        await self._db.write(lambda connection: connection.execute(SQL["note_api_key_use"], key_id, USED_EVERY))

    async def revoke_key(self, key_id: UUID, *, by: Actor) -> ApiKey:
        async def revoke(connection: Connection) -> ApiKey:
            revoked = await connection.fetchrow(SQL["revoke_api_key"], key_id, by.tenant)
            if revoked is not None:
                await self._audit(connection, [key_revoked(by, key_id, revoked["prefix"], revoked["tenant"])])
            return await _get(connection, key_id)

        key = await self._db.transaction(revoke)
        if by.tenant not in (None, key.tenant):
            raise NotFound("key", key_id)
        return key

    async def keys(self, *, tenant: str | None = None, limit: int = 100, after: UUID | None = None) -> list[ApiKey]:
        values = (after or _LAST, tenant, check_keys_page(limit))
        rows = await self._db.read(lambda connection: connection.fetch(SQL["api_keys"], *values))
        return [key_of(row, DIALECT) for row in rows]

    async def set_tenant(self, tenant: Tenant, *, by: Actor) -> Tenant:
        check_tenant(tenant)
        refuse_other_tenants(by)
        values = (tenant.name, float(tenant.weight), tenant.max_queued, tenant.max_payload, tenant.keep_logs)

        async def put(connection: Connection) -> Tenant:
            await connection.execute(SQL["lock_lanes"])
            await connection.execute(SQL["set_tenant"], *values)
            await connection.execute(SQL["note_lanes"])
            await self._audit(connection, [tenant_set(by, tenant)])
            return Tenant(*await one(connection, SQL["tenants"], tenant.name))

        return await self._db.transaction(put)

    async def count_unfinished(self, tenant: str, most: int) -> int:
        async def count(connection: Connection) -> int:
            number = await tenant_id(connection, tenant)
            return 0 if number is None else await connection.fetchval(SQL["count_unfinished"], number, most)

        return await self._db.read(count)

    async def _add_key(self, connection: Connection, spec: KeySpec, proof: Proof, by: Actor) -> ApiKey:
        key_id = self._make_id()
        values = (spec.tenant, spec.role, spec.name, by.name, spec.rate, spec.burst, spec.lifetime)
        await connection.execute(SQL["add_api_key"], key_id, *proof, *values)
        await self._audit(connection, [key_created(by, spec, key_id, proof.prefix)])
        return await _get(connection, key_id)


async def _get(connection: Connection, key_id: UUID) -> ApiKey:
    row = await connection.fetchrow(SQL["get_api_key"], key_id)
    if row is None:
        raise NotFound("key", key_id)
    return key_of(row, DIALECT)
