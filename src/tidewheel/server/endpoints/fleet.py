"""The whole at a glance: queues, numbers and workers."""

from uuid import UUID

import msgspec

from tidewheel.model.checks import FIRST_INSTANT
from tidewheel.model.resources import Offer
from tidewheel.model.states import WAITING, State
from tidewheel.model.worker import Worker
from tidewheel.server.endpoint import Answer, Call
from tidewheel.server.job_document import PRIORITIES
from tidewheel.server.job_request import Instant, PriorityName
from tidewheel.server.service import Service
from tidewheel.store.base import Count


class WorkerQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which workers to list."""

    alive: bool | None = None
    """Only those that are, or only those that are not."""


class WorkerDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A process that takes jobs."""

    id: UUID
    name: str
    queues: list[str]
    """For a key of one tenant those that it has jobs in."""
    kinds: list[str] | None
    """Null stands for all; for a key of one tenant those that it has jobs of."""
    offer: Offer
    ttl: float
    """Seconds of silence after which its jobs go elsewhere."""
    tenant: str | None
    """Whose worker it is; null for those that serve all."""
    alive: bool
    beat: int
    """How often it was heard of."""
    registered_at: Instant
    beat_at: Instant
    """When it was last heard of."""
    lease_until: Instant
    ended_at: Instant | None
    clock_ahead: float | None
    """By how many seconds its clock was ahead of the database's when it last said so."""


class WorkerList(msgspec.Struct, frozen=True, kw_only=True):
    """Workers, newest first; those that ended are kept for a day."""

    workers: list[WorkerDocument]


class QueueDocument(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs of a queue are in which state."""

    queue: str
    jobs: dict[State, int]
    kinds: dict[str, dict[State, int]]
    """The same for each kind."""
    waiting: dict[PriorityName, int]
    """How many wait, by priority."""


class QueueQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much to tell."""

    full: bool = False
    """Also the numbers as they were counted, by tenant, queue, kind, state and priority."""
    fresh: bool = False
    """Count the active jobs now, if they are not too many; `as_of` tells."""


class CountDocument(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs of one lane are in one state."""

    tenant: str
    queue: str
    kind: str
    state: State
    priority: PriorityName | None
    """Of those that have not ended."""
    jobs: int


class QueueList(msgspec.Struct, frozen=True, kw_only=True):
    """The queues with their numbers: active jobs as of `as_of`, finished ones to the moment."""

    as_of: Instant | None
    """Null before the first census."""
    queues: list[QueueDocument]
    counts: list[CountDocument] | None = None
    """For those who asked for all."""


async def workers(service: Service, call: Call[None, WorkerQuery]) -> Answer:
    """Return the workers."""
    found = await service.views.ask(lambda store: store.workers(alive=call.query.alive))
    documents = [_worker(worker) for worker in found]
    if not call.actor.everywhere:
        rows = (await service.views.ask(lambda store: store.counts(tenant=call.tenant))).rows
        known = {row.queue for row in rows}, {row.kind for row in rows}
        own = [worker for worker in found if worker.tenant in (None, call.tenant)]
        documents = [_as_known(_worker(worker), *known) for worker in own]
    return Answer(WorkerList(workers=documents))


async def queues(service: Service, call: Call[None, QueueQuery]) -> Answer:
    """Return the queues with their numbers."""
    counts = await service.views.ask(lambda store: store.counts(tenant=call.scope, fresh=call.query.fresh))
    found: dict[str, QueueDocument] = {}
    for row in counts.rows:
        queue = found.setdefault(row.queue, QueueDocument(queue=row.queue, jobs={}, kinds={}, waiting={}))
        of_kind = queue.kinds.setdefault(row.kind, {})
        for numbers in (queue.jobs, of_kind):
            numbers[row.state] = numbers.get(row.state, 0) + row.jobs
        if row.state in WAITING and row.priority is not None:
            priority = PRIORITIES[row.priority]
            queue.waiting[priority] = queue.waiting.get(priority, 0) + row.jobs
    as_of = counts.as_of if counts.as_of >= FIRST_INSTANT else None
    all_counts = [_count(row) for row in counts.rows] if call.query.full else None
    return Answer(QueueList(as_of=as_of, queues=[found[name] for name in sorted(found)], counts=all_counts))


def _count(row: Count) -> CountDocument:
    return CountDocument(
        tenant=row.tenant,
        queue=row.queue,
        kind=row.kind,
        state=row.state,
        priority=None if row.priority is None else PRIORITIES[row.priority],
        jobs=row.jobs,
    )


def _as_known(worker: WorkerDocument, queues: set[str], kinds: set[str]) -> WorkerDocument:
    """Return what a tenant sees of a worker, which others use, too: of queues and kinds those that it has jobs of."""
    return msgspec.structs.replace(
        worker,
        queues=[queue for queue in worker.queues if queue in queues],
        kinds=None if worker.kinds is None else [kind for kind in worker.kinds if kind in kinds],
    )


def _worker(worker: Worker) -> WorkerDocument:
    return WorkerDocument(
        id=worker.id,
        name=worker.name,
        queues=list(worker.queues),
        kinds=None if worker.kinds is None else list(worker.kinds),
        offer=worker.offer,
        ttl=worker.ttl.total_seconds(),
        tenant=worker.tenant,
        alive=worker.alive,
        beat=worker.beat,
        registered_at=worker.registered_at,
        beat_at=worker.beat_at,
        lease_until=worker.lease_until,
        ended_at=worker.ended_at,
        clock_ahead=None if worker.clock_ahead is None else worker.clock_ahead.total_seconds(),
    )
