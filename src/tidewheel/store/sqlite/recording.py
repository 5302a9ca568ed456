"""Occurrences of schedules are recorded with their jobs, by the keeper or before a schedule is changed."""

from collections.abc import Iterable, Sequence
from uuid import UUID

import msgspec

from tidewheel.model.schedule import Schedule
from tidewheel.store.faults import Fault, silent
from tidewheel.store.recording import Line, drafts_of
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.submitting import submit
from tidewheel.store.sqlite.values import id_of, instant, json_text, micros, some
from tidewheel.triggers.planning import Plan, plan_due

Key = tuple[UUID, int]
"""A schedule and the time of one of its occurrences."""


def record(session: Session, plans: Sequence[Plan], fault: Fault = silent) -> int:
    """See `store.scheduling.OccurrenceStore.record_occurrences`."""
    believed = [(plan.schedule.id, plan.schedule.version, some(micros, plan.schedule.next_fire_at)) for plan in plans]
    standing = [row[0] for row in session.rows("standing", plans=json_text(believed))]
    drafts = [draft for at in standing for draft in drafts_of(plans[at], session.make_id)]
    recorded = add_lines(session, [draft.line for draft in drafts])
    fault("occurrences")
    made = [draft.job for draft in drafts if draft.job is not None and _key(draft.line) in recorded]
    if made:
        submit(session, made)
    fault("jobs")
    moves = [(*believed[at], some(micros, plans[at].next_fire_at), plans[at].fired) for at in standing]
    session.run("advance_schedules", plans=json_text(moves))
    fault("schedules")
    return len(recorded)


def settle_due(session: Session, schedule: Schedule, now: int) -> Schedule:
    """Record what is due of a schedule by its definition so far, and return where it then stands."""
    while (due := plan_due(schedule, instant(now))) is not None:
        record(session, [due])
        schedule = msgspec.structs.replace(schedule, next_fire_at=due.next_fire_at, fired=due.fired)
    return schedule


def add_lines(session: Session, lines: Iterable[Line]) -> set[Key]:
    """Record occurrences that are not there, and return which."""
    rows = [(line.schedule_id, micros(line.fire_at), *line[2:]) for line in lines]
    if not rows:
        return set()
    added = session.rows("add_occurrences", occurrences=json_text(rows), now=session.now)
    keys = {(id_of(schedule_id), fire_at) for schedule_id, fire_at in added}
    session.run("tell_missed", added=json_text(list(keys)), now=session.now)
    session.run("count_missed", added=json_text(list(keys)))
    return keys


def _key(line: Line) -> Key:
    return line.schedule_id, micros(line.fire_at)
