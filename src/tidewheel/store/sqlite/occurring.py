"""Occurrences of schedules: recorded with their jobs, decided when they are due."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

import apsw
import msgspec

from tidewheel.errors import NotFound
from tidewheel.model.job import JobSpec
from tidewheel.model.overlap import Alive, Overlaps, decide_due
from tidewheel.model.schedule import Fate, Occurrence, Schedule, Triggered, trigger_fingerprint
from tidewheel.model.states import WAITING, Cause
from tidewheel.model.submission import prepare
from tidewheel.store.faults import Fault
from tidewheel.store.recording import Line
from tidewheel.store.schedule_rows import (
    backfill_job,
    left_to_backfill,
    occurrence_of,
    overlap_of,
    readable,
    triggered_job,
)
from tidewheel.store.scheduling import Ahead, Backfill, check_backfill
from tidewheel.store.sqlite.connection import rows, value
from tidewheel.store.sqlite.ending import end_waiting
from tidewheel.store.sqlite.recording import add_lines
from tidewheel.store.sqlite.releasing import Waiting
from tidewheel.store.sqlite.schedules import at_version, get, waiting_of
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.submitting import known_by_key, submit
from tidewheel.store.sqlite.values import DIALECT, id_of, instant, json_text, micros, some, span
from tidewheel.triggers.planning import KEEP_OCCURRENCES

_TICK: Final = timedelta(microseconds=1)


def look_ahead(connection: apsw.Connection, now: int, shard: int, within: timedelta, limit: int) -> Ahead:
    """See `store.scheduling.OccurrenceStore.look_ahead`."""
    values = {"shard": shard, "until": now + span(within)}
    near = rows(connection, "schedules_near", {**values, "limit": limit})
    beyond = value(connection, "next_beyond", values)
    undecided = value(connection, "next_undecided", {"shard": shard})
    schedules, unreadable = readable(near, DIALECT)
    return Ahead(instant(now), schedules, some(instant, beyond), some(instant, undecided), unreadable)


def trigger(session: Session, schedule_id: UUID, key: str | None, tenant: str | None) -> Triggered:
    """See `store.scheduling.ScheduleStore.trigger_schedule`."""
    schedule = get(session.connection, schedule_id, tenant)
    if key is not None and (known := _known(session, schedule, key)) is not None:
        return Triggered(known, created=False)
    fire_at, job_id = instant(session.now), session.make_id()
    while not add_lines(session, [Line(schedule_id, fire_at, "manual", Fate.MADE, "", job_id)]):
        fire_at += _TICK  # there is one of this very instant
    submit(session, [triggered_job(schedule, job_id, fire_at, key)])
    made = Occurrence(schedule_id=schedule_id, fire_at=fire_at, job_id=job_id, outcome=Fate.MADE, source="manual")
    return Triggered(made, created=True)


def _known(session: Session, schedule: Schedule, key: str) -> Occurrence | None:
    """Return what was triggered with the same key before."""
    number = session.lanes.tenant(session.connection, schedule.tenant)
    job_id = known_by_key(session, number, key, trigger_fingerprint(schedule.id))
    if job_id is None:
        return None
    found = session.rows("occurrence_of_job", schedule=schedule.id.bytes, job=job_id.bytes)
    if not found:
        raise NotFound("occurrence of job", job_id)
    return occurrence_of(found[0], DIALECT)


def backfill(session: Session, schedule_id: UUID, wish: Backfill, version: int, tenant: str | None) -> list[Occurrence]:
    """See `store.scheduling.ScheduleStore.backfill_schedule`."""
    schedule = at_version(session, schedule_id, version, tenant)
    if wish.priority is not None:
        schedule = msgspec.structs.replace(schedule, priority=wish.priority)
    times = check_backfill(wish)
    asked = json_text([micros(at) for at in times])
    found = session.rows("recorded_before", schedule=schedule_id.bytes, times=asked)
    left = left_to_backfill(schedule, times, {instant(at): bool(made) for at, made in found})
    wanted = {at: session.make_id() for at in left}
    if not wish.dry_run:
        lines = [(micros(at), job_id) for at, job_id in wanted.items()]
        session.rows("backfill_occurrences", schedule=schedule_id.bytes, occurrences=json_text(lines), now=session.now)
        first = instant(session.now)
        _make(
            session,
            [
                backfill_job(schedule, job_id, at, first + index * wish.spacing)
                for index, (at, job_id) in enumerate(wanted.items())
            ],
        )
    return [
        Occurrence(
            schedule_id=schedule_id,
            fire_at=at,
            job_id=None if wish.dry_run else job_id,
            outcome=Fate.MADE,
            source="backfill",
        )
        for at, job_id in wanted.items()
    ]


def decide(session: Session, shard: int, limit: int, fault: Fault) -> int:
    """See `store.scheduling.OccurrenceStore.decide_overlaps`."""
    now = session.now
    due: dict[UUID, dict[UUID, int]] = {}
    for schedule_id, fire_at, job_id in session.rows("undecided", shard=shard, now=now, limit=limit):
        due.setdefault(id_of(schedule_id), {})[id_of(job_id)] = fire_at
    if not due:
        return 0
    ids = json_text(list(due))
    bounds = [overlap_of(row, DIALECT) for row in session.rows("schedules_named", ids=ids)]
    alive: dict[UUID, list[Alive]] = {}
    for schedule_id, due_at, job_id, running in session.rows("alive_of_schedules", ids=ids, now=now):
        alive.setdefault(id_of(schedule_id), []).append(Alive(instant(due_at), id_of(job_id), bool(running)))
    skipped: dict[UUID, str] = {}
    for bound in bounds:
        jobs, mine = alive.get(bound.schedule_id, []), list(due[bound.schedule_id])
        overlaps = decide_due(bound.overlap, bound.max_concurrency, jobs, mine)
        _carry_out(session, overlaps, now)
        skipped |= overlaps.skip
    fault("decided")
    decided = [
        (schedule_id, fire_at, skipped.get(job_id))
        for schedule_id, of_schedule in due.items()
        for job_id, fire_at in of_schedule.items()
    ]
    session.run("note_decided", decided=json_text(decided))
    return len(decided)


def _carry_out(session: Session, overlaps: Overlaps, now: int) -> None:
    """End what is to be skipped or cancelled; each is looked at anew, for the end of one may let another go."""
    for job_id, reason in overlaps.skip.items():
        end_waiting(session, [_active(session, job_id)], Cause.OVERLAPPED, reason, now)
    for job_id in overlaps.cancel:
        job = _active(session, job_id)
        if job.state in WAITING:
            end_waiting(session, [job], Cause.CANCELLED, "a later run took its place", now)
        else:
            session.run("ask_to_stop", place=job.place, reason="a later run takes its place", now=now)
            session.stir()


def _active(session: Session, job_id: UUID) -> Waiting:
    return waiting_of(session.value("find_active", id=job_id.bytes, tenant=None))


def retire(session: Session, limit: int) -> int:
    """See `store.scheduling.OccurrenceStore.retire_occurrences`."""
    return len(session.rows("retire_occurrences", until=session.now - span(KEEP_OCCURRENCES), limit=limit))


def _make(session: Session, specs: Sequence[JobSpec]) -> None:
    if specs:
        submit(session, [prepare(spec) for spec in specs])
