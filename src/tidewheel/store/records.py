"""Builds the records that readers see from rows; both stores select the same columns in the same order."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from math import isfinite
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import clean_text
from tidewheel.model.dependency import OnParentFailure
from tidewheel.model.gate import OPEN, Gate, gates_before
from tidewheel.model.job import Attempt, Job, Options
from tidewheel.model.outcome import Failure, Usage
from tidewheel.model.priority import Priority
from tidewheel.model.resources import parse_needs_text
from tidewheel.model.states import WAITING, State

_options = msgspec.json.Decoder(Options)
_failure = msgspec.json.Decoder(Failure)
_usage = msgspec.json.Decoder(Usage)
_labels = msgspec.json.Decoder(dict[str, str])
_json = msgspec.json.Decoder()
MAX_LINES: Final = 10_000
_MOST: Final = 2**63 - 1
_UNREADABLE: Final = (msgspec.MsgspecError, RecursionError, UnicodeError)


class JobRow(NamedTuple):
    """The columns of every statement that reads whole jobs, in this order."""

    id: Any
    tenant: str
    queue: str
    kind: str
    needs: str
    state: str
    priority: int
    args: str | None
    labels: str | None
    options: str | None
    limit_keys: Any
    unique_key: str | None
    idempotency_key: str | None
    schedule_id: Any
    cancel_at: Any
    gate: str
    waits_for: str | None
    token: int
    failures: int
    losses: int
    created_at: Any
    updated_at: Any
    due_at: Any
    run_at: Any
    start_by: Any
    started_at: Any
    ended_at: Any
    worker: Any
    finished_at: Any
    result: str | None
    result_location: str | None
    error: str | None
    usage: str | None
    waits: int
    on_parent_failure: str | None
    parents: Any
    erased_at: Any


_LARGE: Final = [JobRow._fields.index(name) for name in ("args", "result", "error")]


def size_of(row: Any) -> int:
    """Return about how many bytes a job takes that stands in a row."""
    return sum([len(row[column] or "") for column in _LARGE])


class Dialect(NamedTuple):
    """How a store's plain values become the model's: `None` never gets there."""

    uuid: Callable[[Any], Any]
    instant: Callable[[Any], Any]
    keys: Callable[[Any], tuple[str, ...]]
    ids: Callable[[Any], tuple[UUID, ...]]


def job_of(row: Sequence[Any], dialect: Dialect) -> Job:
    """Build the record of one job."""
    values = JobRow._make(row)
    options = Options() if values.options is None else _options.decode(values.options)
    state = State(values.state)
    return Job(
        id=dialect.uuid(values.id),
        tenant=values.tenant,
        queue=values.queue,
        kind=values.kind,
        name=options.name,
        description=options.description,
        args=_value_of(values.args),
        labels={} if values.labels is None else _labels.decode(values.labels),
        priority=Priority(values.priority),
        needs=parse_needs_text(values.needs),
        retry=options.retry,
        timeout=options.timeout,
        limit_keys=_maybe(dialect.keys, values.limit_keys) or (),
        unique_key=values.unique_key,
        idempotency_key=values.idempotency_key,
        schedule_id=_maybe(dialect.uuid, values.schedule_id),
        recurrence=options.recurrence,
        traceparent=options.traceparent,
        state=state,
        cancelling=state is State.RUNNING and values.cancel_at is not None,
        gate=values.gate,
        waits_for=values.waits_for,
        token=values.token,
        failures=values.failures,
        losses=values.losses,
        result=_value_of(values.result),
        result_location=values.result_location,
        error=failure_of(values.error),
        usage=usage_of(values.usage),
        last_worker=_maybe(dialect.uuid, values.worker),
        waiting_for=values.waits,
        after=_maybe(dialect.ids, values.parents) or (),
        on_parent_failure=cast("OnParentFailure | None", values.on_parent_failure),
        **_instants(values, dialect),
    )


def _instants(values: JobRow, dialect: Dialect) -> dict[str, Any]:
    when = dialect.instant
    return {
        "created_at": when(values.created_at),
        "updated_at": when(values.updated_at),
        "due_at": when(values.due_at),
        "run_at": when(values.run_at),
        "start_by": _maybe(when, values.start_by),
        "last_started_at": _maybe(when, values.started_at),
        "last_ended_at": _maybe(when, values.ended_at),
        "finished_at": _maybe(when, values.finished_at),
        "erased_at": _maybe(when, values.erased_at),
    }


def failure_of(text: str | None) -> Failure | None:
    """Build the error of a job or attempt from its JSON text; one that cannot be read is shown as it is."""
    try:
        return None if text is None else _failure.decode(text)
    except _UNREADABLE:
        return Failure(reason="unreadable", message=text or "")


def _value_of(text: str | None) -> Any:
    """Decode stored JSON; what cannot be read is shown as it is, for one bad row must not hide a whole page."""
    try:
        return None if text is None else _json.decode(text)
    except _UNREADABLE:
        return text


def failure_text(failure: Failure | None) -> str | None:
    """Return the JSON text of an error."""
    return None if failure is None else msgspec.json.encode(failure).decode()


def usage_of(text: str | None) -> Usage | None:
    """Build what a run used from its JSON text; what cannot be read is left out."""
    try:
        return None if text is None else _usage.decode(text)
    except _UNREADABLE:
        return None


def usage_text(usage: Usage | None) -> str | None:
    """Return the JSON text of what a run used. No outcome is refused for the sake of its figures."""
    if usage is None:
        return None
    clean = Usage(
        cpu_seconds=usage.cpu_seconds if isfinite(usage.cpu_seconds) else 0.0,
        peak_rss_bytes=usage.peak_rss_bytes,
        isolation=_clean_layers(usage.isolation),
    )
    return msgspec.json.encode(clean).decode()


@lru_cache(maxsize=64)
def _clean_layers(layers: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of layers as they can be stored; nearly all runs have the same ones."""
    return tuple(clean_text(layer, len(layer)) for layer in layers)


def attempt_of(row: Sequence[Any], dialect: Dialect) -> Attempt:
    """Build an attempt from (job_id, token, worker, started_at, ended_at, cause, error, usage)."""
    job_id, token, worker, started_at, ended_at, cause, error, usage = row
    return Attempt(
        job_id=dialect.uuid(job_id),
        token=token,
        worker_id=_maybe(dialect.uuid, worker),
        started_at=_maybe(dialect.instant, started_at),
        ended_at=dialect.instant(ended_at),
        cause=cause,
        error=failure_of(error),
        usage=usage_of(usage),
    )


def with_notes(jobs: Iterable[Job], rows: Iterable[Any], dialect: Dialect) -> list[Job]:
    """Add what runs noted, as (job_id, token, progress, message, paused), to their jobs; an earlier run's not."""
    notes = {(dialect.uuid(job_id), token): told for job_id, token, *told in rows}
    return [_with_note(job, *notes[job.id, job.token]) if (job.id, job.token) in notes else job for job in jobs]


def _with_note(job: Job, progress: float | None, message: str, paused: object) -> Job:
    paused = job.state is State.RUNNING and bool(paused)
    return msgspec.structs.replace(job, progress=progress, progress_message=message, paused=paused)


def with_gates(jobs: Iterable[Job], gates: Iterable[Gate]) -> list[Job]:
    """Add the gates that waiting jobs lie behind."""
    closed = list(gates)
    return [_behind(job, closed) if job.gate != OPEN and job.state in WAITING else job for job in jobs]


def are_gated(jobs: Iterable[Job]) -> bool:
    """Tell whether any of these jobs waits behind a gate, so that it is worth looking which."""
    return any(job.gate != OPEN and job.state in WAITING for job in jobs)


def _behind(job: Job, gates: list[Gate]) -> Job:
    behind = gates_before(gates, kind=job.kind, queue=job.queue, tenant=job.tenant)
    return msgspec.structs.replace(job, gates=tuple(behind))


def check_page(after: tuple[int, int] | None, limit: int) -> tuple[int, int]:
    """Return where a page of lines begins (exclusive), as (token, number)."""
    if not 1 <= limit <= MAX_LINES:
        raise Invalid("limit", f"must be between 1 and {MAX_LINES}, not {limit}")
    token, number = after or (-1, -1)
    if not (-1 <= token <= _MOST and -1 <= number <= _MOST):
        raise Invalid("after", f"must be the token and number of a line, not {(token, number)}")
    return token, number


def check_last_page(before: tuple[int, int] | None, limit: int) -> tuple[int, int]:
    """Return where a page of the last lines ends (exclusive), as (token, number)."""
    try:
        place = check_page(before, limit)
    except Invalid as error:
        raise Invalid("before" if error.field == "after" else error.field, error.why) from None
    return (_MOST, _MOST) if before is None else place


def _maybe(convert: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else convert(value)
