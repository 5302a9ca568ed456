"""Gates, which are flags on lanes."""

from uuid import UUID

import apsw

from tidewheel.errors import NotFound
from tidewheel.model.gate import Gate, GateSpec, flag_of
from tidewheel.store.sqlite.connection import rows
from tidewheel.store.sqlite.lanes import gate_of
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import json_text


def close_gate(session: Session, spec: GateSpec) -> Gate:
    """See `store.base.FlowStore.close_gate`."""
    place = {"kind": spec.kind, "queue": spec.queue, "tenant": spec.tenant}
    told = {"mode": spec.mode.value, "reason": spec.reason, "author": spec.author, "now": session.now}
    gate_id: bytes | None = session.value("close_gate", **place, **told)
    if gate_id is None:
        gate_id = session.make_id().bytes
        session.run("add_gate", id=gate_id, **place, **told)
    _flag_lanes(session)
    return next(gate for gate in session.lanes.gates if gate.id.bytes == gate_id)


def open_gate(session: Session, gate_id: UUID) -> None:
    """See `store.base.FlowStore.open_gate`."""
    if session.value("open_gate", id=gate_id.bytes) is None:
        raise NotFound("gate", gate_id)
    _flag_lanes(session)
    session.stir()


def gates(connection: apsw.Connection) -> list[Gate]:
    """See `store.base.FlowStore.gates`."""
    return [gate_of(row) for row in rows(connection, "gates", {})]


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
