"""From what someone asks for to what can be stored: every check of a submit, in one place."""

import hashlib
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import msgspec
from msgspec.structs import replace

from tidewheel.errors import Invalid
from tidewheel.model import secret
from tidewheel.model.cap import cap_key_first, cap_key_of
from tidewheel.model.checks import (
    check_delay,
    check_duration,
    check_instant,
    check_json,
    check_key,
    check_labels,
    check_name,
    check_text,
    shown,
)
from tidewheel.model.dependency import REFERENCE, check_after, check_own_id, find_cycle, find_references
from tidewheel.model.ids import time_of
from tidewheel.model.job import JobSpec, Options
from tidewheel.model.priority import parse_priority
from tidewheel.model.resources import check_needs, needs_text
from tidewheel.model.retry import check_retry
from tidewheel.model.trace import trace_of

MAX_ARGS_BYTES = 256 * 1024
"""How large the arguments of a job may be as JSON, unless a store was told otherwise."""
LEAST_ARGS_BYTES = 1024
MOST_ARGS_BYTES = 960 * 1024
"""The bounds of that bound: a request of 1 MiB has to hold the arguments and all else about a job."""
MAX_LIMIT_KEYS = 8
MAX_TIMEOUT = timedelta(days=7)
MAX_ID_SKEW = timedelta(hours=12)
"""How far an id that is given may be from the present: what is stored is looked for by the time in its id."""

S = TypeVar("S", bound=msgspec.Struct)
_DEFAULTS = Options()
_NOTHING = JobSpec(kind="-")
_CHECKED_OPTIONS = ("name", "description", "retry", "timeout")
_encode = msgspec.json.Encoder(order="sorted").encode


class LaneKey(NamedTuple):
    """What makes a lane: jobs that share it are ordered, gated and matched to workers together."""

    tenant: str
    queue: str
    kind: str
    needs: str
    keyed: bool
    """Whether its jobs have limit keys, which the claim must then decide on."""
    retried: bool = False
    """Whether its jobs have failed before, and so share the retry budget of their queue."""
    overdue: bool = False
    """Whether its jobs waited long for a limit and were let go by their age, and so start before all others."""


class Prepared(msgspec.Struct, frozen=True):
    """A job that passed every check, as the stores write it."""

    lane: LaneKey
    priority: int
    args: str
    labels: str | None
    options: str | None
    run_at: datetime | None
    delay: timedelta | None
    start_by: datetime | None
    limit_keys: tuple[str, ...]
    idempotency_key: str | None
    fingerprint: bytes | None
    unique_key: str | None
    unique: str
    schedule_id: UUID | None
    id: UUID | None = None
    after: tuple[UUID, ...] = ()
    on_parent_failure: str = "skip"

    @property
    def cap_key(self) -> str | None:
        """The key by which it is counted while it waits."""
        return cap_key_of(self.limit_keys)


def check_args_bound(bound: int) -> int:
    """Return how large arguments may be. Raises Invalid for a bound that is none."""
    if type(bound) is not int or not LEAST_ARGS_BYTES <= bound <= MOST_ARGS_BYTES:
        why = f"must be a whole number between {LEAST_ARGS_BYTES} and {MOST_ARGS_BYTES}, not {shown(bound)}"
        raise Invalid("max_args_bytes", why)
    return bound


def prepare(spec: JobSpec, *, max_args_bytes: int = MAX_ARGS_BYTES) -> Prepared:
    """Check a spec and make it ready to be stored, or raise Invalid for its first bad field."""
    lane = _lane(spec)
    labels = check_labels("labels", spec.labels) if spec.labels else None
    args = prepare_args(spec.args, spec.after, max_args_bytes=max_args_bytes)
    _check_relations(spec)
    return Prepared(
        lane,
        parse_priority(spec.priority).value,
        args,
        labels,
        _options(spec.options),
        *_times(spec),
        cap_key_first(spec.limit_keys) if spec.limit_keys else (),
        _key("idempotency_key", spec.idempotency_key),
        fingerprint(spec) if spec.idempotency_key is not None else None,
        _key("unique_key", spec.unique_key),
        _unique(spec.unique),
        spec.schedule_id,
        spec.id,
        tuple(spec.after),
        spec.on_parent_failure,
    )


def find_flaws(spec: JobSpec) -> list[Invalid]:
    """Return all that `prepare` would refuse, at most one for each field; for people who want to mend it at once."""
    checks: list[Callable[[], object]] = [
        *(partial(check_name, field, getattr(spec, field)) for field in ("kind", "queue", "tenant")),
        partial(check_needs, spec.needs),
        partial(_check_limit_keys, spec.limit_keys),
        partial(check_labels, "labels", spec.labels),
        partial(prepare_args, spec.args, spec.after),
        partial(_check_relations, spec),
        *(partial(_options, _alone(_DEFAULTS, spec.options, field)) for field in _CHECKED_OPTIONS),
        *(partial(_times, _alone(_NOTHING, spec, field)) for field in ("run_at", "delay", "start_by")),
        partial(_times, spec),
        *(partial(_key, field, getattr(spec, field)) for field in ("idempotency_key", "unique_key")),
    ]
    found: dict[str, Invalid] = {}
    for check in checks:
        try:
            check()
        except Invalid as error:
            found.setdefault(error.field, error)
    return list(found.values())


def _alone(blank: S, given: S, field: str) -> S:
    """Return one field of what is given, and nothing else of it."""
    return replace(blank, **{field: getattr(given, field)})


def prepare_args(args: Any, after: Collection[UUID], *, max_args_bytes: int = MAX_ARGS_BYTES) -> str:
    """Return arguments as they are stored, or raise Invalid; results that they ask for must be of parents."""
    text = check_json("args", _object(args), max_bytes=max_args_bytes)
    if secret.REFERENCE in text:
        secret.find_secrets(msgspec.json.decode(text))
    if REFERENCE in text:
        strangers = set(find_references(msgspec.json.decode(text))).difference(after)
        if strangers:
            raise Invalid("args", f"asks for the result of job {min(strangers)}, which is not in after")
    return text


def prepare_all(specs: Sequence[JobSpec], *, max_args_bytes: int = MAX_ARGS_BYTES) -> list[Prepared]:
    """Check every spec; the field of a bad one says which it was."""
    jobs = []
    for position, spec in enumerate(specs):
        try:
            jobs.append(prepare(spec, max_args_bytes=max_args_bytes))
        except Invalid as error:
            if len(specs) == 1:
                raise
            raise Invalid(f"specs[{position}].{error.field}", error.why) from error
    if any(job.id is not None for job in jobs):
        _check_given_ids(jobs)
    return jobs


def check_ages(jobs: Sequence[Prepared], now: datetime) -> None:
    """Refuse given ids that were not made about now."""
    for position, job in enumerate(jobs):
        if job.id is not None and abs(time_of(job.id) - now) > MAX_ID_SKEW:
            why = f"must have been made within 12 hours of now, not at {time_of(job.id).isoformat()}"
            raise Invalid(field_of("id", position, len(jobs)), why)


def field_of(field: str, position: int, count: int) -> str:
    """Name a field of one of several specs."""
    return field if count == 1 else f"specs[{position}].{field}"


def fingerprint(spec: JobSpec) -> bytes:
    """Return a digest of all that was asked for, so that a key that comes back with another request is noticed.

    Where it was asked from does not count: who tries again does so in another span.
    """
    if spec.options.traceparent is not None:
        spec = replace(spec, options=replace(spec.options, traceparent=None, tracestate=None))
    return hashlib.sha256(_encode(msgspec.to_builtins(spec))).digest()


def _check_relations(spec: JobSpec) -> None:
    if spec.id is not None:
        check_own_id(spec.id)
    if spec.after or spec.on_parent_failure != "skip":
        check_after(spec.after, spec.on_parent_failure)


def _check_given_ids(jobs: Sequence[Prepared]) -> None:
    """Refuse ids that are given twice, and jobs that would wait for one another for ever."""
    seen: set[UUID] = set()
    for position, job in enumerate(jobs):
        if job.id is not None and job.id in seen:
            raise Invalid(field_of("id", position, len(jobs)), "is given twice")
        seen.update([job.id] if job.id is not None else [])
    ring = find_cycle({job.id: job.after for job in jobs if job.id is not None})
    if ring:
        position = next(position for position, job in enumerate(jobs) if job.id == ring[0])
        names = " → ".join(map(str, [*ring, ring[0]]))
        raise Invalid(field_of("after", position, len(jobs)), f"these would wait for one another: {names}")


def _lane(spec: JobSpec) -> LaneKey:
    check_name("kind", spec.kind)
    check_name("queue", spec.queue)
    check_name("tenant", spec.tenant)
    check_needs(spec.needs)
    if spec.limit_keys:
        _check_limit_keys(spec.limit_keys)
    return LaneKey(spec.tenant, spec.queue, spec.kind, needs_text(spec.needs), bool(spec.limit_keys))


def _check_limit_keys(keys: tuple[str, ...]) -> None:
    for key in keys:
        check_key("limit_keys", key)
    if len(set(keys)) != len(keys):
        raise Invalid("limit_keys", "names a key twice")
    if len(keys) > MAX_LIMIT_KEYS:
        raise Invalid("limit_keys", f"at most {MAX_LIMIT_KEYS}, not {len(keys)}")


def _object(args: Any) -> Any:
    if not isinstance(args, dict):
        raise Invalid("args", f"must be an object of named arguments, not {type(args).__name__}")
    return args


def _options(options: Options) -> str | None:
    if options.traceparent is not None or options.tracestate is not None:
        traceparent, tracestate = trace_of(options.traceparent, options.tracestate) or (None, None)
        options = replace(options, traceparent=traceparent, tracestate=tracestate)
    if options == _DEFAULTS:
        return None
    if options.name is not None:
        check_text("name", options.name, 200)
        if not options.name:
            raise Invalid("name", "must not be empty")
    if options.description is not None:
        check_text("description", options.description, 10_000)
    check_retry(options.retry)
    check_duration("timeout", options.timeout, timedelta(milliseconds=1), MAX_TIMEOUT)
    return msgspec.json.encode(options).decode()


def _times(spec: JobSpec) -> tuple[datetime | None, timedelta | None, datetime | None]:
    run_at = None if spec.run_at is None else check_instant("run_at", spec.run_at)
    delay = None if spec.delay is None else check_delay("delay", spec.delay)
    start_by = None if spec.start_by is None else check_instant("start_by", spec.start_by)
    if run_at is not None and delay is not None:
        raise Invalid("delay", "cannot be given together with run_at")
    if run_at is not None and start_by is not None and start_by < run_at:
        raise Invalid("start_by", "lies before run_at")
    return run_at, delay, start_by


def _key(field: str, key: str | None) -> str | None:
    return None if key is None else check_key(field, key)


def _unique(unique: str) -> str:
    if unique not in ("reject", "keep", "replace"):
        raise Invalid("unique", f"must be reject, keep or replace, not {shown(unique)}")
    return unique
