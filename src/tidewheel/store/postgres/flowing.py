"""Flow control: limits, which are counters by key."""

from tidewheel.errors import NotFound
from tidewheel.model.checks import check_name
from tidewheel.model.limit import Limit, check_limit
from tidewheel.store.postgres.connection import SQL, Connection
from tidewheel.store.postgres.parts import Part, intern_tenant, tenant_id


class Flowing(Part):
    """See `store.base.FlowStore`."""

    async def set_limit(self, key: str, most: int, *, tenant: str = "default") -> Limit:
        check_limit(key, most)
        check_name("tenant", tenant)

        async def put(connection: Connection) -> Limit:
            number = await intern_tenant(connection, tenant)
            await connection.execute(SQL["set_limit"], number, key, most)
            await connection.fetch(SQL["recount_limits"], [number], key)
            await connection.fetch(SQL["release_waiters"], [number], [key])
            rows = await connection.fetch(SQL["limits"], tenant)
            return next(Limit(*row) for row in rows if row["key"] == key)

        limit = await self._db.transaction(put)
        self._hints.send()
        return limit

    async def remove_limit(self, key: str, *, tenant: str = "default") -> None:
        check_name("tenant", tenant)

        async def remove(connection: Connection) -> None:
            number = await tenant_id(connection, tenant)
            if await connection.fetchval(SQL["remove_limit"], number, key) is None:
                raise NotFound("limit", key)
            await connection.fetch(SQL["release_waiters"], [number], [key])

        await self._db.transaction(remove)
        self._hints.send()

    async def limits(self, *, tenant: str | None = None) -> list[Limit]:
        rows = await self._db.read(lambda connection: connection.fetch(SQL["limits"], tenant))
        return [Limit(*row) for row in rows]

    async def repair_limits(self) -> int:
        async def repair(connection: Connection) -> tuple[int, int]:
            rows = await connection.fetch(SQL["lock_all_limits"])
            wrong = await connection.fetch(SQL["recount_limits"], list({row["tenant"] for row in rows}), None)
            # Also keys that have no limit any more: whoever was locked when it was removed still waits.
            waited = await connection.fetch(SQL["keys_waited_for"])
            tenants, keys = [row["tenant"] for row in waited], [row["key"] for row in waited]
            released = await connection.fetch(SQL["release_waiters"], tenants, keys)
            return len(wrong), len(released)

        wrong, released = await self._db.transaction(repair)
        if released:
            self._hints.send()
        return wrong
