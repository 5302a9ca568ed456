"""A job as a client asks for it."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from tidewheel.errors import Invalid
from tidewheel.model.checks import MAX_NAME
from tidewheel.model.job import DEFAULT_QUEUE, DEFAULT_TIMEOUT, JobSpec, Options, Unique
from tidewheel.model.priority import parse_priority
from tidewheel.model.resources import Needs
from tidewheel.model.retry import Backoff, Jitter, RetryPolicy
from tidewheel.tasks.builtin import check_call
from tidewheel.tasks.durations import parse_duration

Instant = Annotated[datetime, Meta(tz=True)]
Duration = Annotated[
    str | float, Meta(description="Seconds, a text such as `1h30m`, or an ISO 8601 duration such as `PT90M`.")
]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
PriorityName = Literal["high", "medium", "low"]

MOST_IN_BATCH_KEY: Final = MAX_NAME - len("#9999")
"""How long a key of a whole batch may be, for each job has it with its position."""
_RETRY = RetryPolicy()
_encode = msgspec.json.Encoder(order="sorted").encode


class RetryRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often a job is tried, and how long it waits in between."""

    max_attempts: Annotated[int, Meta(ge=1, le=10_000)] = _RETRY.max_attempts
    backoff: Backoff = _RETRY.backoff
    delay: Duration = _RETRY.delay.total_seconds()
    cap: Duration = _RETRY.cap.total_seconds()
    jitter: Jitter = _RETRY.jitter


class NeedsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a job asks of a worker: whole numbers of thousandths of a core, bytes of memory or pieces, and labels."""

    resources: Mapping[Name, Annotated[int, Meta(ge=0)]] = {}
    labels: Mapping[Name, Annotated[str, Meta(max_length=200)]] = {}


class JobRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What someone asks to be run."""

    kind: Name
    """Which task."""
    args: Mapping[str, Any] = {}
    """Its arguments by name."""
    queue: Name = DEFAULT_QUEUE
    priority: PriorityName = "medium"
    name: Name | None = None
    """For people."""
    description: Annotated[str, Meta(max_length=10_000)] | None = None
    labels: Mapping[Name, Annotated[str, Meta(max_length=200)]] = {}
    """Names and values to find it by."""
    needs: NeedsRequest = NeedsRequest()
    retry: RetryRequest = RetryRequest()
    timeout: Duration = DEFAULT_TIMEOUT.total_seconds()
    """How long one attempt may take."""
    run_at: Instant | None = None
    """When it shall run; not together with `delay`."""
    delay: Duration | None = None
    """After how long it shall run."""
    start_by: Instant | None = None
    """By when it must have started; later it expires."""
    limit_keys: Annotated[list[Name], Meta(max_length=8)] = []
    idempotency_key: Name | None = None
    """As the header of that name, for jobs of a batch."""
    traceparent: str | None = None
    """The span that submits it, as the header of that name; one that is not written as it should be is ignored."""
    tracestate: str | None = None
    unique_key: Name | None = None
    """At most one active job has it."""
    unique: Unique = "reject"
    """What to do if one has: refuse this one, answer with that one, or replace it while it waits."""
    id: UUID | None = None
    """A UUID of version 7, for those who let another job of the same batch wait for this one."""
    after: list[UUID] = []
    """Jobs that must have ended before it runs."""
    on_parent_failure: Literal["skip", "run", "hold"] = "skip"
    tenant: Name | None = None
    """Whose job it is, for keys of all tenants that submit for several at once; else that of the request."""


def one_key(of_header: str | None, of_body: str | None) -> str | None:
    """Return the idempotency key of a request, which may stand in its header, in its body, or in both alike."""
    if of_header is not None and of_body not in (None, of_header):
        raise Invalid("idempotency_key", "differs from the Idempotency-Key of the request")
    return of_body if of_header is None else of_header


def spec_of(request: JobRequest, tenant: str, key: str | None) -> JobSpec:
    """Return what the store is asked for. `key` is the idempotency key of the header, if there was one."""
    return JobSpec(
        kind=request.kind,
        args=request.args,
        queue=request.queue,
        tenant=request.tenant or tenant,
        priority=parse_priority(request.priority),
        labels=request.labels,
        needs=Needs(resources=request.needs.resources, labels=request.needs.labels),
        options=_options(request),
        run_at=request.run_at,
        delay=None if request.delay is None else duration_of(request.delay, "delay"),
        start_by=request.start_by,
        limit_keys=tuple(request.limit_keys),
        idempotency_key=one_key(key, request.idempotency_key),
        unique_key=request.unique_key,
        unique=request.unique,
        id=request.id,
        after=tuple(request.after),
        on_parent_failure=request.on_parent_failure,
    )


def specs_of(requests: Sequence[JobRequest], tenant: str, key: str | None) -> list[JobSpec]:
    """Return the specs of a batch; a key of the whole batch stands for each of its jobs with its position."""
    specs = []
    batch = None if key is None else _digest_of(requests)
    for position, request in enumerate(requests):
        try:
            spec = spec_of(request, tenant, None if key is None else f"{key}#{position}")
            check_call(spec.kind, spec.args)
            specs.append(spec if batch is None else msgspec.structs.replace(spec, batch=batch))
        except Invalid as error:
            raise Invalid(f"specs[{position}].{error.field}", error.why) from None
    return specs


def _digest_of(requests: Sequence[JobRequest]) -> str:
    """Return a digest of all that is asked for; where it is asked from does not count."""
    plain = [msgspec.structs.replace(request, traceparent=None, tracestate=None) for request in requests]
    return hashlib.sha256(_encode(plain)).hexdigest()


def duration_of(value: str | float, field: str) -> timedelta:
    """Return the duration that a client wrote in one of three ways."""
    if isinstance(value, str) and value[:1] == "P":
        try:
            return msgspec.convert(value, timedelta)
        except (msgspec.ValidationError, OverflowError) as error:
            raise Invalid(field, f"must be a duration such as PT90M or 1h30m: {error}") from None
    return parse_duration(value, field)


def retry_of(request: RetryRequest) -> RetryPolicy:
    """Return the policy that a request stands for."""
    if request == _DEFAULT:
        return _RETRY
    return RetryPolicy(
        max_attempts=request.max_attempts,
        backoff=request.backoff,
        delay=duration_of(request.delay, "retry.delay"),
        cap=duration_of(request.cap, "retry.cap"),
        jitter=request.jitter,
    )


def _options(request: JobRequest) -> Options:
    retry, words = request.retry, (request.name, request.description, request.traceparent)
    if retry == _DEFAULT and request.timeout == _TIMEOUT and words == _NO_WORDS:
        return _OPTIONS
    return Options(
        name=request.name,
        description=request.description,
        retry=retry_of(retry),
        timeout=duration_of(request.timeout, "timeout"),
        traceparent=request.traceparent,
        tracestate=request.tracestate,
    )


_DEFAULT = RetryRequest()
_TIMEOUT = DEFAULT_TIMEOUT.total_seconds()
_OPTIONS = Options()
_NO_WORDS = (None, None, None)
