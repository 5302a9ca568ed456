"""Gates: flags on lanes. They move no job, and are in effect with the next claim of any process."""

from uuid import UUID

from tidewheel.errors import NotFound
from tidewheel.model.gate import Gate, GateMode, GateSpec, check_gate, expiry_of, flag_of, matches, why_stopped
from tidewheel.model.version import check_gate_version
from tidewheel.store.postgres.connection import SQL, Connection
from tidewheel.store.postgres.parts import Part, gate_of


class Gating(Part):
    """See `store.gating.GateStore`."""

    async def close_gate(self, spec: GateSpec) -> Gate:
        check_gate(spec)
        place = (self._make_id(), spec.mode, spec.kind, spec.queue, spec.tenant, spec.reason, spec.author)

        async def close(connection: Connection) -> Gate:
            await connection.execute(SQL["lock_lanes"])
            expires_at = expiry_of(spec, await connection.fetchval(SQL["store_time"]))
            told = (spec.rate, expires_at, spec.stop_running)
            gate = gate_of(await connection.fetchrow(SQL["close_gate"], *place, *told))
            await _flag_lanes(connection)
            return gate

        gate = await self._db.transaction(close)
        # After the commit: whoever claims now is stopped by the flag, and a claim under way by the duty.
        await self._stop_behind([gate])
        self._hints.send()  # what is slow now may have been held
        return gate

    async def open_gate(self, gate_id: UUID, *, version: int | None = None) -> None:
        async def remove(connection: Connection) -> None:
            await connection.execute(SQL["lock_lanes"])
            known = map(gate_of, await connection.fetch(SQL["gates"]))
            check_gate_version(next((gate for gate in known if gate.id == gate_id), None), version)
            if await connection.fetchval(SQL["open_gate"], gate_id) is None:
                raise NotFound("gate", gate_id)
            await _flag_lanes(connection)

        await self._db.transaction(remove)
        self._hints.send()

    async def gates(self) -> list[Gate]:
        rows = await self._db.read(lambda connection: connection.fetch(SQL["gates"]))
        return [gate_of(row) for row in rows]

    async def tend_gates(self) -> int:
        async def open_expired(connection: Connection) -> int:
            await connection.execute(SQL["lock_lanes"])
            opened = await connection.fetch(SQL["open_expired"])
            if opened:
                await _flag_lanes(connection)
            return len(opened)

        opened = 0
        if await self._db.read(lambda connection: connection.fetchval(SQL["any_expired"])):
            opened = await self._db.transaction(open_expired)
        asked = await self._stop_behind(await self.gates())
        if opened:
            self._hints.send()
        return opened + asked

    async def _stop_behind(self, gates: list[Gate]) -> int:
        """Ask what runs behind gates to stop, where they say so; return how many were asked."""
        stopping = [gate for gate in gates if gate.stop_running]

        async def stop(connection: Connection) -> int:
            lanes = await connection.fetch(SQL["all_lanes"])
            asked = 0
            for gate in stopping:
                behind = [row["id"] for row in lanes if matches(gate, kind=row[3], queue=row[2], tenant=row[1])]
                held = gate.mode is GateMode.HOLD
                asked += len(await connection.fetch(SQL["stop_behind"], behind, why_stopped(gate), held))
            return asked

        asked = await self._db.transaction(stop) if stopping else 0
        if asked:
            self._hints.send()
        return asked


async def _flag_lanes(connection: Connection) -> None:
    """Make the flag of every lane say what the gates say; lanes that already do are left alone.

    Claimers read the lanes anew in any case: which gates slow a lane does not show in its flag.
    """
    gates = [gate_of(row) for row in await connection.fetch(SQL["gates"])]
    changed = {}
    for row in await connection.fetch(SQL["all_lanes"]):
        flag = flag_of(gates, kind=row["kind"], queue=row["queue"], tenant=row["tenant"])
        if flag != row["gate"]:
            changed[row["id"]] = flag
    await connection.execute(SQL["note_lanes"])
    if changed:
        await connection.execute(SQL["flag_lanes"], list(changed), list(changed.values()))
