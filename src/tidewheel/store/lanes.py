"""What claimers know of lanes, and which of them a worker may run."""

from collections.abc import Mapping

import msgspec

from tidewheel.model.resources import Needs, Resources, fits
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
    retried: bool = False


def can_run(lane: Lane, request: ClaimRequest) -> bool:
    """Tell whether a worker may and can run jobs of a lane now."""
    if not lane.open or lane.queue not in request.queues:
        return False
    if request.kinds is not None and lane.kind not in request.kinds:
        return False
    if request.needs is not None and lane.needs != request.needs:
        return False
    return lane.needs is None or fits(lane.needs, _free(lane.needs, request), request.labels)


def is_unfit(lane: Lane, request: ClaimRequest, total: Resources) -> bool:
    """Tell whether a worker could run jobs of a lane if all that it has were free, but cannot now."""
    whole = msgspec.structs.replace(request, free=total)
    return lane.needs is not None and can_run(lane, whole) and not can_run(lane, request)


def _free(needs: Needs, request: ClaimRequest) -> Mapping[str, int]:
    return needs.resources if request.free is None else request.free
