"""Flow control: gates, which are flags on lanes, and limits, which are counters by key."""

from uuid import UUID

from tidewheel.errors import NotFound
from tidewheel.model.checks import check_name
from tidewheel.model.gate import Gate, GateSpec, check_gate, flag_of
from tidewheel.model.limit import Limit, check_limit
from tidewheel.store.postgres.connection import SQL, Connection
from tidewheel.store.postgres.parts import Part, gate_of, intern_tenant, tenant_id


class Flowing(Part):
    """See `store.base.FlowStore`."""

    async def close_gate(self, spec: GateSpec) -> Gate:
        check_gate(spec)
        values = (self._make_id(), spec.mode, spec.kind, spec.queue, spec.tenant, spec.reason, spec.author)

        async def close(connection: Connection) -> Gate:
            await connection.execute(SQL["lock_lanes"])
            gate = gate_of(await connection.fetchrow(SQL["close_gate"], *values))
            await _flag_lanes(connection)
            return gate

        return await self._db.transaction(close)

    async def open_gate(self, gate_id: UUID) -> None:
        async def remove(connection: Connection) -> None:
            await connection.execute(SQL["lock_lanes"])
            if await connection.fetchval(SQL["open_gate"], gate_id) is None:
                raise NotFound("gate", gate_id)
            await _flag_lanes(connection)

        await self._db.transaction(remove)
        self._hints.send()

    async def gates(self) -> list[Gate]:
        rows = await self._db.read(lambda connection: connection.fetch(SQL["gates"]))
        return [gate_of(row) for row in rows]

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


async def _flag_lanes(connection: Connection) -> None:
    """Make the flag of every lane say what the gates say; lanes that already do are left alone."""
    gates = [gate_of(row) for row in await connection.fetch(SQL["gates"])]
    changed = {}
    for row in await connection.fetch(SQL["all_lanes"]):
        flag = flag_of(gates, kind=row["kind"], queue=row["queue"], tenant=row["tenant"])
        if flag != row["gate"]:
            changed[row["id"]] = flag
    if changed:
        await connection.execute(SQL["note_lanes"])
        await connection.execute(SQL["flag_lanes"], list(changed), list(changed.values()))
