"""What claimers know of lanes, and which of them a worker may run."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from tidewheel.model.gate import OPEN, Gate, GateMode, gates_before
from tidewheel.model.resources import Needs, Resources, fits, needs_text, parse_needs_text
from tidewheel.model.submission import LaneKey
from tidewheel.model.why import able
from tidewheel.model.worker import Worker
from tidewheel.store.base import ClaimRequest


class Lane(msgspec.Struct, frozen=True):
    """An interned (tenant, queue, kind, needs) with all that a claim must know of it."""

    id: int
    tenant: int
    tenant_name: str
    weight: float
    queue: str
    kind: str
    needs: Needs | None
    """None if it needs nothing."""
    keyed: bool
    open: bool
    """Whether jobs may start; also behind a slow gate."""
    slowed_by: tuple[UUID, ...] = ()
    """The slow gates it lies behind, if no other one closes it."""
    retried: bool = False
    overdue: bool = False


def key_of(lane: Lane) -> LaneKey:
    """Return what makes a lane."""
    needs = "" if lane.needs is None else needs_text(lane.needs)
    return LaneKey(lane.tenant_name, lane.queue, lane.kind, needs, lane.keyed, lane.retried, lane.overdue)


def gating_of(flag: str, gates: Iterable[Gate], *, kind: str, queue: str, tenant: str) -> tuple[bool, tuple[UUID, ...]]:
    """Return what the flag of a lane means: whether it is open, and which gates slow it."""
    if flag != GateMode.SLOW:
        return flag == OPEN, ()
    behind = gates_before(gates, kind=kind, queue=queue, tenant=tenant)
    return True, tuple(gate.id for gate in behind if gate.mode is GateMode.SLOW)


class Rival(NamedTuple):
    """A lane of the queue that a job waits in."""

    id: int
    kind: str
    needs: str
    tenant: str
    retried: bool


def rivals(lanes: Iterable[Sequence[Any]], queue: str, workers: Sequence[Worker]) -> list[Rival]:
    """Return those of a queue's lanes that some of these workers could run, too."""
    return [
        lane
        for lane in (Rival(*row) for row in lanes)
        if able(workers, queue=queue, kind=lane.kind, needs=parse_needs_text(lane.needs))
    ]


def can_run(lane: Lane, request: ClaimRequest) -> bool:
    """Tell whether a worker may and can run jobs of a lane now."""
    if not lane.open or lane.queue not in request.queues:
        return False
    if request.kinds is not None and lane.kind not in request.kinds:
        return False
    if request.needs is not None and lane.needs != request.needs:
        return False
    if request.tenant not in (None, lane.tenant_name):
        return False
    return lane.needs is None or fits(lane.needs, _free(lane.needs, request), request.labels)


def is_unfit(lane: Lane, request: ClaimRequest, total: Resources) -> bool:
    """Tell whether a worker could run jobs of a lane if all that it has were free, but cannot now."""
    whole = msgspec.structs.replace(request, free=total)
    return lane.needs is not None and can_run(lane, whole) and not can_run(lane, request)


def _free(needs: Needs, request: ClaimRequest) -> Mapping[str, int]:
    return needs.resources if request.free is None else request.free
