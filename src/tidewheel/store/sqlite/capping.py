"""Caps: what a submit may bring into a queue, decided after it was written and before anyone sees it."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import apsw
import msgspec

from tidewheel.errors import NotFound, QueueFull
from tidewheel.model.cap import QueueCap, bound_of, reason_of, victims
from tidewheel.model.job import Submitted
from tidewheel.model.priority import Priority
from tidewheel.model.states import Cause
from tidewheel.model.submission import Prepared
from tidewheel.store.sqlite.connection import rows
from tidewheel.store.sqlite.ending import end_waiting
from tidewheel.store.sqlite.lanes import pair_of
from tidewheel.store.sqlite.releasing import Waiting
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.submitting import submit
from tidewheel.store.sqlite.values import json_text

_line: Final = msgspec.json.Decoder(list[Waiting]).decode
_places: Final = msgspec.json.Decoder(list[int]).decode


def set_cap(session: Session, cap: QueueCap) -> None:
    """See `store.capping.CapStore.set_cap`."""
    number = session.lanes.tenant(session.connection, cap.tenant)
    session.run("set_cap", tenant=number, queue=cap.queue, most=cap.most, overflow=cap.overflow)
    _tell_others(session)


def remove_cap(session: Session, queue: str, tenant: str) -> None:
    """See `store.capping.CapStore.remove_cap`."""
    number = session.lanes.known_tenant(tenant)
    if number is None or session.value("remove_cap", tenant=number, queue=queue) is None:
        raise NotFound("cap of queue", queue)
    _tell_others(session)


def caps(connection: apsw.Connection, tenant: str | None) -> list[QueueCap]:
    """See `store.capping.CapStore.caps`."""
    return [QueueCap(*row) for row in rows(connection, "caps", {"tenant": tenant})]


def submit_capped(session: Session, jobs: Sequence[Prepared]) -> list[Submitted]:
    """Submit jobs, some of which may go to queues with caps."""
    touched = {(job.lane.tenant, job.lane.queue) for job in jobs} & session.lanes.caps.keys()
    if not touched:
        return submit(session, jobs)
    session.connection.execute("SAVEPOINT capped")
    try:
        answers = submit(session, jobs)
        for place in sorted(touched):
            _enforce(session, session.lanes.caps[place], _made(jobs, answers, place))
    except BaseException:
        if session.connection.in_transaction:
            session.connection.execute("ROLLBACK TO capped")
            session.connection.execute("RELEASE capped")
            session.forget()
        raise
    session.connection.execute("RELEASE capped")
    return answers


def _made(jobs: Sequence[Prepared], answers: Sequence[Submitted], place: tuple[str, str]) -> list[UUID]:
    """Return the jobs of a queue that were made just now."""
    return [
        answer.job_id
        for job, answer in zip(jobs, answers, strict=True)
        if answer.created and (job.lane.tenant, job.lane.queue) == place
    ]


def _enforce(session: Session, cap: QueueCap, new: Sequence[UUID]) -> None:
    lanes = [lane for lane in session.lanes.by_id.values() if (lane.tenant_name, lane.queue) == (cap.tenant, cap.queue)]
    if not new or not lanes:
        return
    where: dict[str, Any] = {
        "lanes": json_text([lane.id for lane in lanes]),
        "keyed": any(lane.keyed for lane in lanes),
        "tenant": lanes[0].tenant,
    }
    excess = session.value("count_waiting", **where, bound=bound_of(cap, len(new))) - cap.most
    if excess <= 0:
        return
    if cap.overflow == "reject":
        raise QueueFull(cap.queue, cap.most)
    query = "last_in_line" if cap.overflow == "replace" else "first_in_line"
    pairs = json_text([pair_of(lane.id, level) for lane in lanes for level in Priority])
    line = {job.place: job for job in _line(session.value(query, **where, pairs=pairs, number=excess + len(new)))}
    fresh = [place for place in _places(session.value("places_of", jobs=json_text(new))) if place in line]
    dropped = [line[place] for place in victims(cap, line, fresh, excess)]
    end_waiting(session, dropped, Cause.DROPPED, reason_of(cap), session.now)


def _tell_others(session: Session) -> None:
    session.lanes.changed(session.connection)
    session.lanes.read(session.connection)
