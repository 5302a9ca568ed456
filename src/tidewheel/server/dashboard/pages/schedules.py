"""Schedules: what comes, and what became of what came before."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from tidewheel.model.schedule import Fate
from tidewheel.server.dashboard.visit import Done, Visit

PAGE: Final = 25
STRIP: Final = 10
SHOWN: Final = 30
COMING: Final = 10


class Outcome(NamedTuple):
    """What became of one occurrence."""

    fire_at: datetime
    word: str
    """The state of its job, or why there is none."""
    reason: str
    source: str
    job_id: Any
    lateness: timedelta | None
    """How long after its time the first run of its job began."""


class Lateness(NamedTuple):
    """How late the last occurrences began, in all."""

    p50: timedelta
    most: timedelta


async def load(visit: Visit) -> Mapping[str, Any]:
    """Return the schedules, each with its last outcomes."""
    page = await visit.desk.ask("list_schedules", query={"limit": PAGE, "cursor": visit.query.get("cursor")})
    strips = await _outcomes(visit, [schedule.id for schedule in page.schedules], STRIP)
    return {
        "schedules": [(schedule, strips[schedule.id]) for schedule in page.schedules],
        "next_cursor": page.next_cursor,
    }


async def load_one(visit: Visit) -> Mapping[str, Any]:
    """Return a schedule with what comes and what was."""
    schedule_id = visit.path["id"]
    schedule = await visit.desk.ask("get_schedule", id=schedule_id)
    coming = []
    if not schedule.paused and schedule.next_fire_at is not None:
        coming = (await visit.desk.ask("preview_schedule", id=schedule_id, query={"count": COMING})).occurrences
    outcomes = (await _outcomes(visit, [schedule.id], SHOWN))[schedule.id]
    return {
        "title": schedule.name,
        "schedule": schedule,
        "coming": coming,
        "outcomes": outcomes,
        "late": lateness_of(outcomes),
    }


async def _outcomes(visit: Visit, schedule_ids: Sequence[UUID], number: int) -> Mapping[UUID, list[Outcome]]:
    """Return the last outcomes of each, latest first; what is made ahead and not due is not among them."""
    outcomes: dict[UUID, list[Outcome]] = {schedule_id: [] for schedule_id in schedule_ids}
    if outcomes:
        asked = {"schedule_id": ",".join(map(str, schedule_ids)), "each": number}
        for each in (await visit.desk.ask("list_past_occurrences", query=asked)).occurrences:
            outcomes[each.schedule_id].append(outcome_of(each))
    return outcomes


def outcome_of(each: Any) -> Outcome:
    """Say what became of one; what was made up for later is late by intent, and its lateness says nothing."""
    word = str(each.outcome)
    if each.outcome is Fate.MADE:
        word = "gone" if each.state is None else each.state.value
    lateness = None if each.started_at is None or each.source == "backfill" else each.started_at - each.fire_at
    return Outcome(each.fire_at, word, each.reason, each.source, each.job_id, lateness)


def lateness_of(outcomes: Sequence[Outcome]) -> Lateness | None:
    """Add up how late they began; None if none did."""
    late = sorted(each.lateness for each in outcomes if each.lateness is not None)
    return Lateness(late[(len(late) - 1) // 2], late[-1]) if late else None


async def pause(visit: Visit) -> Done:
    """Let it fire no more."""
    schedule = await visit.desk.ask("pause_schedule", id=visit.path["id"])
    return Done(f"/ui/schedules/{schedule.id}", f"{schedule.name} is paused.")


async def resume(visit: Visit) -> Done:
    """Let it fire again."""
    schedule = await visit.desk.ask("resume_schedule", id=visit.path["id"])
    return Done(f"/ui/schedules/{schedule.id}", f"{schedule.name} goes on from now.")


async def trigger(visit: Visit) -> Done:
    """Make a job of it now."""
    made = await visit.desk.ask("trigger_schedule", id=visit.path["id"])
    return Done(f"/ui/jobs/{made.job_id}", "The schedule was triggered: this is its job.")
