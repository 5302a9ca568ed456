"""Gates: an operator's switch on all jobs of a kind, a queue or a tenant."""

import enum
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_instant, check_name, check_text, shown
from tidewheel.model.pace import check_rate

LONGEST: Final = timedelta(days=3650)


class GateMode(enum.StrEnum):
    """What a gate does to the jobs behind it. Written into lanes, so the value is stored."""

    HOLD = "hold"
    DROP = "drop"
    SLOW = "slow"
    """Lets jobs start, all of them together no faster than its rate."""


OPEN: Final = "open"
_STRENGTH: Final = (GateMode.DROP, GateMode.HOLD, GateMode.SLOW)
"""Strongest first."""


class GateSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs to close the gate on; None matches all, but not all three may be None."""

    mode: GateMode
    kind: str | None = None
    queue: str | None = None
    tenant: str | None = None
    reason: str = ""
    author: str = ""
    rate: float | None = None
    """For a slow gate: how many jobs may start in a second."""
    expires_at: datetime | None = None
    """When it opens by itself; or `lasts`, counted from now by the clock of the store."""
    lasts: timedelta | None = None
    stop_running: bool = False
    """Whether what runs behind it is asked to stop: given back uncounted if it holds, cancelled if it drops."""


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
    rate: float | None = None
    ready_at: datetime | None = None
    """When a slow gate lets the next job through, or since when it would have."""
    expires_at: datetime | None = None
    stop_running: bool = False


def check_gate(spec: GateSpec) -> None:
    """Refuse gates on nothing, names that cannot be, and what does not go with the mode."""
    if spec.kind is spec.queue is spec.tenant is None:
        raise Invalid("gate", "must name a kind, a queue or a tenant")
    for field in ("kind", "queue", "tenant"):
        if (value := getattr(spec, field)) is not None:
            check_name(field, value)
    check_text("reason", spec.reason, 1000)
    check_text("author", spec.author, 200)
    _check_mode(spec)
    _check_end(spec)


def _check_end(spec: GateSpec) -> None:
    if spec.expires_at is not None:
        check_instant("expires_at", spec.expires_at)
        if spec.lasts is not None:
            raise Invalid("lasts", "must not be given together with expires_at")
    if spec.lasts is not None and not timedelta(0) < spec.lasts <= LONGEST:
        raise Invalid("lasts", f"must be more than nothing and at most ten years, not {spec.lasts}")


def _check_mode(spec: GateSpec) -> None:
    if not isinstance(spec.stop_running, bool):
        raise Invalid("stop_running", f"must be true or false, not {shown(spec.stop_running)}")
    if spec.mode is not GateMode.SLOW:
        if spec.rate is not None:
            raise Invalid("rate", f"is for slow gates, and this one is to {spec.mode}")
        return
    if spec.rate is None:
        raise Invalid("rate", "must be given for a slow gate")
    check_rate("rate", spec.rate)
    if spec.stop_running:
        raise Invalid("stop_running", "is for gates that hold or drop: a slow one lets jobs through")


def expiry_of(spec: GateSpec, now: datetime) -> datetime | None:
    """Return when a gate that is closed now opens by itself; an instant that has passed is refused."""
    if spec.lasts is not None:
        return now + spec.lasts
    if spec.expires_at is not None and spec.expires_at <= now:
        raise Invalid("expires_at", f"must lie in the future, and it is {now.isoformat()}")
    return spec.expires_at


def matches(gate: Gate | GateSpec, *, kind: str, queue: str, tenant: str) -> bool:
    """Tell whether a lane lies behind this gate."""
    return gate.kind in (None, kind) and gate.queue in (None, queue) and gate.tenant in (None, tenant)


def gates_before(gates: Iterable[Gate], *, kind: str, queue: str, tenant: str) -> list[Gate]:
    """Return the gates that a lane lies behind, strongest first."""
    behind = [gate for gate in gates if matches(gate, kind=kind, queue=queue, tenant=tenant)]
    return sorted(behind, key=lambda gate: _STRENGTH.index(gate.mode))


def flag_of(gates: Iterable[Gate], *, kind: str, queue: str, tenant: str) -> str:
    """Return what a lane's flag should say: the strongest of the gates it lies behind."""
    modes = {gate.mode for gate in gates if matches(gate, kind=kind, queue=queue, tenant=tenant)}
    return next((mode.value for mode in _STRENGTH if mode in modes), OPEN)


def told_of(gate: Gate) -> str:
    """Return why a gate is closed and by whom, to be put after what it did: `: reason (author)`."""
    return (f": {gate.reason}" if gate.reason else "") + (f" (by {gate.author})" if gate.author else "")


def why_dropped(gates: Iterable[Gate], *, kind: str, queue: str, tenant: str) -> str:
    """Return what a job says that was dropped from a lane."""
    behind = gates_before(gates, kind=kind, queue=queue, tenant=tenant)
    return f"dropped by gate {behind[0].id}{told_of(behind[0])}" if behind else "dropped by a gate"


def why_stopped(gate: Gate) -> str:
    """Return the reason of the cancellation of what ran behind a gate that drops."""
    return f"stopped by gate {gate.id}{told_of(gate)}"
