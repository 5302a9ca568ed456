"""The shares of tenants."""

from tidewheel.model.checks import check_name
from tidewheel.model.tenant import Tenant, check_weight
from tidewheel.store.postgres.connection import SQL, Connection, one
from tidewheel.store.postgres.parts import Part, intern_tenant


class Sharing(Part):
    """See `store.sharing.ShareStore`."""

    async def set_weight(self, tenant: str, weight: float) -> Tenant:
        given = Tenant(check_name("tenant", tenant), check_weight(weight))

        async def put(connection: Connection) -> Tenant:
            number = await intern_tenant(connection, given.name)
            await connection.execute(SQL["set_weight"], number, given.weight)
            await connection.execute(SQL["note_lanes"])
            return Tenant(*await one(connection, SQL["tenants"], given.name))

        return await self._db.transaction(put)

    async def tenants(self, *, tenant: str | None = None) -> list[Tenant]:
        rows = await self._db.read(lambda connection: connection.fetch(SQL["tenants"], tenant))
        return [Tenant(*row) for row in rows]
