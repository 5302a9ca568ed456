"""The job: what is asked for, what is handed to a worker, and what is shown to a reader."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

import msgspec

from tidewheel.model.dependency import OnParentFailure
from tidewheel.model.fingerprint import fingerprint_of
from tidewheel.model.gate import Gate
from tidewheel.model.outcome import Failure, Usage
from tidewheel.model.priority import Priority
from tidewheel.model.resources import NO_NEEDS, Needs
from tidewheel.model.retry import RetryPolicy
from tidewheel.model.states import State

DEFAULT_QUEUE = "default"
DEFAULT_TENANT = "default"
DEFAULT_TIMEOUT = timedelta(minutes=5)

Unique = Literal["reject", "keep", "replace"]


class Options(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The part of a job that no statement of the store looks into; kept as one JSON text beside it."""

    name: str | None = None
    description: str | None = None
    retry: RetryPolicy = RetryPolicy()
    timeout: timedelta = DEFAULT_TIMEOUT
    recurrence: str | None = None
    """How the schedule that made this job describes itself, such as `every 5m`."""
    traceparent: str | None = None
    """The span that submitted it, as W3C Trace Context writes it."""
    tracestate: str | None = None


class JobSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What someone asks for. `submission.prepare` checks it and makes it ready to be stored."""

    kind: str
    args: Mapping[str, Any] = {}
    queue: str = DEFAULT_QUEUE
    tenant: str = DEFAULT_TENANT
    priority: Priority = Priority.MEDIUM
    labels: Mapping[str, str] = {}
    needs: Needs = Needs()
    options: Options = Options()
    run_at: datetime | None = None
    delay: timedelta | None = None
    start_by: datetime | None = None
    limit_keys: tuple[str, ...] = ()
    idempotency_key: str | None = None
    batch: str | None = None
    """A digest of all jobs that came with one idempotency key, so that it is noticed if it comes back with others."""
    unique_key: str | None = None
    unique: Unique = "reject"
    schedule_id: UUID | None = None
    id: UUID | None = None
    """Given by those who let another job of the same batch wait for this one; else the store makes it."""
    after: tuple[UUID, ...] = ()
    """The parents: jobs that must have ended before this one runs."""
    on_parent_failure: OnParentFailure = "skip"
    """What to do if a parent ends without success: never run, run all the same, or wait until it is redriven."""


class Submitted(msgspec.Struct, frozen=True):
    """The answer to a submit: the job, and whether this very call made it."""

    job_id: UUID
    created: bool


class Run(msgspec.Struct, frozen=True, gc=False):
    """A job in the hands of a worker. `(job_id, token)` and the worker guard every later write about it.

    Like an outcome it refers to nothing that could refer back, so the garbage collector need not look at the many.
    """

    job_id: UUID
    token: int
    lane: int
    kind: str
    queue: str
    tenant: str
    priority: Priority
    args: str
    """JSON text, as it was submitted."""
    labels: str | None
    """JSON text, or None when there are none."""
    options: str | None
    """JSON text of `Options`, or None when all are the defaults."""
    run_at: datetime
    due_at: datetime
    start_by: datetime | None
    claimed_at: datetime
    failures: int
    losses: int
    cancelling: bool = False
    needs: Needs = NO_NEEDS
    limit_keys: tuple[str, ...] = ()

    @property
    def held(self) -> frozenset[tuple[str, str]]:
        """The limit keys that it holds while it runs, each with its tenant."""
        return frozenset((self.tenant, key) for key in self.limit_keys)

    @property
    def attempt(self) -> int:
        """Which try of the job this is, counted from one."""
        return self.failures + self.losses + 1


class Claimed(msgspec.Struct, frozen=True):
    """The answer to a claim: runs in the order in which they should start, and when to look again if there are none."""

    runs: list[Run]
    next_due: datetime | None = None
    """The earliest instant at which a waiting job of these lanes becomes due or may be let go, as far as is known."""
    now: datetime | None = None
    """The store's time at the claim: until `next_due` it is `next_due - now`, whatever another clock says."""


class Job(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job as a reader sees it, whether active or finished."""

    id: UUID
    tenant: str
    queue: str
    kind: str
    name: str | None = None
    description: str | None = None
    args: Any = None
    labels: dict[str, str] = {}
    priority: Priority
    needs: Needs = Needs()
    retry: RetryPolicy = RetryPolicy()
    timeout: timedelta = DEFAULT_TIMEOUT
    limit_keys: tuple[str, ...] = ()
    unique_key: str | None = None
    idempotency_key: str | None = None
    schedule_id: UUID | None = None
    recurrence: str | None = None
    traceparent: str | None = None
    """The span that submitted it."""
    after: tuple[UUID, ...] = ()
    """Its parents by their ids, the first thousand of them."""
    on_parent_failure: OnParentFailure | None = None
    """None if it has no parents."""

    state: State
    cancelling: bool = False
    gate: str = "open"
    """What the strongest gate of its lane says: `open`, `hold`, `drop` or `slow`."""
    gates: tuple[Gate, ...] = ()
    """The gates it lies behind while it waits, strongest first."""
    waits_for: str | None = None
    """The limit key without room, while `limited`."""
    waiting_for: int = 0
    """How many parents it waits for, while `blocked`."""
    token: int
    failures: int
    losses: int
    created_at: datetime
    updated_at: datetime
    due_at: datetime
    """When it was meant to run."""
    run_at: datetime
    """When it may be claimed next."""
    start_by: datetime | None = None

    last_started_at: datetime | None = None
    last_ended_at: datetime | None = None
    last_worker: UUID | None = None
    finished_at: datetime | None = None
    erased_at: datetime | None = None
    """When all that it was about was removed on request; nothing but this record is left of it."""
    result: Any = None
    result_location: str | None = None
    error: Failure | None = None
    usage: Usage | None = None
    """What the run used that finished the job."""
    progress: float | None = None
    """From 0 to 1, as the last run told; None if it did not."""
    progress_message: str = ""
    paused: bool = False
    """Whether it runs and is paused."""

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of its error, if it is dead."""
        return fingerprint_of(self.error) if self.state is State.DEAD else None

    @property
    def recurring(self) -> bool:
        """Whether a schedule made this job."""
        return self.schedule_id is not None


class Attempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One try of a job on a worker that did not end in success, or the last one."""

    job_id: UUID
    token: int
    worker_id: UUID | None
    started_at: datetime | None
    ended_at: datetime
    cause: str
    error: Failure | None = None
    usage: Usage | None = None
