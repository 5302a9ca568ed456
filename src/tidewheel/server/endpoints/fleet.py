"""The whole at a glance: queues, numbers and workers."""

from uuid import UUID

import msgspec

from tidewheel.model.checks import FIRST_INSTANT
from tidewheel.model.resources import Offer
from tidewheel.model.states import State
from tidewheel.model.worker import Worker
from tidewheel.server.endpoint import Answer, Call, NoQuery
from tidewheel.server.job_request import Instant
from tidewheel.server.service import Service


class WorkerQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which workers to list."""

    alive: bool | None = None
    """Only those that are, or only those that are not."""


class WorkerDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A process that takes jobs."""

    id: UUID
    name: str
    queues: list[str]
    kinds: list[str] | None
    """Null stands for all."""
    offer: Offer
    ttl: float
    """Seconds of silence after which its jobs go elsewhere."""
    alive: bool
    registered_at: Instant
    beat_at: Instant
    """When it was last heard of."""
    lease_until: Instant
    ended_at: Instant | None


class WorkerList(msgspec.Struct, frozen=True, kw_only=True):
    """Workers, newest first; those that ended are kept for a day."""

    workers: list[WorkerDocument]


class QueueDocument(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs of a queue are in which state."""

    queue: str
    jobs: dict[State, int]
    kinds: dict[str, dict[State, int]]
    """The same for each kind."""


class QueueList(msgspec.Struct, frozen=True, kw_only=True):
    """The queues with their numbers: active jobs as of the last census, finished ones to the moment."""

    as_of: Instant | None
    """Null before the first census."""
    queues: list[QueueDocument]


async def workers(service: Service, call: Call[None, WorkerQuery]) -> Answer:
    """Return the workers."""
    found = await service.views.ask(lambda store: store.workers(alive=call.query.alive))
    return Answer(WorkerList(workers=[_worker(worker) for worker in found]))


async def queues(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Return the queues with their numbers."""
    counts = await service.views.ask(lambda store: store.counts(tenant=call.tenant))
    found: dict[str, QueueDocument] = {}
    for row in counts.rows:
        queue = found.setdefault(row.queue, QueueDocument(queue=row.queue, jobs={}, kinds={}))
        of_kind = queue.kinds.setdefault(row.kind, {})
        for numbers in (queue.jobs, of_kind):
            numbers[row.state] = numbers.get(row.state, 0) + row.jobs
    as_of = counts.as_of if counts.as_of >= FIRST_INSTANT else None
    return Answer(QueueList(as_of=as_of, queues=[found[name] for name in sorted(found)]))


def _worker(worker: Worker) -> WorkerDocument:
    return WorkerDocument(
        id=worker.id,
        name=worker.name,
        queues=list(worker.queues),
        kinds=None if worker.kinds is None else list(worker.kinds),
        offer=worker.offer,
        ttl=worker.ttl.total_seconds(),
        alive=worker.alive,
        registered_at=worker.registered_at,
        beat_at=worker.beat_at,
        lease_until=worker.lease_until,
        ended_at=worker.ended_at,
    )
