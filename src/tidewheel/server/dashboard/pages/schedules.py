"""Schedules: what comes, and what became of what came before."""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from tidewheel.errors import NotFound
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


async def load(visit: Visit) -> Mapping[str, Any]:
    """Return the schedules, each with its last outcomes."""
    page = await visit.desk.ask("list_schedules", query={"limit": PAGE, "cursor": visit.query.get("cursor")})
    strips = await asyncio.gather(*(_outcomes(visit, str(schedule.id), STRIP) for schedule in page.schedules))
    return {
        "schedules": list(zip(page.schedules, strips, strict=True)),
        "next_cursor": page.next_cursor,
    }


async def load_one(visit: Visit) -> Mapping[str, Any]:
    """Return a schedule with what comes and what was."""
    schedule_id = visit.path["id"]
    schedule = await visit.desk.ask("get_schedule", id=schedule_id)
    coming = []
    if not schedule.paused and schedule.next_fire_at is not None:
        coming = (await visit.desk.ask("preview_schedule", id=schedule_id, query={"count": COMING})).occurrences
    return {
        "title": schedule.name,
        "schedule": schedule,
        "coming": coming,
        "outcomes": await _outcomes(visit, schedule_id, SHOWN),
    }


async def _outcomes(visit: Visit, schedule_id: str, number: int) -> list[Outcome]:
    """Return the last outcomes, latest first; what is made ahead and not due is not among them."""
    found = (await visit.desk.ask("list_occurrences", id=schedule_id, query={"limit": number})).occurrences
    due = [each for each in found if each.fire_at <= visit.now]
    return list(await asyncio.gather(*(_outcome(visit, each) for each in due)))


async def _outcome(visit: Visit, each: Any) -> Outcome:
    word, lateness = str(each.outcome), None
    if each.outcome is Fate.MADE and each.job_id is not None:
        try:
            job = await visit.desk.ask("get_job", id=str(each.job_id))
        except NotFound:
            word = "gone"
        else:
            word = job.shown
            if job.token == 1 and job.last_started_at is not None:
                lateness = job.last_started_at - each.fire_at
    return Outcome(each.fire_at, word, each.reason, each.source, each.job_id, lateness)


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
