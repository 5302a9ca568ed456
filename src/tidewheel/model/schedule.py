"""The schedule: a recurring definition that makes jobs, and the record of each of its occurrences."""

import enum
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from tidewheel.model.checks import (
    MAX_DELAY,
    check_duration,
    check_json,
    check_json_text,
    check_key,
    check_labels,
    check_name,
    check_text,
)
from tidewheel.model.job import DEFAULT_QUEUE, DEFAULT_TENANT, DEFAULT_TIMEOUT
from tidewheel.model.misfire import Misfire, check_misfire
from tidewheel.model.overlap import Overlap, check_max_concurrency
from tidewheel.model.priority import Priority
from tidewheel.model.resources import NO_NEEDS, Needs, check_needs
from tidewheel.model.retry import RetryPolicy, check_retry

MAX_DESCRIPTION = 2000


class Schedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What to run, when, and what to do if its time was missed or its last run is still alive."""

    id: UUID
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
    paused: bool = False

    version: int = 1
    """Rises with each change; an update names the version that it was made from."""
    created_at: datetime
    updated_at: datetime
    next_fire_at: datetime | None = None
    """The first occurrence that is not yet recorded; None when there will be no more."""


class Fate(enum.StrEnum):
    """What became of an occurrence. The value is stored."""

    MADE = "made"  # its job was made
    MISSED = "missed"  # its time passed while nobody could make the job, and the misfire policy left it out
    SKIPPED = "skipped"  # the overlap policy left it out


class Occurrence(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One planned firing of a schedule: it has either a job or a reason why not."""

    schedule_id: UUID
    fire_at: datetime
    job_id: UUID | None = None
    outcome: Fate
    reason: str = ""


def check_schedule(schedule: Schedule) -> Schedule:
    """Refuse schedules that cannot be stored or whose jobs could not; the trigger is only checked to be JSON."""
    for field in ("tenant", "name", "kind", "queue"):
        check_name(field, getattr(schedule, field))
    check_text("description", schedule.description, MAX_DESCRIPTION)
    check_json("args", schedule.args)
    check_labels("labels", schedule.labels)
    check_needs(schedule.needs)
    check_retry(schedule.retry)
    check_duration("timeout", schedule.timeout, timedelta(milliseconds=1), MAX_DELAY)
    for key in schedule.limit_keys:
        check_key("limit_keys", key)
    check_json_text("trigger", bytes(schedule.trigger))
    check_misfire(schedule.misfire)
    check_max_concurrency(schedule.max_concurrency)
    return schedule
