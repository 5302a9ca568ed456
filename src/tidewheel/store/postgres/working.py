"""Workers: registering, beating, ending, and taking back what dead ones had."""

from collections.abc import Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any
from uuid import UUID

import msgspec

from tidewheel.errors import NotFound
from tidewheel.model.liveness import ExpiredWorker
from tidewheel.model.outcome import MAX_LOSSES, Failure, LossRule, Outcome
from tidewheel.model.resources import Offer
from tidewheel.model.states import Cause
from tidewheel.model.worker import Beat, Reaped, Worker, WorkerSpec, check_worker
from tidewheel.store.postgres.claiming import Claiming
from tidewheel.store.postgres.connection import SQL, Connection
from tidewheel.store.postgres.ending import COUNTED, end_runs, locked_run

_LOST = Failure(reason="lost", message="its worker died")


class Working(Claiming):
    """See `store.base.WorkerStore`."""

    async def register(self, spec: WorkerSpec) -> Worker:
        check_worker(spec)
        offer = msgspec.json.encode(spec.offer).decode()
        kinds = None if spec.kinds is None else list(spec.kinds)
        values = (self._make_id(), spec.name, list(spec.queues), kinds, offer, spec.ttl, spec.tenant)
        row = await self._db.write(lambda connection: connection.fetchrow(SQL["register"], *values))
        return worker_of(row)

    async def beat(self, worker_ids: Sequence[UUID], *, clock: datetime | None = None) -> list[Beat]:
        rows = await self._db.write(lambda connection: connection.fetch(SQL["beat"], list(worker_ids), clock))
        return [Beat(row["id"], row["beat"], row["lease_until"], tuple(map(tuple, row["stops"]))) for row in rows]

    async def stopping(self, worker_ids: Sequence[UUID]) -> list[tuple[UUID, UUID, int]]:
        rows = await self._db.read(lambda connection: connection.fetch(SQL["cancelling"], list(worker_ids)))
        return sorted(((row["worker"], row["id"], row["token"]) for row in rows), key=itemgetter(1))

    async def deregister(self, worker_id: UUID) -> Reaped:
        reaped = await self._end(worker_id, None, Cause.RELEASED)
        return reaped or Reaped()

    async def expired(self) -> list[ExpiredWorker]:
        rows = await self._db.read(lambda connection: connection.fetch(SQL["expired_workers"]))
        return [ExpiredWorker(id=row["id"], beat=row["beat"], ttl=row["ttl"]) for row in rows]

    async def reap(
        self, worker_id: UUID, beat: int, *, max_losses: int = MAX_LOSSES, count: bool = True
    ) -> Reaped | None:
        return await self._end(worker_id, beat, Cause.LOST, LossRule(max_losses, count))

    async def worker(self, worker_id: UUID) -> Worker:
        row = await self._db.read(lambda connection: connection.fetchrow(SQL["worker"], worker_id))
        if row is None:
            raise NotFound("worker", worker_id)
        return worker_of(row)

    async def workers(self, *, alive: bool | None = None) -> list[Worker]:
        rows = await self._db.read(lambda connection: connection.fetch(SQL["workers"], alive))
        return [worker_of(row) for row in rows]

    async def _end(self, worker_id: UUID, beat: int | None, cause: Cause, rule: LossRule = COUNTED) -> Reaped | None:
        async def end(connection: Connection) -> Reaped | None:
            if await connection.fetchval(SQL["end_worker"], worker_id, beat) is None:
                return None
            rows = await connection.fetch(SQL["lock_runs_of_worker"], worker_id)
            error = _LOST if cause is Cause.LOST else None
            runs = [locked_run(row) for row in rows]
            ends = [(run, Outcome(run.job_id, run.token, cause, error=error)) for run in runs]
            ended = await end_runs(connection, worker_id, ends, rule)
            # Those that a gate had asked to stop are given back whatever the cause.
            back = sum(ended[each] for each in {cause, Cause.RELEASED})
            return Reaped(back, ended[Cause.QUARANTINED], ended[Cause.STOPPED])

        reaped = await self._db.transaction(end)
        self._forget(worker_id)
        if reaped is not None and reaped != Reaped():
            self._hints.send()
        return reaped


def worker_of(row: Any) -> Worker:
    """Build a worker from its row."""
    return Worker(
        id=row["id"],
        name=row["name"],
        queues=tuple(row["queues"]),
        kinds=None if row["kinds"] is None else tuple(row["kinds"]),
        offer=msgspec.json.decode(row["offer"], type=Offer),
        tenant=row["tenant"],
        ttl=row["ttl"],
        alive=row["alive"],
        beat=row["beat"],
        registered_at=row["registered_at"],
        beat_at=row["beat_at"],
        lease_until=row["lease_until"],
        ended_at=row["ended_at"],
        clock_ahead=row["clock_ahead"],
    )
