"""What a server shows of jobs and other things, and the records that it stands for. Unknown fields are passed over."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from tidewheel.model.cap import Overflow, QueueCap
from tidewheel.model.dependency import OnParentFailure, Relative
from tidewheel.model.gate import Gate
from tidewheel.model.job import Attempt, Job
from tidewheel.model.limit import Limit, LimitRule, LimitUse
from tidewheel.model.log import LogLine, LogStream
from tidewheel.model.outcome import Failure, Usage
from tidewheel.model.priority import parse_priority
from tidewheel.model.rate import pace_of
from tidewheel.model.resources import Needs, Offer
from tidewheel.model.retry import Backoff, Jitter, RetryPolicy
from tidewheel.model.states import State
from tidewheel.model.worker import Worker


class RetryDocument(msgspec.Struct, frozen=True):
    """How often a job is tried."""

    max_attempts: int
    backoff: Backoff
    delay: float
    cap: float
    jitter: Jitter

    def record(self) -> RetryPolicy:
        return RetryPolicy(
            max_attempts=self.max_attempts,
            backoff=self.backoff,
            delay=timedelta(seconds=self.delay),
            cap=timedelta(seconds=self.cap),
            jitter=self.jitter,
        )


class JobDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A job."""

    id: UUID
    kind: str
    name: str | None
    description: str | None
    queue: str
    tenant: str
    args: Any = None
    labels: dict[str, str]
    priority: str
    needs: Needs
    retry: RetryDocument
    timeout: float
    limit_keys: tuple[str, ...]
    unique_key: str | None
    idempotency_key: str | None
    schedule_id: UUID | None
    recurrence: str | None
    traceparent: str | None
    after: tuple[UUID, ...]
    on_parent_failure: OnParentFailure | None
    state: State
    cancelling: bool
    paused: bool
    gate: str
    gates: tuple[Gate, ...]
    waits_for: str | None
    waiting_for: int
    token: int
    failures: int
    losses: int
    created_at: datetime
    updated_at: datetime
    due_at: datetime
    run_at: datetime
    start_by: datetime | None
    last_started_at: datetime | None
    last_ended_at: datetime | None
    last_worker: UUID | None
    finished_at: datetime | None
    erased_at: datetime | None
    result: Any = None
    result_location: str | None
    error: Failure | None
    usage: Usage | None
    progress: float | None
    progress_message: str

    def record(self) -> Job:
        same = {name: getattr(self, name) for name in self.__struct_fields__}
        changed = {
            "priority": parse_priority(self.priority),
            "retry": self.retry.record(),
            "timeout": timedelta(seconds=self.timeout),
        }
        return Job(**(same | changed))


class JobPage(msgspec.Struct, frozen=True):
    """Jobs, newest first."""

    jobs: list[JobDocument]
    next_after: UUID | None
    next_cursor: str | None = None


class AttemptDocument(msgspec.Struct, frozen=True):
    """One try of a job."""

    token: int
    worker_id: UUID | None
    started_at: datetime | None
    ended_at: datetime
    cause: str
    error: Failure | None
    usage: Usage | None

    def record(self, job_id: UUID) -> Attempt:
        return Attempt(job_id=job_id, **{name: getattr(self, name) for name in self.__struct_fields__})


class AttemptList(msgspec.Struct, frozen=True):
    """The last attempts of a job."""

    attempts: list[AttemptDocument]
    next_before: int | None = None


class RelativeDocument(msgspec.Struct, frozen=True):
    """A parent or a child."""

    id: UUID
    kind: str | None
    state: State | None

    def record(self) -> Relative:
        return Relative(self.id, self.kind, self.state)


class RelativePage(msgspec.Struct, frozen=True):
    """Parents or children."""

    jobs: list[RelativeDocument]


class LineDocument(msgspec.Struct, frozen=True):
    """A line of a run."""

    token: int
    number: int
    at: datetime
    stream: LogStream
    level: str | None
    text: str

    def record(self, job_id: UUID) -> LogLine:
        return LogLine(job_id, self.token, self.number, self.at, self.stream, self.level, self.text)


class LinePage(msgspec.Struct, frozen=True):
    """Lines, first to last."""

    lines: list[LineDocument]
    next_cursor: str | None = None


class GateList(msgspec.Struct, frozen=True):
    """The closed gates."""

    gates: list[Gate]


class LimitDocument(msgspec.Struct, frozen=True):
    """A limit."""

    key: str
    most: int | None
    running: int
    rate: str | None
    burst: int | None
    tokens: int | None
    rule: str | None
    tenant: str
    waiting: int | None = None
    holders: list[UUID] | None = None

    def use(self) -> LimitUse:
        return LimitUse(self.tenant, self.key, self.waiting or 0, self.holders or [])

    def record(self) -> Limit:
        pace = pace_of(self.rate, self.burst)
        return Limit(self.tenant, self.key, self.most, self.running, pace, self.tokens, self.rule)


class LimitList(msgspec.Struct, frozen=True):
    """Limits."""

    limits: list[LimitDocument]


class CapList(msgspec.Struct, frozen=True):
    """Caps of queues."""

    caps: list[QueueCap]


class RuleDocument(msgspec.Struct, frozen=True):
    """A rule."""

    name: str
    most: int | None
    rate: str | None
    burst: int | None
    waiting: int | None
    overflow: Overflow
    by_hand: bool

    def record(self) -> LimitRule:
        pace = pace_of(self.rate, self.burst)
        return LimitRule(self.name, self.most, pace, self.by_hand, self.waiting, self.overflow)


class RuleList(msgspec.Struct, frozen=True):
    """Rules."""

    rules: list[RuleDocument]


class WorkerDocument(msgspec.Struct, frozen=True):
    """A worker."""

    id: UUID
    name: str
    queues: tuple[str, ...]
    kinds: tuple[str, ...] | None
    offer: Offer
    tenant: str | None
    ttl: float
    alive: bool
    beat: int
    registered_at: datetime
    beat_at: datetime
    lease_until: datetime
    ended_at: datetime | None
    clock_ahead: float | None = None

    def record(self) -> Worker:
        same = {name: getattr(self, name) for name in self.__struct_fields__}
        ahead = None if self.clock_ahead is None else timedelta(seconds=self.clock_ahead)
        return Worker(**(same | {"ttl": timedelta(seconds=self.ttl), "clock_ahead": ahead}))


class WorkerList(msgspec.Struct, frozen=True):
    """Workers."""

    workers: list[WorkerDocument]


class AcceptedJob(msgspec.Struct, frozen=True):
    """A job that is stored."""

    id: UUID
    created: bool
    job: JobDocument | None = None


class AcceptedBatch(msgspec.Struct, frozen=True):
    """Jobs that are stored."""

    jobs: list[AcceptedJob]
