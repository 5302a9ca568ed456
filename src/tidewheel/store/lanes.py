"""What claimers know of lanes, and which of them a worker may run."""

from collections.abc import Mapping

import msgspec

from tidewheel.model.resources import Needs, fits
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


def can_run(lane: Lane, request: ClaimRequest) -> bool:
    """Tell whether a worker may and can run jobs of a lane now."""
    if not lane.open or lane.queue not in request.queues:
        return False
    if request.kinds is not None and lane.kind not in request.kinds:
        return False
    return lane.needs is None or fits(lane.needs, _free(lane.needs, request), request.labels)


def _free(needs: Needs, request: ClaimRequest) -> Mapping[str, int]:
    return needs.resources if request.free is None else request.free
