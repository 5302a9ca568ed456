"""What a server shows of schedules, and how it is told of them."""

from datetime import datetime, timedelta
from typing import Any, Final, Literal
from uuid import UUID

import msgspec
from msgspec import Raw

from tidewheel.model.misfire import Misfire, MisfirePolicy
from tidewheel.model.overlap import Overlap
from tidewheel.model.priority import parse_priority
from tidewheel.model.resources import Needs
from tidewheel.model.schedule import Fate, Occurrence, PastOccurrence, Schedule, ScheduleSpec, Source
from tidewheel.model.states import State
from tidewheel.store.remote.documents import RetryDocument
from tidewheel.store.remote.requests import priority_name, retry_body
from tidewheel.triggers import Cron, Interval, Once, Rule, Trigger, to_json
from tidewheel.triggers.planning import check_definition, trigger_of

RULES: Final = ("cron", "every", "at")
"""The fields of which a request has one."""


class MisfireDocument(msgspec.Struct, frozen=True):
    """What becomes of occurrences that were missed."""

    policy: MisfirePolicy
    most: int
    grace: float

    def record(self) -> Misfire:
        return Misfire(policy=self.policy, most=self.most, grace=timedelta(seconds=self.grace))


class ScheduleDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule."""

    id: UUID
    name: str
    description: str
    tenant: str
    kind: str
    args: dict[str, Any]
    queue: str
    priority: str
    labels: dict[str, str]
    needs: Needs
    retry: RetryDocument
    timeout: float
    limit_keys: tuple[str, ...]
    type: Literal["cron", "interval", "once"]
    cron: str | None
    every: float | None
    at: datetime | None
    anchor: datetime | None
    timezone: str | None
    start: datetime | None
    end: datetime | None
    max_occurrences: int | None
    jitter: float
    spread: float
    overlap: Overlap
    max_concurrency: int | None
    misfire: MisfireDocument
    paused: bool
    version: int
    created_at: datetime
    updated_at: datetime
    next_fire_at: datetime | None
    fired: int
    declared_by: str | None
    orphaned_at: datetime | None

    def record(self) -> Schedule:
        same = {name: getattr(self, name) for name in Schedule.__struct_fields__ if hasattr(self, name)}
        changed = {
            "priority": parse_priority(self.priority),
            "retry": self.retry.record(),
            "timeout": timedelta(seconds=self.timeout),
            "misfire": self.misfire.record(),
            "trigger": Raw(to_json(self._trigger())),
        }
        return Schedule(**(same | changed))

    def _trigger(self) -> Trigger:
        return Trigger(
            rule=self._rule(),
            start=self.start,
            end=self.end,
            max_occurrences=self.max_occurrences,
            jitter=timedelta(seconds=self.jitter),
            spread=timedelta(seconds=self.spread),
        )

    def _rule(self) -> Rule:
        if self.cron is not None:
            return Cron(self.cron, self.timezone or "")
        if self.at is not None:
            return Once(self.at)
        assert self.every is not None
        assert self.anchor is not None
        return Interval(timedelta(seconds=self.every), self.anchor)


class SchedulePage(msgspec.Struct, frozen=True):
    """Schedules, oldest first."""

    schedules: list[ScheduleDocument]
    next_cursor: str | None = None


class OccurrenceDocument(msgspec.Struct, frozen=True):
    """One firing."""

    fire_at: datetime
    outcome: Fate
    reason: str
    source: Source
    job_id: UUID | None

    def record(self, schedule_id: UUID) -> Occurrence:
        told = {name: getattr(self, name) for name in OccurrenceDocument.__struct_fields__}
        return Occurrence(schedule_id=schedule_id, **told)


class PastDocument(OccurrenceDocument, frozen=True, kw_only=True):
    """One of the past."""

    schedule_id: UUID
    state: State | None
    started_at: datetime | None

    def past(self) -> PastOccurrence:
        return PastOccurrence(self.record(self.schedule_id), self.state, self.started_at)


class PastList(msgspec.Struct, frozen=True):
    """Occurrences of the past."""

    occurrences: list[PastDocument]


class TriggeredDocument(OccurrenceDocument, frozen=True, kw_only=True):
    """One that was asked for."""

    created: bool


class OccurrenceList(msgspec.Struct, frozen=True):
    """Occurrences."""

    occurrences: list[OccurrenceDocument]
    next_cursor: str | None = None


def schedule_body(spec: ScheduleSpec) -> dict[str, Any]:
    """Return the request of a schedule; its tenant goes by the header. Raises Invalid."""
    check_definition(spec)
    asked = {
        "name": spec.name,
        "description": spec.description,
        "kind": spec.kind,
        "args": spec.args,
        "queue": spec.queue,
        "priority": priority_name(spec.priority),
        "labels": spec.labels,
        "needs": {"resources": spec.needs.resources, "labels": spec.needs.labels},
        "retry": retry_body(spec.retry),
        "timeout": spec.timeout.total_seconds(),
        "limit_keys": list(spec.limit_keys),
        "overlap": spec.overlap,
        "max_concurrency": spec.max_concurrency,
        "misfire": {
            "policy": spec.misfire.policy,
            "most": spec.misfire.most,
            "grace": spec.misfire.grace.total_seconds(),
        },
        **_when(trigger_of(spec)),
    }
    return {name: value for name, value in asked.items() if value is not None}


def _when(trigger: Trigger) -> dict[str, Any]:
    found: dict[str, Any] = {
        "start": trigger.start,
        "end": trigger.end,
        "max_occurrences": trigger.max_occurrences,
        "jitter": trigger.jitter.total_seconds(),
        "spread": trigger.spread.total_seconds(),
    }
    match trigger.rule:
        case Cron(expression=expression, zone=zone):
            return found | {"cron": expression, "timezone": zone}
        case Interval(every=every, anchor=anchor):
            return found | {"every": every.total_seconds(), "anchor": anchor}
        case Once(at=at):
            return found | {"at": at}
