"""Workers: registering, beating, ending, and taking back what dead ones had."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import apsw
import msgspec

from tidewheel.errors import NotFound
from tidewheel.model.liveness import ExpiredWorker
from tidewheel.model.outcome import Failure, LossRule, Outcome
from tidewheel.model.resources import Offer
from tidewheel.model.states import Cause
from tidewheel.model.worker import Beat, Reaped, Worker, WorkerSpec
from tidewheel.store.sqlite.connection import rows
from tidewheel.store.sqlite.ending import COUNTED, Held, end_runs
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import (
    MICROSECOND,
    decode_keys,
    id_of,
    instant,
    json_text,
    micros,
    some,
    span,
    timedelta_of,
)

_LOST: Final = Failure(reason="lost", message="its worker died")
_NOBODY: Final = UUID(int=0)
_held: Final = msgspec.json.Decoder(list[Held]).decode
_offer: Final = msgspec.json.Decoder(Offer).decode


def register(session: Session, spec: WorkerSpec) -> Worker:
    """See `store.base.WorkerStore.register`."""
    now = session.now
    worker_id = session.make_id()
    session.run(
        "register",
        id=worker_id.bytes,
        name=spec.name,
        queues=json_text(spec.queues),
        kinds=some(json_text, spec.kinds),
        offer=json_text(spec.offer),
        tenant=spec.tenant,
        ttl=span(spec.ttl),
        now=now,
    )
    (row,) = session.rows("worker", worker=worker_id.bytes)
    return _worker(row)


def beat(session: Session, worker_ids: Sequence[UUID], clock: datetime | None = None) -> list[Beat]:
    """See `store.base.WorkerStore.beat`."""
    alive = session.rows("beat", workers=json_text(worker_ids), now=session.now, clock=some(micros, clock))
    stops: dict[bytes, list[tuple[UUID, int]]] = {}
    if alive:
        for worker, job_id, token in session.rows("cancelling", workers=json_text([id_of(row[0]) for row in alive])):
            stops.setdefault(worker, []).append((id_of(job_id), token))
    return [Beat(id_of(row[0]), row[1], instant(row[2]), tuple(stops.get(row[0], ()))) for row in alive]


def stopping(connection: apsw.Connection, worker_ids: Sequence[UUID]) -> list[tuple[UUID, UUID, int]]:
    """See `store.base.WorkerStore.stopping`."""
    found = rows(connection, "cancelling", {"workers": json_text(worker_ids)})
    return [(id_of(worker), id_of(job_id), token) for worker, job_id, token in found]


def end_worker(
    session: Session, worker_id: UUID, cause: Cause, beat: int | None = None, rule: LossRule = COUNTED
) -> Reaped | None:
    """End a worker that is alive, and its runs by a cause; with a beat given, only if that was its last."""
    now = session.now
    if session.value("end_worker", worker=worker_id.bytes, beat=beat, now=now) is None:
        return None
    session.forget_turns(worker_id)
    error = _LOST if cause is Cause.LOST else None
    runs = _held(session.value("runs_of_worker", worker=worker_id.bytes))
    ended = end_runs(session, [(run, Outcome(_NOBODY, run.token, cause, error=error)) for run in runs], now, rule)
    # Those that a gate had asked to stop are given back whatever the cause.
    back = sum(ended[each] for each in {cause, Cause.RELEASED})
    return Reaped(back, ended[Cause.QUARANTINED], ended[Cause.STOPPED])


def expired(connection: apsw.Connection, now: int) -> list[ExpiredWorker]:
    """See `store.base.WorkerStore.expired`."""
    found = rows(connection, "expired_workers", {"now": now})
    return [ExpiredWorker(id=id_of(row[0]), beat=row[1], ttl=row[2] * MICROSECOND) for row in found]


def worker(connection: apsw.Connection, worker_id: UUID) -> Worker:
    """See `store.base.WorkerStore.worker`."""
    found = rows(connection, "worker", {"worker": worker_id.bytes})
    if not found:
        raise NotFound("worker", worker_id)
    return _worker(found[0])


def workers(connection: apsw.Connection, alive: bool | None) -> list[Worker]:  # noqa: FBT001 - the store's argument
    """See `store.base.WorkerStore.workers`."""
    return [_worker(row) for row in rows(connection, "workers", {"alive": some(int, alive)})]


def _worker(row: Any) -> Worker:
    number, name, queues, kinds, offer, tenant, ttl, alive, beat, clock_ahead, *times = row
    registered_at, beat_at, lease_until, ended_at = (some(instant, time) for time in times)
    return Worker(
        id=id_of(number),
        name=name,
        queues=decode_keys(queues),
        kinds=some(decode_keys, kinds),
        offer=_offer(offer),
        tenant=tenant,
        ttl=ttl * MICROSECOND,
        alive=bool(alive),
        beat=beat,
        registered_at=registered_at,
        beat_at=beat_at,
        lease_until=lease_until,
        ended_at=ended_at,
        clock_ahead=some(timedelta_of, clock_ahead),
    )
