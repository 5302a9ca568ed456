"""A schedule as a client asks for it, whole or in part."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tidewheel.model.job import DEFAULT_QUEUE, DEFAULT_TIMEOUT, JobSpec, Options
from tidewheel.model.misfire import Misfire, MisfirePolicy
from tidewheel.model.overlap import Overlap
from tidewheel.model.priority import parse_priority
from tidewheel.model.resources import Needs
from tidewheel.model.schedule import MAX_DESCRIPTION, Schedule, ScheduleSpec
from tidewheel.server.job_request import (
    Duration,
    Instant,
    Name,
    NeedsRequest,
    PriorityName,
    RetryRequest,
    duration_of,
    retry_of,
)
from tidewheel.tasks.scheduling import changed, schedule_of
from tidewheel.triggers.backfilling import MAX_BACKFILL

Arguments = Mapping[str, Any]
Labels = Mapping[Name, Annotated[str, Meta(max_length=200)]]
LimitKeys = Annotated[list[Name], Meta(max_length=7)]
Description = Annotated[str, Meta(max_length=MAX_DESCRIPTION)]
CronText = Annotated[str, Meta(min_length=1, max_length=500)]
ZoneName = Annotated[str, Meta(min_length=1, max_length=100)]
Number = Annotated[int, Meta(ge=1, le=2**31 - 1)]

_MISFIRE = Misfire()
_DURATIONS = ("every", "jitter", "spread")
_WHEN = (
    "cron",
    "every",
    "at",
    "anchor",
    "timezone",
    "start",
    "end",
    "max_occurrences",
    "jitter",
    "spread",
    "max_concurrency",
)
_PLAIN = ("kind", "queue", "args", "labels", "limit_keys")


class MisfireRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What becomes of occurrences whose time passed while nobody could make their jobs."""

    policy: MisfirePolicy = _MISFIRE.policy
    """Run the `latest`, `all`, or `skip` them."""
    most: Annotated[int, Meta(ge=1, le=1000)] = _MISFIRE.most
    grace: Duration = _MISFIRE.grace.total_seconds()
    """Up to this lateness an occurrence runs as if nothing had happened."""


class ScheduleRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to run, and when: exactly one of `cron`, `every` and `at`."""

    name: Name
    """Unique among one's own schedules."""
    description: Description = ""
    kind: Name
    args: Arguments = {}
    queue: Name = DEFAULT_QUEUE
    priority: PriorityName = "medium"
    labels: Labels = {}
    needs: NeedsRequest = NeedsRequest()
    retry: RetryRequest = RetryRequest()
    timeout: Duration = DEFAULT_TIMEOUT.total_seconds()
    limit_keys: LimitKeys = []
    cron: CronText | None = None
    """Five fields, a name such as `@daily`, or `@every 5m`."""
    every: Duration | None = None
    """An interval, from a second on; counted from `start`, or else from 1970."""
    at: Instant | None = None
    """Once, then."""
    anchor: Instant | None = None
    """From where `every` is counted, if not from `start`."""
    timezone: ZoneName | None = None
    """The IANA name of the zone of `cron`; UTC if it is not given."""
    start: Instant | None = None
    end: Instant | None = None
    max_occurrences: Number | None = None
    jitter: Duration | None = None
    """Delays each occurrence by a share of this, another one each time."""
    spread: Duration | None = None
    """Delays all occurrences by a share of this that the name decides."""
    overlap: Overlap = Overlap.SKIP
    """What to do while the last run is alive."""
    max_concurrency: Number | None = None
    """How many runs may be alive; one if it is not given, and any number if overlap is allowed."""
    misfire: MisfireRequest = MisfireRequest()


class SchedulePatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to change; what is not given stays as it is, but `cron`, `every` and `at` bring all of their bounds."""

    name: Name | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    kind: Name | UnsetType = UNSET
    args: Arguments | UnsetType = UNSET
    queue: Name | UnsetType = UNSET
    priority: PriorityName | UnsetType = UNSET
    labels: Labels | UnsetType = UNSET
    needs: NeedsRequest | UnsetType = UNSET
    retry: RetryRequest | UnsetType = UNSET
    timeout: Duration | UnsetType = UNSET
    limit_keys: LimitKeys | UnsetType = UNSET
    cron: CronText | UnsetType = UNSET
    every: Duration | UnsetType = UNSET
    at: Instant | UnsetType = UNSET
    anchor: Instant | UnsetType = UNSET
    timezone: ZoneName | UnsetType = UNSET
    start: Instant | UnsetType | None = UNSET
    """Null removes it, as with `end`, `max_occurrences` and `max_concurrency`."""
    end: Instant | UnsetType | None = UNSET
    max_occurrences: Number | UnsetType | None = UNSET
    jitter: Duration | UnsetType = UNSET
    spread: Duration | UnsetType = UNSET
    overlap: Overlap | UnsetType = UNSET
    max_concurrency: Number | UnsetType | None = UNSET
    misfire: MisfireRequest | UnsetType = UNSET


class TriggerRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to make a job of a schedule now."""

    idempotency_key: Name | None = None
    """As the header of that name, for keys that no header can hold."""


class BackfillRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which occurrences of the past to run: after one instant and not after another, or at the times that are named."""

    since: Instant | None = None
    until: Instant | None = None
    times: Annotated[list[Instant], Meta(max_length=MAX_BACKFILL)] | None = None
    """In place of both."""
    every: Duration = 0.0
    """How far the jobs are apart."""
    priority: Literal["high", "medium", "low"] | None = None
    """That of the schedule if it is not given."""
    dry_run: bool = False
    """Only tell."""


def schedule_spec_of(request: ScheduleRequest, tenant: str) -> ScheduleSpec:
    """Return the definition that a request stands for. Raises Invalid."""
    job = JobSpec(
        kind=request.kind,
        args=request.args,
        queue=request.queue,
        tenant=tenant,
        priority=parse_priority(request.priority),
        labels=request.labels,
        needs=_needs(request.needs),
        options=Options(retry=retry_of(request.retry), timeout=duration_of(request.timeout, "timeout")),
        limit_keys=tuple(request.limit_keys),
    )
    options = {name: getattr(request, name) for name in _WHEN if getattr(request, name) is not None}
    return schedule_of(
        job,
        {
            **_with_durations(options),
            "name": request.name,
            "description": request.description,
            "overlap": request.overlap,
            "misfire": _misfire(request.misfire),
        },
    )


def patched(known: Schedule, patch: SchedulePatch) -> ScheduleSpec:
    """Return the definition of a schedule with what is given in place of what was. Raises Invalid."""
    given = {name: value for name in patch.__struct_fields__ if (value := getattr(patch, name)) is not UNSET}
    fields: dict[str, Any] = {name: given[name] for name in _PLAIN if name in given}
    if "limit_keys" in fields:
        fields["limit_keys"] = tuple(fields["limit_keys"])
    if "priority" in given:
        fields["priority"] = parse_priority(given["priority"])
    if "needs" in given:
        fields["needs"] = _needs(given["needs"])
    if "retry" in given:
        fields["retry"] = retry_of(given["retry"])
    if "timeout" in given:
        fields["timeout"] = duration_of(given["timeout"], "timeout")
    options = {name: given[name] for name in (*_WHEN, "name", "description", "overlap") if name in given}
    if "misfire" in given:
        options["misfire"] = _misfire(given["misfire"])
    return changed(msgspec.structs.replace(known.definition, **fields), None, _with_durations(options))


def _with_durations(options: dict[str, Any]) -> dict[str, Any]:
    return options | {name: duration_of(options[name], name) for name in _DURATIONS if name in options}


def _needs(request: NeedsRequest) -> Needs:
    return Needs(resources=request.resources, labels=request.labels)


def _misfire(request: MisfireRequest) -> Misfire:
    return Misfire(policy=request.policy, most=request.most, grace=duration_of(request.grace, "misfire.grace"))
