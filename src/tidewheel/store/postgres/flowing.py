"""Gates, which are flags on lanes."""

from uuid import UUID

from tidewheel.errors import NotFound
from tidewheel.model.gate import Gate, GateSpec, check_gate, flag_of
from tidewheel.store.postgres.connection import SQL, Connection
from tidewheel.store.postgres.parts import Part, gate_of


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
