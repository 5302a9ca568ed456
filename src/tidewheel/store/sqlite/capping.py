"""Caps: what a submit may bring into a queue or with a key, decided after it was written and before anyone sees it."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import apsw
import msgspec

from tidewheel.errors import NotFound
from tidewheel.model.cap import AnyCap, KeyCap, QueueCap, bound_of, full, reason_of, victims
from tidewheel.model.job import Submitted
from tidewheel.model.limit import rule_of
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
    """Submit jobs, of which some may come under caps."""
    caps = _caps_over(session, jobs)
    if not caps:
        return submit(session, jobs)
    session.connection.execute("SAVEPOINT capped")
    try:
        answers = submit(session, jobs)
        for cap in caps:
            _enforce(session, cap, _made(jobs, answers, cap))
    except BaseException:
        if session.connection.in_transaction:
            session.connection.execute("ROLLBACK TO capped")
            session.connection.execute("RELEASE capped")
            session.forget()
        raise
    session.connection.execute("RELEASE capped")
    return answers


def _caps_over(session: Session, jobs: Sequence[Prepared]) -> list[AnyCap]:
    """Return the caps that some jobs come under."""
    lanes = session.lanes
    caps: list[AnyCap] = []
    if lanes.caps:
        places = {(job.lane.tenant, job.lane.queue) for job in jobs}
        caps += [lanes.caps[place] for place in sorted(places & lanes.caps.keys())]
    if lanes.cap_rules:
        keys = {(job.lane.tenant, job.cap_key) for job in jobs if job.cap_key is not None}
        ruled = [(tenant, key, lanes.cap_rules.get(rule_of(key))) for tenant, key in sorted(keys)]
        caps += [rule.cap_of(tenant, key) for tenant, key, rule in ruled if rule is not None]
    return caps


def _made(jobs: Sequence[Prepared], answers: Sequence[Submitted], cap: AnyCap) -> list[UUID]:
    """Return the jobs under a cap that were made just now."""
    return [
        answer.job_id
        for job, answer in zip(jobs, answers, strict=True)
        if answer.created
        and job.lane.tenant == cap.tenant
        and (job.lane.queue == cap.queue if isinstance(cap, QueueCap) else job.cap_key == cap.key)
    ]


def _enforce(session: Session, cap: AnyCap, new: Sequence[UUID]) -> None:
    if not new:
        return
    counting, first, last, where = _of_queue(session, cap) if isinstance(cap, QueueCap) else _of_key(session, cap)
    excess = session.value(counting, **where, bound=bound_of(cap, len(new))) - cap.most
    if excess <= 0:
        return
    if cap.overflow == "reject":
        raise full(cap)
    query = last if cap.overflow == "replace" else first
    line = {job.place: job for job in _line(session.value(query, **where, number=excess + len(new)))}
    fresh = [place for place in _places(session.value("places_of", jobs=json_text(new))) if place in line]
    dropped = [line[place] for place in victims(cap, line, fresh, excess)]
    end_waiting(session, dropped, Cause.DROPPED, reason_of(cap), session.now)


Search = tuple[str, str, str, dict[str, Any]]
"""The queries that count those under a cap and find the first and the last of them, and what they ask for."""


def _of_queue(session: Session, cap: QueueCap) -> Search:
    lanes = [lane for lane in session.lanes.by_id.values() if (lane.tenant_name, lane.queue) == (cap.tenant, cap.queue)]
    where = {
        "lanes": json_text([lane.id for lane in lanes]),
        "keyed": any(lane.keyed for lane in lanes),
        "tenant": lanes[0].tenant,
        "pairs": json_text([pair_of(lane.id, level) for lane in lanes for level in Priority]),
    }
    return "count_waiting", "first_in_line", "last_in_line", where


def _of_key(session: Session, cap: KeyCap) -> Search:
    where = {"tenant": session.lanes.known_tenant(cap.tenant), "key": cap.key}
    return "count_capped", "first_capped", "last_capped", where


def _tell_others(session: Session) -> None:
    session.lanes.changed(session.connection)
    session.lanes.read(session.connection)
