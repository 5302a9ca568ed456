"""The schedule: a recurring definition that makes jobs, and the record of each of its occurrences."""

import enum
import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, TypeVar
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_json_text, check_name, check_text
from tidewheel.model.job import DEFAULT_QUEUE, DEFAULT_TENANT, DEFAULT_TIMEOUT, JobSpec, Options
from tidewheel.model.misfire import Misfire, check_misfire
from tidewheel.model.overlap import Overlap, check_max_concurrency
from tidewheel.model.priority import Priority
from tidewheel.model.resources import NO_NEEDS, Needs
from tidewheel.model.retry import RetryPolicy
from tidewheel.model.states import State
from tidewheel.model.submission import MAX_LIMIT_KEYS, prepare

MAX_DESCRIPTION = 2000

Definition = TypeVar("Definition", bound="ScheduleSpec")


class ScheduleSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The definition: what to run, when, and what to do if its time was missed or its last run is still alive."""

    tenant: str = DEFAULT_TENANT
    name: str
    """Unique within the tenant."""
    description: str = ""

    kind: str
    queue: str = DEFAULT_QUEUE
    args: Mapping[str, Any] = {}
    labels: Mapping[str, str] = {}
    priority: Priority = Priority.MEDIUM
    needs: Needs = NO_NEEDS
    retry: RetryPolicy = RetryPolicy()
    timeout: timedelta = DEFAULT_TIMEOUT
    limit_keys: tuple[str, ...] = ()

    trigger: msgspec.Raw
    """JSON that the triggers read; the model only carries it."""
    misfire: Misfire = Misfire()
    overlap: Overlap = Overlap.SKIP
    max_concurrency: int | None = None
    """None stands for one run at a time, and for any number if overlap is allowed."""

    @property
    def most_alive(self) -> int | None:
        """How many runs may be under way at once; None for any number."""
        if self.max_concurrency is None and self.overlap is Overlap.ALLOW:
            return None
        return self.max_concurrency or 1


class Schedule(ScheduleSpec, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A schedule as it is stored: its definition, and how far it has come."""

    id: UUID
    paused: bool = False
    version: int = 1
    """Rises with each change; an update names the version that it was made from."""
    created_at: datetime
    updated_at: datetime
    next_fire_at: datetime | None = None
    """The first occurrence that is not yet recorded; None when there will be no more, and while it is paused."""
    fired: int = 0
    """How many planned occurrences were recorded, run or not."""
    declared_by: str | None = None
    """The app in whose code it is declared; None if it was made at run time."""
    orphaned_at: datetime | None = None
    """When it was noticed that the code of that app declares it no more."""

    @property
    def definition(self) -> ScheduleSpec:
        """The part that a person or a program wrote."""
        return ScheduleSpec(**{field: getattr(self, field) for field in ScheduleSpec.__struct_fields__})

    @property
    def limit_key(self) -> str:
        """The limit key that its jobs share, if only so many may run at once."""
        return f"schedule:{self.id}"


class Fate(enum.StrEnum):
    """What became of an occurrence. The value is stored."""

    MADE = "made"  # its job was made
    MISSED = "missed"  # its time passed while nobody could make the job, and the misfire policy left it out
    SKIPPED = "skipped"  # the overlap policy left it out


Source = Literal["planned", "manual", "backfill"]
"""Who asked for an occurrence: the trigger, a person now, or a person for a time that had passed."""


class Occurrence(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One firing of a schedule: it has a job, or a reason why it did not run, or both if that was decided when due."""

    schedule_id: UUID
    fire_at: datetime
    job_id: UUID | None = None
    outcome: Fate
    reason: str = ""
    source: Source = "planned"


class PastOccurrence(NamedTuple):
    """What became of one that was due."""

    occurrence: Occurrence
    state: State | None
    """That of its job; None if it has none, or that is gone."""
    started_at: datetime | None
    """When the first run of its job began."""


class Triggered(NamedTuple):
    """The answer to a trigger."""

    occurrence: Occurrence
    created: bool
    """Whether this very call made it; False if a key stood for an earlier one."""


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the schedules that the code of an app declares, by their names."""

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    orphaned: tuple[str, ...] = ()
    """Declared by an earlier code of this app, and no more; they go on until someone deletes them."""
    refused: tuple[str, ...] = ()
    """Their names are taken by schedules made at run time or by another app, or by those that only a newer version can
    read, which are left alone; or they are new and would never fire."""


def job_of(schedule: Schedule, job_id: UUID, run_at: datetime, recurrence: str) -> JobSpec:
    """Return the job of an occurrence."""
    keys = schedule.limit_keys
    if schedule.most_alive is not None and schedule.limit_key not in keys:
        keys = (*keys, schedule.limit_key)
    job = _plain_job(schedule)
    options = msgspec.structs.replace(job.options, recurrence=recurrence)
    return msgspec.structs.replace(
        job, id=job_id, schedule_id=schedule.id, run_at=run_at, options=options, limit_keys=keys
    )


def _plain_job(spec: ScheduleSpec) -> JobSpec:
    """Return what all jobs of a schedule have in common."""
    args: Any = spec.args
    return JobSpec(
        tenant=spec.tenant,
        kind=spec.kind,
        queue=spec.queue,
        args=dict(args) if isinstance(args, Mapping) else args,
        labels=spec.labels,
        priority=spec.priority,
        needs=spec.needs,
        options=Options(retry=spec.retry, timeout=spec.timeout),
        limit_keys=spec.limit_keys,
    )


def trigger_fingerprint(schedule_id: UUID) -> bytes:
    """Return a digest of the wish to trigger a schedule, so that a key that comes back with another is noticed."""
    return hashlib.sha256(b"trigger " + schedule_id.bytes).digest()


def check_schedule(schedule: Definition) -> Definition:
    """Refuse schedules that cannot be stored or whose jobs could not; the trigger is only checked to be JSON.

    A job is made ready as each of them will be: what passes here must not fail when nobody is there to be told.
    """
    check_name("name", schedule.name)
    check_text("description", schedule.description, MAX_DESCRIPTION)
    if len(schedule.limit_keys) >= MAX_LIMIT_KEYS:
        raise Invalid("limit_keys", f"at most {MAX_LIMIT_KEYS - 1}: one is the schedule's own")
    prepare(_plain_job(schedule))
    check_json_text("trigger", bytes(schedule.trigger))
    check_misfire(schedule.misfire)
    check_max_concurrency(schedule.max_concurrency)
    return schedule
