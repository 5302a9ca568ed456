"""Collects what keeps a job from running."""

from uuid import UUID

import apsw
from msgspec.structs import replace

from tidewheel.model.dependency import Relative
from tidewheel.model.job import Job
from tidewheel.model.limit import Standing
from tidewheel.model.priority import Priority
from tidewheel.model.states import WAITING, State
from tidewheel.model.why import COUNTED, FRESH, SHOWN, Facts, LimitUse, Place, able, use_of
from tidewheel.model.worker import Worker
from tidewheel.store.lanes import rivals
from tidewheel.store.sqlite.connection import rows, value
from tidewheel.store.sqlite.depending import relatives_named
from tidewheel.store.sqlite.searching import get
from tidewheel.store.sqlite.values import decode_ids, instant, json_text, micros, span
from tidewheel.store.sqlite.working import workers

_LAST = UUID(int=2**128 - 1)


def explain(connection: apsw.Connection, job_id: UUID, tenant: str | None, now: int) -> Facts:
    """See `store.explaining.ExplainStore.explain`."""
    job = get(connection, job_id, tenant)
    if job.state not in WAITING:
        return Facts(now=instant(now), job=job)
    living = [worker for worker in workers(connection, alive=True) if worker.lease_until > instant(now)]
    place = _place(connection, job, living, now)
    return Facts(
        now=instant(now),
        job=job,
        limits=_full_limits(connection, job, now),
        parents=_open_parents(connection, job),
        workers=tuple(living),
        place=place,
    )


def _full_limits(connection: apsw.Connection, job: Job, now: int) -> tuple[LimitUse, ...]:
    if not job.limit_keys:
        return ()
    found = rows(connection, "limits_of", {"tenant": job.tenant, "keys": json_text(job.limit_keys)})
    uses = [use_of(key, Standing(*standing), now) for key, *standing in found]
    return tuple(
        use if use.refill_at else replace(use, holders=_holders(connection, job.tenant, use.key))
        for use in uses
        if use is not None
    )


def _holders(connection: apsw.Connection, tenant: str, key: str) -> tuple[UUID, ...]:
    return decode_ids(value(connection, "holders", {"tenant": tenant, "key": key, "limit": SHOWN}))


def _open_parents(connection: apsw.Connection, job: Job) -> tuple[Relative, ...]:
    if job.state is not State.BLOCKED:
        return ()
    ids = decode_ids(value(connection, "open_parents", {"job": job.id.bytes, "limit": SHOWN}))
    return tuple(relatives_named(connection, ids))


def _place(connection: apsw.Connection, job: Job, living: list[Worker], now: int) -> Place:
    if job.state is State.LIMITED:
        here = {"priority": job.priority, "run_at": micros(job.run_at), "id": job.id.bytes}
        waits = {"tenant": job.tenant, "key": job.waits_for, "most": COUNTED}
        return Place(value(connection, "waiters_ahead", {**here, **waits}))
    if job.state is not State.QUEUED or micros(job.run_at) > now:
        return Place()
    found = rows(connection, "lanes_beside", {"queue": job.queue})
    lanes = rivals(found, job.queue, able(living, queue=job.queue, kind=job.kind, needs=job.needs))
    own = [lane.id for lane in lanes if lane.tenant == job.tenant]
    levels = [*((level, now, _LAST) for level in range(job.priority)), (int(job.priority), micros(job.run_at), job.id)]
    rate = value(connection, "finish_rate", {"lanes": json_text(own), "since": now - span(FRESH)})
    place = Place(_count(connection, own, levels), rate)
    if not value(connection, "is_retry", {"job": job.id.bytes}):
        return place
    all_due = [(int(level), now, _LAST) for level in Priority]
    first_attempts = _count(connection, [lane.id for lane in lanes if not lane.retried], all_due)
    retries = [lane.id for lane in lanes if lane.retried and lane.tenant == job.tenant]
    return place._replace(first_attempts=first_attempts, retries_ahead=_count(connection, retries, levels))


def _count(connection: apsw.Connection, lanes: list[int], levels: list[tuple[int, int, UUID]]) -> int:
    asked = {"lanes": json_text(lanes), "levels": json_text(levels), "most": COUNTED}
    number: int = value(connection, "ahead", asked)
    return number
