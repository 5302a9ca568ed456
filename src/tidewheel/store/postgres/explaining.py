"""Collects what keeps a job from running."""

from datetime import datetime
from typing import Any
from uuid import UUID

from msgspec.structs import replace

from tidewheel.errors import NotFound
from tidewheel.model.dependency import Relative
from tidewheel.model.job import Job
from tidewheel.model.priority import Priority
from tidewheel.model.states import WAITING, State
from tidewheel.model.why import COUNTED, FRESH, SHOWN, Facts, LimitUse, Place, able, use_of
from tidewheel.model.worker import Worker
from tidewheel.store.explaining import Explanation, explanation_of
from tidewheel.store.lanes import rivals
from tidewheel.store.postgres.connection import SQL, Connection
from tidewheel.store.postgres.depending import relatives_named
from tidewheel.store.postgres.limits import standing_of
from tidewheel.store.postgres.parts import Part
from tidewheel.store.postgres.searching import completed, find_job
from tidewheel.store.postgres.working import worker_of

_LAST = UUID(int=2**128 - 1)


class Explaining(Part):
    """See `store.explaining.ExplainStore`."""

    async def explain(self, job_id: UUID, *, tenant: str | None = None) -> Facts:
        async def look(connection: Connection) -> Facts | None:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                job = await find_job(connection, job_id, tenant)
                return None if job is None else await _facts(connection, *await completed(connection, [job]))

        facts = await self._db.read(look)
        if facts is None:
            raise NotFound("job", job_id)
        return facts

    async def why(self, job_id: UUID, *, tenant: str | None = None) -> Explanation:
        return explanation_of(await self.explain(job_id, tenant=tenant))


async def _facts(connection: Connection, job: Job) -> Facts:
    now = await connection.fetchval(SQL["store_time"])
    if job.state not in WAITING:
        return Facts(now=now, job=job)
    living = [worker_of(row) for row in await connection.fetch(SQL["living_workers"])]
    place = await _place(connection, job, living, now)
    return Facts(
        now=now,
        job=job,
        limits=await _full_limits(connection, job),
        parents=await _open_parents(connection, job),
        workers=tuple(living),
        place=place,
    )


async def _full_limits(connection: Connection, job: Job) -> tuple[LimitUse, ...]:
    if not job.limit_keys:
        return ()
    full = []
    for row in await connection.fetch(SQL["limits_of"], job.tenant, list(job.limit_keys)):
        use = use_of(row[0], standing_of(row[2:]), row[1])
        if use is not None:
            runs: list[Any] = []
            if use.refill_at is None:
                runs = await connection.fetch(SQL["holders"], job.tenant, use.key, SHOWN)
            full.append(replace(use, holders=tuple(run["id"] for run in runs)))
    return tuple(full)


async def _open_parents(connection: Connection, job: Job) -> tuple[Relative, ...]:
    if job.state is not State.BLOCKED:
        return ()
    ids = [row[0] for row in await connection.fetch(SQL["open_parents"], job.id, SHOWN)]
    return tuple(await relatives_named(connection, ids))


async def _place(connection: Connection, job: Job, living: list[Worker], now: datetime) -> Place:
    here = (int(job.priority), job.run_at, job.id)
    if job.state is State.LIMITED:
        return Place(await connection.fetchval(SQL["waiters_ahead"], job.tenant, job.waits_for, *here, COUNTED))
    if job.state is not State.QUEUED or job.run_at > now:
        return Place()
    found = [tuple(row) for row in await connection.fetch(SQL["lanes_beside"], job.queue)]
    lanes = rivals(found, job.queue, able(living, queue=job.queue, kind=job.kind, needs=job.needs))
    own = [lane.id for lane in lanes if lane.tenant == job.tenant]
    levels = [*((level, now, _LAST) for level in range(job.priority)), here]
    place = Place(await _count(connection, own, levels), await connection.fetchval(SQL["finish_rate"], own, FRESH))
    if not await connection.fetchval(SQL["is_retry"], job.id):
        return place
    all_due = [(int(level), now, _LAST) for level in Priority]
    first_attempts = await _count(connection, [lane.id for lane in lanes if not lane.retried], all_due)
    retries = [lane.id for lane in lanes if lane.retried and lane.tenant == job.tenant]
    return place._replace(first_attempts=first_attempts, retries_ahead=await _count(connection, retries, levels))


async def _count(connection: Connection, lanes: list[int], levels: list[tuple[int, datetime, UUID]]) -> int:
    columns = [list(column) for column in zip(*levels, strict=True)]
    number: int = await connection.fetchval(SQL["ahead"], lanes, *columns, COUNTED)
    return number
