"""What both stores write for the plan of a schedule: a line for each occurrence, and the jobs of those that run."""

from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from tidewheel.errors import Invalid
from tidewheel.model.checks import clean_text
from tidewheel.model.schedule import Fate, Schedule
from tidewheel.model.submission import Prepared, prepare
from tidewheel.store.schedule_rows import planned_job
from tidewheel.store.scheduling import shard_of
from tidewheel.triggers.planning import Plan, Planned

_LONGEST_REASON: Final = 500


class Line(NamedTuple):
    """An occurrence in the order of the columns of `add_occurrences`."""

    schedule_id: UUID
    fire_at: datetime
    source: str
    outcome: Fate
    reason: str
    job_id: UUID | None = None
    undecided: int | None = None
    """The shard that is to decide about its overlap when it is due, if that is open."""


class Draft(NamedTuple):
    """An occurrence on its way into the store, with its job if it has one."""

    line: Line
    job: Prepared | None = None


def drafts_of(plan: Plan, make_id: Callable[[], UUID]) -> list[Draft]:
    """Return what to write for a plan. Jobs that cannot be made must not hold up others: their occurrences say why."""
    try:
        return [_draft(plan.schedule, planned, make_id) for planned in plan.occurrences]
    except Invalid as error:
        why = clean_text(f"its job could not be made: {error}", _LONGEST_REASON)
        return [_left_out(plan.schedule, planned, planned.reason or why) for planned in plan.occurrences]


def _draft(schedule: Schedule, planned: Planned, make_id: Callable[[], UUID]) -> Draft:
    if planned.outcome is not Fate.MADE:
        return _left_out(schedule, planned, planned.reason)
    job_id = make_id()
    open_question = schedule.most_alive is not None and not planned.caught_up
    undecided = shard_of(schedule.id) if open_question else None
    line = Line(schedule.id, planned.fire_at, "planned", Fate.MADE, planned.reason, job_id, undecided)
    return Draft(line, prepare(planned_job(schedule, job_id, planned.fire_at)))


def _left_out(schedule: Schedule, planned: Planned, reason: str) -> Draft:
    return Draft(Line(schedule.id, planned.fire_at, "planned", Fate.MISSED, reason))
