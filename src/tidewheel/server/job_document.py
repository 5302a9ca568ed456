"""A job as a client sees it."""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from msgspec import UNSET

from tidewheel.model.dependency import OnParentFailure
from tidewheel.model.gate import Gate
from tidewheel.model.job import Attempt, Job
from tidewheel.model.outcome import Failure, Usage
from tidewheel.model.resources import Needs
from tidewheel.model.retry import Backoff, Jitter, RetryPolicy
from tidewheel.model.states import State
from tidewheel.model.statuses import ExecutionStatus, Shown, TaskStatus, execution_status, shown_as, task_status
from tidewheel.server.job_request import Instant, PriorityName


class RetryDocument(msgspec.Struct, frozen=True, kw_only=True):
    """How often a job is tried, and how many seconds it waits in between."""

    max_attempts: int
    backoff: Backoff
    delay: float
    cap: float
    jitter: Jitter


class JobDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A job, active or finished. Times are in UTC, durations in seconds."""

    id: UUID
    kind: str
    """Which task it is of: its type."""
    name: str | None
    description: str | None
    queue: str
    tenant: str
    args: Any = UNSET
    """Its parameters; lists leave them out."""
    labels: dict[str, str]
    priority: PriorityName
    needs: Needs
    retry: RetryDocument
    timeout: float
    limit_keys: list[str]
    unique_key: str | None
    idempotency_key: str | None
    schedule_id: UUID | None
    """The schedule that made it."""
    recurring: bool
    """Whether a schedule made it."""
    recurrence: str | None
    """The interval or pattern of that schedule."""
    traceparent: str | None
    """The span that submitted it, as W3C Trace Context writes it."""
    after: list[UUID]
    on_parent_failure: OnParentFailure | None

    state: State
    shown: Shown
    """The state in the word that says most: `scheduled`, `retrying`, `held`, `paused`, …"""
    task_status: TaskStatus
    execution_status: ExecutionStatus
    cancelling: bool
    paused: bool
    gate: str
    """What the gate of its lane says."""
    gates: list[Gate]
    """The gates that it lies behind while it waits, strongest first."""
    waits_for: str | None
    """The limit key without room, while `limited`."""
    waiting_for: int
    """How many parents it waits for, while `blocked`."""
    token: int
    """Rises with each run."""
    failures: int
    losses: int
    created_at: Instant
    updated_at: Instant
    due_at: Instant
    run_at: Instant
    start_by: Instant | None
    last_started_at: Instant | None
    last_ended_at: Instant | None
    last_worker: UUID | None
    """Its last executor."""
    finished_at: Instant | None
    erased_at: Instant | None
    """Since when what it was about is forgotten."""
    result: Any = UNSET
    """What it returned, if that is small enough; lists leave it out."""
    result_location: str | None
    """Where a large result is; `/v1/jobs/{id}/result` fetches either."""
    error: Failure | None
    usage: Usage | None
    progress: float | None
    progress_message: str


class AttemptDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One try of a job on a worker."""

    token: int
    worker_id: UUID | None
    started_at: Instant | None
    ended_at: Instant
    cause: str
    error: Failure | None
    usage: Usage | None


def job_document(job: Job, now: datetime, *, full: bool = True) -> JobDocument:
    """Return the document of a job; lists do without what may be large."""
    return JobDocument(
        id=job.id,
        kind=job.kind,
        name=job.name,
        description=job.description,
        queue=job.queue,
        tenant=job.tenant,
        args=job.args if full else UNSET,
        labels=job.labels,
        priority=PRIORITIES[job.priority],
        needs=job.needs,
        retry=retry_document(job.retry),
        timeout=job.timeout.total_seconds(),
        limit_keys=list(job.limit_keys),
        unique_key=job.unique_key,
        idempotency_key=job.idempotency_key,
        schedule_id=job.schedule_id,
        recurring=job.recurring,
        recurrence=job.recurrence,
        traceparent=job.traceparent,
        after=list(job.after),
        on_parent_failure=job.on_parent_failure,
        **_standing(job, now),
        **_history(job, full=full),
    )


def retry_document(retry: RetryPolicy) -> RetryDocument:
    """Return the document of a retry policy."""
    return RetryDocument(
        max_attempts=retry.max_attempts,
        backoff=retry.backoff,
        delay=retry.delay.total_seconds(),
        cap=retry.cap.total_seconds(),
        jitter=retry.jitter,
    )


def _standing(job: Job, now: datetime) -> dict[str, Any]:
    return {
        "state": job.state,
        "shown": shown_as(job, now),
        "task_status": task_status(job, now),
        "execution_status": execution_status(job),
        "cancelling": job.cancelling,
        "paused": job.paused,
        "gate": job.gate,
        "gates": list(job.gates),
        "waits_for": job.waits_for,
        "waiting_for": job.waiting_for,
        "token": job.token,
        "failures": job.failures,
        "losses": job.losses,
        "progress": job.progress,
        "progress_message": job.progress_message,
    }


def _history(job: Job, *, full: bool) -> dict[str, Any]:
    return {
        "created_at": job.created_at,
        "updated_at": job.updated_at,
        "due_at": job.due_at,
        "run_at": job.run_at,
        "start_by": job.start_by,
        "last_started_at": job.last_started_at,
        "last_ended_at": job.last_ended_at,
        "last_worker": job.last_worker,
        "finished_at": job.finished_at,
        "erased_at": job.erased_at,
        "result": job.result if full else UNSET,
        "result_location": job.result_location,
        "error": job.error,
        "usage": job.usage,
    }


def attempt_document(attempt: Attempt) -> AttemptDocument:
    """Return the document of an attempt."""
    return AttemptDocument(
        token=attempt.token,
        worker_id=attempt.worker_id,
        started_at=attempt.started_at,
        ended_at=attempt.ended_at,
        cause=attempt.cause,
        error=attempt.error,
        usage=attempt.usage,
    )


PRIORITIES: tuple[PriorityName, ...] = ("high", "medium", "low")
