"""Gates: flags on lanes. They move no job, and are in effect with the next claim of any process."""

from uuid import UUID

import apsw

from tidewheel.errors import NotFound
from tidewheel.model.gate import Gate, GateMode, GateSpec, expiry_of, flag_of, matches, why_stopped
from tidewheel.model.version import check_gate_version
from tidewheel.store.sqlite.connection import rows
from tidewheel.store.sqlite.lanes import gate_of
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import instant, json_text, micros, some


def close_gate(session: Session, spec: GateSpec) -> Gate:
    """See `store.gating.GateStore.close_gate`."""
    now = session.now
    place = {"kind": spec.kind, "queue": spec.queue, "tenant": spec.tenant}
    told = {
        "mode": spec.mode.value,
        "reason": spec.reason,
        "author": spec.author,
        "now": now,
        "rate": spec.rate,
        "expires_at": some(micros, expiry_of(spec, instant(now))),
        "stop_running": int(spec.stop_running),
    }
    gate_id: bytes | None = session.value("close_gate", **place, **told)
    if gate_id is None:
        gate_id = session.make_id().bytes
        session.run("add_gate", id=gate_id, **place, **told)
    _flag_lanes(session)
    session.stir()  # whoever sleeps until something is due must look again, and what is slow now may have been held
    gate = next(gate for gate in session.lanes.gates if gate.id.bytes == gate_id)
    _stop_behind(session, gate, now)
    return gate


def open_gate(session: Session, gate_id: UUID, version: int | None) -> None:
    """See `store.gating.GateStore.open_gate`."""
    known = gates(session.connection)
    check_gate_version(next((gate for gate in known if gate.id == gate_id), None), version)
    if session.value("open_gate", id=gate_id.bytes) is None:
        raise NotFound("gate", gate_id)
    _flag_lanes(session)
    session.stir()


def tend_gates(session: Session) -> int:
    """See `store.gating.GateStore.tend_gates`."""
    now = session.now
    opened = len(session.rows("open_expired", now=now))
    if opened:
        _flag_lanes(session)
        session.stir()
    return opened + sum(_stop_behind(session, gate, now) for gate in session.lanes.gates)


def gates(connection: apsw.Connection) -> list[Gate]:
    """See `store.gating.GateStore.gates`."""
    return [gate_of(row) for row in rows(connection, "gates", {})]


def _stop_behind(session: Session, gate: Gate, now: int) -> int:
    """Ask what runs behind a gate to stop, if it says so; return how many were asked."""
    if not gate.stop_running:
        return 0
    lanes = [
        lane.id
        for lane in session.lanes.by_id.values()
        if matches(gate, kind=lane.kind, queue=lane.queue, tenant=lane.tenant_name)
    ]
    held = int(gate.mode is GateMode.HOLD)
    asked = session.rows("stop_behind", lanes=json_text(lanes), reason=why_stopped(gate), held=held, now=now)
    if asked:
        session.stir()
    return len(asked)


def _flag_lanes(session: Session) -> None:
    """Make the flag of every lane say what the gates say."""
    lanes = session.lanes
    lanes.changed(session.connection)
    lanes.read(session.connection)
    flags = [
        (lane.id, flag_of(lanes.gates, kind=lane.kind, queue=lane.queue, tenant=lane.tenant_name))
        for lane in lanes.by_id.values()
    ]
    session.run("flag_lanes", flags=json_text(flags))
    lanes.read(session.connection)
