"""Gates: an operator's switch on all jobs of a kind, a queue or a tenant."""

import enum
from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_name, check_text


class GateMode(enum.StrEnum):
    """What a gate does to the jobs behind it. Written into lanes, so the value is stored."""

    HOLD = "hold"
    DROP = "drop"


OPEN = "open"


class GateSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs to close the gate on; None matches all, but not all three may be None."""

    mode: GateMode
    kind: str | None = None
    queue: str | None = None
    tenant: str | None = None
    reason: str = ""
    author: str = ""


class Gate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A closed gate."""

    id: UUID
    mode: GateMode
    kind: str | None = None
    queue: str | None = None
    tenant: str | None = None
    reason: str = ""
    author: str = ""
    created_at: datetime


def check_gate(spec: GateSpec) -> None:
    """Refuse gates on nothing and names that cannot be."""
    if spec.kind is spec.queue is spec.tenant is None:
        raise Invalid("gate", "must name a kind, a queue or a tenant")
    for field in ("kind", "queue", "tenant"):
        if (value := getattr(spec, field)) is not None:
            check_name(field, value)
    check_text("reason", spec.reason, 1000)
    check_text("author", spec.author, 200)


def matches(gate: Gate | GateSpec, *, kind: str, queue: str, tenant: str) -> bool:
    """Tell whether a lane lies behind this gate."""
    return gate.kind in (None, kind) and gate.queue in (None, queue) and gate.tenant in (None, tenant)


def flag_of(gates: Iterable[Gate], *, kind: str, queue: str, tenant: str) -> str:
    """Return what a lane's flag should say: the strongest of the gates it lies behind."""
    modes = {gate.mode for gate in gates if matches(gate, kind=kind, queue=queue, tenant=tenant)}
    return next((mode.value for mode in (GateMode.DROP, GateMode.HOLD) if mode in modes), OPEN)
