"""Short words for specs, so that a test says only what matters to it."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import msgspec

from tidewheel.model.job import JobSpec, Options, Run
from tidewheel.model.outcome import Failure, Outcome
from tidewheel.model.priority import Priority
from tidewheel.model.resources import Needs
from tidewheel.model.schedule import ScheduleSpec
from tidewheel.model.states import Cause
from tidewheel.model.worker import WorkerSpec
from tidewheel.store.base import ClaimRequest
from tidewheel.triggers import Interval, Rule, Trigger, to_json

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)

NOT_RETURNED = (
    Cause.FAILED,
    Cause.GAVE_UP,
    Cause.SNOOZED,
    Cause.RELEASED,
    Cause.CRASHED,
    Cause.STOPPED,
    Cause.EXPIRED,
)
"""What a worker may report of a run, besides a result."""


def a_job(kind: str = "echo", **fields: Any) -> JobSpec:
    return JobSpec(kind=kind, **fields)


def some_jobs(count: int, kind: str = "echo", **fields: Any) -> list[JobSpec]:
    return [JobSpec(kind=kind, **fields) for _ in range(count)]


def a_worker(name: str = "host/runner-0", **fields: Any) -> WorkerSpec:
    return WorkerSpec(name=name, **fields)


def a_claim(worker_id: UUID, limit: int = 10, **fields: Any) -> ClaimRequest:
    return ClaimRequest(worker_id=worker_id, limit=limit, **fields)


def needing(resources: Mapping[str, int] | None = None, **labels: str) -> Needs:
    return Needs(resources=resources or {}, labels=labels)


def outcome_of(run: Run, cause: Cause = Cause.RETURNED, **fields: Any) -> Outcome:
    """The end of a run, with a result or an error as its cause asks for."""
    if cause is Cause.RETURNED:
        fields.setdefault("result", '{"answer":42}')
    elif cause in (Cause.FAILED, Cause.GAVE_UP, Cause.CRASHED):
        fields.setdefault("error", Failure(reason="error", message="it broke"))
    return Outcome(run.job_id, run.token, cause, **fields)


def a_run(options: Options | None = None, *, failures: int = 0, losses: int = 0, **changes: Any) -> Run:
    """A run as a claim returns it."""
    values: dict[str, Any] = {
        "job_id": uuid4(),
        "token": 1,
        "lane": 1,
        "kind": "greet",
        "queue": "default",
        "tenant": "default",
        "priority": Priority.MEDIUM,
        "args": "{}",
        "labels": None,
        "options": None if options is None else msgspec.json.encode(options).decode(),
        "run_at": NOON,
        "due_at": NOON,
        "start_by": None,
        "claimed_at": NOON,
        "failures": failures,
        "losses": losses,
    }
    return Run(**(values | changes))


def a_schedule(name: str = "tidy", rule: Rule | None = None, **fields: Any) -> ScheduleSpec:
    """A schedule that fires every minute, unless there is another rule; fields may be bounds of its trigger, too."""
    bounds = {field: fields.pop(field) for field in Trigger.__struct_fields__ if field in fields}
    trigger = Trigger(rule=rule or Interval(MINUTE), **bounds)
    return ScheduleSpec(name=name, trigger=msgspec.Raw(to_json(trigger)), **{"kind": "tidy", **fields})
