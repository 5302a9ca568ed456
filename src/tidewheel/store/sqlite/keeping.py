"""Upkeep: expiry, dropping, the census and retention."""

from datetime import timedelta
from typing import Final

import apsw
import msgspec

from tidewheel.model.gate import why_dropped
from tidewheel.model.states import Cause
from tidewheel.store.sqlite.connection import rows
from tidewheel.store.sqlite.ending import end_waiting, end_waiting_for
from tidewheel.store.sqlite.releasing import Waiting
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import json_text, span

_DAY: Final = span(timedelta(days=1))
_waiting: Final = msgspec.json.Decoder(list[Waiting]).decode


def expire(session: Session, limit: int) -> int:
    """See `store.keeping.UpkeepStore.expire`."""
    now = session.now
    jobs = _waiting(session.value("overdue", now=now, limit=limit))
    return end_waiting(session, jobs, Cause.EXPIRED, "its start deadline passed", now)


def drop_gated(session: Session, limit: int) -> int:
    """See `store.keeping.UpkeepStore.drop_gated`."""
    jobs = _waiting(session.value("behind_drop_gates", limit=limit))
    reasons = {}
    for number in {job.lane for job in jobs}:
        lane = session.lanes.by_id[number]
        names = {"kind": lane.kind, "queue": lane.queue, "tenant": lane.tenant_name}
        reasons[number] = why_dropped(session.lanes.gates, **names)
    return end_waiting_for(session, [(job, reasons[job.lane]) for job in jobs], Cause.DROPPED, session.now)


def count_active(connection: apsw.Connection) -> str:
    """Count the active jobs by lane, state and priority, as JSON."""
    return json_text(rows(connection, "count_active", {}))


def keep_census(session: Session, counts: str, taken_at: int) -> None:
    """Store what was counted beside the writer."""
    session.run("clear_census")
    session.run("add_census", counts=counts)
    session.run("date_census", at=taken_at)
    session.run("note_finish_rates", at=taken_at)


def forget_others(session: Session, limit: int) -> None:
    """Remove idempotency keys, workers and nodes that are too old."""
    now = session.now
    session.run("put_off_keys", now=now, day=_DAY, limit=limit)
    session.run("forget_keys", now=now, day=_DAY, limit=limit)
    session.run("forget_workers", now=now, day=_DAY)
    session.run("forget_nodes", now=now, day=_DAY)


def retire_notes(session: Session, limit: int) -> int:
    """Remove notes a day after they were written whose jobs are no longer active; return how many."""
    return len(session.rows("retire_notes", until=session.now - _DAY, limit=limit))
