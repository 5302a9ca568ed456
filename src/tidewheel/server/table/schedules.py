"""Endpoints of schedules."""

from typing import Any, Final

from tidewheel.model.access import Action
from tidewheel.model.problem import Code
from tidewheel.server.endpoint import Endpoint, RequestHeader
from tidewheel.server.endpoints import schedule_times, schedules
from tidewheel.server.schedule_document import (
    OccurrencePage,
    PastList,
    PreviewList,
    ScheduleDocument,
    SchedulePage,
    TriggeredDocument,
)
from tidewheel.server.schedule_request import BackfillRequest, SchedulePatch, ScheduleRequest, TriggerRequest

_ONE: Final = "/v1/schedules/{id}"
_STALE: Final[tuple[Code, ...]] = ("bad-header", "precondition-failed")
_CHANGE: Final[tuple[Code, ...]] = (*_STALE, "precondition-required", "name-taken")


def _schedule(method: str, path: str, name: str, summary: str, handler: Any, **more: Any) -> Endpoint:
    action = Action.SCHEDULES_READ if method == "GET" else Action.SCHEDULES_WRITE
    return Endpoint(
        method=method, path=path, name=name, summary=summary, group="schedules", action=action, handler=handler, **more
    )


SCHEDULES: Final = (
    _schedule(
        "POST",
        "/v1/schedules",
        "create_schedule",
        "Make a schedule",
        schedules.create,
        body=ScheduleRequest,
        answers={201: ScheduleDocument},
        errors=("name-taken",),
    ),
    _schedule(
        "GET",
        "/v1/schedules",
        "list_schedules",
        "List schedules, oldest first",
        schedules.find,
        query=schedules.ScheduleQuery,
        answers={200: SchedulePage},
        errors=("bad-cursor",),
    ),
    _schedule("GET", _ONE, "get_schedule", "Look at a schedule", schedules.get, answers={200: ScheduleDocument}),
    _schedule(
        "PUT",
        _ONE,
        "replace_schedule",
        "Give a schedule another definition",
        schedules.put,
        description="Needs the `ETag` that was seen last as `If-Match`: 412 if someone was faster, 428 without.",
        body=ScheduleRequest,
        headers=(RequestHeader.IF_MATCH,),
        answers={200: ScheduleDocument},
        errors=_CHANGE,
    ),
    _schedule(
        "PATCH",
        _ONE,
        "change_schedule",
        "Change some of the definition of a schedule",
        schedules.patch,
        description="What is not given stays as it is, but `cron`, `every` and `at` bring all of their bounds. Needs "
        "the `ETag` that was seen last as `If-Match`: 412 if someone was faster, 428 without.",
        body=SchedulePatch,
        headers=(RequestHeader.IF_MATCH,),
        answers={200: ScheduleDocument},
        errors=_CHANGE,
    ),
    _schedule(
        "DELETE",
        _ONE,
        "delete_schedule",
        "Remove a schedule, and cancel its jobs that have not started",
        schedules.delete,
        headers=(RequestHeader.IF_MATCH,),
        answers={204: None},
        errors=_STALE,
    ),
    _schedule(
        "POST",
        f"{_ONE}/pause",
        "pause_schedule",
        "Let a schedule fire no more, until it is resumed",
        schedules.pause,
        answers={200: ScheduleDocument},
    ),
    _schedule(
        "POST",
        f"{_ONE}/resume",
        "resume_schedule",
        "Let a paused schedule fire again, from now on",
        schedules.resume,
        answers={200: ScheduleDocument},
        errors=("conflict",),
    ),
    _schedule(
        "POST",
        f"{_ONE}/trigger",
        "trigger_schedule",
        "Make a job of a schedule now",
        schedules.trigger,
        description="Also of a paused one; its plan stays as it is. A repeat with the same key is answered with 200 "
        "and the first job.",
        body=TriggerRequest,
        body_optional=True,
        headers=(RequestHeader.IDEMPOTENCY_KEY,),
        answers={200: TriggeredDocument, 202: TriggeredDocument},
        errors=("bad-header", "key-reused"),
    ),
    _schedule(
        "GET",
        f"{_ONE}/preview",
        "preview_schedule",
        "Show the next occurrences of a schedule",
        schedule_times.preview,
        description="With a note on days on which clocks are set.",
        query=schedule_times.PreviewQuery,
        answers={200: PreviewList},
    ),
    _schedule(
        "GET",
        f"{_ONE}/between",
        "list_fire_times",
        "Show when a schedule fires, or would have fired, within some time",
        schedule_times.between,
        query=schedule_times.BetweenQuery,
        answers={200: PreviewList},
    ),
    _schedule(
        "POST",
        f"{_ONE}/backfill",
        "backfill_schedule",
        "Run what a schedule would have run and did not",
        schedule_times.backfill,
        description="Those that ran, or wait to, are left out, so that asking again does no harm. The jobs have the "
        "label `fire_at`. With `dry_run` it is only told (200).",
        body=BackfillRequest,
        headers=(RequestHeader.IF_MATCH,),
        answers={202: schedule_times.BackfillAnswer, 200: schedule_times.BackfillAnswer},
        errors=_STALE,
        seconds=60.0,
    ),
    _schedule(
        "GET",
        f"{_ONE}/occurrences",
        "list_occurrences",
        "List what became of the occurrences of a schedule, latest first",
        schedule_times.occurrences,
        query=schedule_times.OccurrenceQuery,
        answers={200: OccurrencePage},
        errors=("bad-cursor",),
    ),
    _schedule(
        "GET",
        "/v1/occurrences",
        "list_past_occurrences",
        "List the last occurrences of several schedules, and what became of their jobs",
        schedule_times.past,
        query=schedule_times.PastQuery,
        answers={200: PastList},
    ),
)
