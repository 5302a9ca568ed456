"""Workers: who is alive."""

from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_key, check_name
from tidewheel.model.resources import Offer, check_offer

DEFAULT_TTL = timedelta(seconds=30)
LEAST_TTL = timedelta(seconds=2)


class WorkerSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a worker says of itself when it registers."""

    name: str
    """For people: host and role, such as `web-1/runner-0`."""
    queues: tuple[str, ...] = ("default",)
    kinds: tuple[str, ...] | None = None
    """The kinds it knows; None stands for all."""
    offer: Offer = Offer()
    ttl: timedelta = DEFAULT_TTL
    tenant: str | None = None
    """Whose worker it is: it came with a key of that tenant; None for those that serve all."""


class Worker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A worker as the store knows it."""

    id: UUID
    name: str
    queues: tuple[str, ...]
    kinds: tuple[str, ...] | None
    offer: Offer
    ttl: timedelta
    tenant: str | None = None
    alive: bool
    beat: int
    registered_at: datetime
    beat_at: datetime
    lease_until: datetime
    ended_at: datetime | None = None
    clock_ahead: timedelta | None = None
    """By how much its clock was ahead of the store's when it last said so."""


class Beat(msgspec.Struct, frozen=True):
    """The answer to a heartbeat, one for each worker that is still alive; who is missing in it has lost its lease."""

    worker_id: UUID
    beat: int
    lease_until: datetime
    cancelling: tuple[tuple[UUID, int], ...] = ()
    """(job, token) of the runs that were asked to stop."""


class Reaped(msgspec.Struct, frozen=True):
    """What became of the runs of a worker that is gone."""

    requeued: int = 0
    quarantined: int = 0
    cancelled: int = 0


def check_worker(spec: WorkerSpec) -> None:
    """Refuse workers that cannot be stored."""
    check_key("name", spec.name)
    for queue in spec.queues:
        check_name("queues", queue)
    for kind in spec.kinds or ():
        check_name("kinds", kind)
    check_offer(spec.offer)
    if spec.tenant is not None:
        check_name("tenant", spec.tenant)
    check_ttl(spec.ttl)


def check_ttl(ttl: timedelta, field: str = "ttl") -> None:
    """Refuse leases too short to be held."""
    if not LEAST_TTL <= ttl <= timedelta(hours=1):
        raise Invalid(field, f"must be between 2 s and 1 h, not {ttl.total_seconds():g} s")
