"""A schedule, its occurrences and what is to come of it, as a client sees them."""

from typing import Any
from uuid import UUID

import msgspec

from tidewheel.model.misfire import MisfirePolicy
from tidewheel.model.overlap import Overlap
from tidewheel.model.resources import Needs
from tidewheel.model.schedule import Fate, Occurrence, PastOccurrence, Schedule, Source
from tidewheel.model.states import State
from tidewheel.server.job_document import PRIORITIES, RetryDocument, retry_document
from tidewheel.server.job_request import Instant, PriorityName
from tidewheel.triggers import Cron, Interval, Once, Trigger
from tidewheel.triggers.planning import recurrence_of, trigger_of
from tidewheel.triggers.preview import Change, Preview


class MisfireDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of occurrences that were missed."""

    policy: MisfirePolicy
    most: int
    grace: float


class ScheduleDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule: its definition, and how far it has come. Times are in UTC, durations in seconds."""

    id: UUID
    name: str
    description: str
    tenant: str
    kind: str
    args: dict[str, Any]
    queue: str
    priority: PriorityName
    labels: dict[str, str]
    needs: Needs
    retry: RetryDocument
    timeout: float
    limit_keys: list[str]
    type: str
    """`cron`, `interval` or `once`."""
    recurrence: str
    """The same in words."""
    cron: str | None
    every: float | None
    at: Instant | None
    anchor: Instant | None
    """From where `every` is counted."""
    timezone: str | None
    start: Instant | None
    end: Instant | None
    max_occurrences: int | None
    jitter: float
    spread: float
    overlap: Overlap
    max_concurrency: int | None
    misfire: MisfireDocument
    paused: bool
    version: int
    """Rises with each change; the `ETag` says the same."""
    created_at: Instant
    updated_at: Instant
    next_fire_at: Instant | None
    """The first occurrence without a record; null while it is paused and when there will be no more."""
    fired: int
    """How many planned occurrences were recorded, run or not."""
    declared_by: str | None
    """The app in whose code it is declared."""
    orphaned_at: Instant | None
    """When it was noticed that the code of that app declares it no more."""


class SchedulePage(msgspec.Struct, frozen=True, kw_only=True):
    """Schedules, oldest first."""

    schedules: list[ScheduleDocument]
    next_cursor: str | None


class OccurrenceDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One firing: it has a job, or a reason why it did not run, or both."""

    fire_at: Instant
    outcome: Fate
    reason: str
    source: Source
    job_id: UUID | None


class PastDocument(OccurrenceDocument, frozen=True, kw_only=True):
    """One that was due, and what became of its job."""

    schedule_id: UUID
    state: State | None
    """That of its job; null if it has none, or that is gone."""
    started_at: Instant | None
    """When the first run of its job began."""


class PastList(msgspec.Struct, frozen=True, kw_only=True):
    """The last occurrences of each schedule that were due, latest first."""

    occurrences: list[PastDocument]


class TriggeredDocument(OccurrenceDocument, frozen=True, kw_only=True):
    """One that someone asked for."""

    created: bool
    """Whether this very request made it; false if a key stood for an earlier one."""


class OccurrencePage(msgspec.Struct, frozen=True, kw_only=True):
    """Occurrences, latest first."""

    occurrences: list[OccurrenceDocument]
    next_cursor: str | None


class PreviewDocument(msgspec.Struct, frozen=True, kw_only=True):
    """An occurrence that is to come, or that would have been."""

    fire_at: Instant
    local: Instant
    """The same in the zone of the schedule."""
    change: Change | None
    """Whether wall time is skipped (`gap`) or repeated (`fold`) on its day."""
    note: str
    """What that means for it, in words."""


class PreviewList(msgspec.Struct, frozen=True, kw_only=True):
    """Occurrences, first to last."""

    occurrences: list[PreviewDocument]


def schedule_document(schedule: Schedule) -> ScheduleDocument:
    """Return the document of a schedule."""
    trigger = trigger_of(schedule)
    misfire = schedule.misfire
    return ScheduleDocument(
        id=schedule.id,
        name=schedule.name,
        description=schedule.description,
        tenant=schedule.tenant,
        kind=schedule.kind,
        args=dict(schedule.args),
        queue=schedule.queue,
        priority=PRIORITIES[schedule.priority],
        labels=dict(schedule.labels),
        needs=schedule.needs,
        retry=retry_document(schedule.retry),
        timeout=schedule.timeout.total_seconds(),
        limit_keys=list(schedule.limit_keys),
        recurrence=recurrence_of(schedule),
        overlap=schedule.overlap,
        max_concurrency=schedule.max_concurrency,
        misfire=MisfireDocument(policy=misfire.policy, most=misfire.most, grace=misfire.grace.total_seconds()),
        paused=schedule.paused,
        version=schedule.version,
        created_at=schedule.created_at,
        updated_at=schedule.updated_at,
        next_fire_at=schedule.next_fire_at,
        fired=schedule.fired,
        declared_by=schedule.declared_by,
        orphaned_at=schedule.orphaned_at,
        **_when(trigger),
    )


def _when(trigger: Trigger) -> dict[str, Any]:
    found: dict[str, Any] = {
        "cron": None,
        "every": None,
        "at": None,
        "anchor": None,
        "timezone": None,
        "start": trigger.start,
        "end": trigger.end,
        "max_occurrences": trigger.max_occurrences,
        "jitter": trigger.jitter.total_seconds(),
        "spread": trigger.spread.total_seconds(),
    }
    match trigger.rule:
        case Cron(expression=expression, zone=zone):
            return found | {"type": "cron", "cron": expression, "timezone": zone}
        case Interval(every=every, anchor=anchor):
            return found | {"type": "interval", "every": every.total_seconds(), "anchor": anchor}
        case Once(at=at):
            return found | {"type": "once", "at": at}


def occurrence_document(occurrence: Occurrence) -> OccurrenceDocument:
    """Return the document of an occurrence."""
    return OccurrenceDocument(**_told(occurrence))


def past_document(past: PastOccurrence) -> PastDocument:
    """Return the document of one that was due."""
    told = _told(past.occurrence)
    return PastDocument(**told, schedule_id=past.occurrence.schedule_id, state=past.state, started_at=past.started_at)


def triggered_document(occurrence: Occurrence, *, created: bool) -> TriggeredDocument:
    """Return the document of an occurrence that someone asked for."""
    return TriggeredDocument(**_told(occurrence), created=created)


def _told(occurrence: Occurrence) -> dict[str, Any]:
    return {name: getattr(occurrence, name) for name in OccurrenceDocument.__struct_fields__}


def preview_document(preview: Preview) -> PreviewDocument:
    """Return the document of an occurrence that is to come."""
    return PreviewDocument(fire_at=preview.fire_at, local=preview.local, change=preview.change, note=preview.note)
