"""What can be said about a job when it is submitted, and about a list when it is asked for."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict
from uuid import UUID

import msgspec
from msgspec import Raw

from tidewheel.model.checks import check_json
from tidewheel.model.submission import MOST_ARGS_BYTES
from tidewheel.observe.tracing import current

Duration = timedelta | float | str
"""A time span: a timedelta, seconds, or a text such as `1h30m`."""
PriorityName = Literal["high", "medium", "low"]


class JobOptions(TypedDict, total=False):
    """Everything about a job but its kind and arguments; `/docs` of a server tells what each means."""

    queue: str
    priority: PriorityName
    name: str
    description: str
    labels: Mapping[str, str]
    needs: Mapping[str, Any]
    retry: Mapping[str, Any]
    timeout: Duration
    run_at: datetime
    delay: Duration
    start_by: datetime
    limit_keys: Sequence[str]
    idempotency_key: str
    traceparent: str
    """The span that submits it; that of OpenTelemetry, where it is used, need not be named."""
    tracestate: str
    unique_key: str
    unique: Literal["reject", "keep", "replace"]
    id: UUID
    after: Sequence[UUID]
    on_parent_failure: Literal["skip", "run", "hold"]


class NewJob(msgspec.Struct, frozen=True):
    """A job of a batch."""

    kind: str
    args: Mapping[str, Any] = {}
    options: JobOptions = {}


class JobConditions(TypedDict, total=False):
    """Which jobs to list; all of them must hold."""

    state: str
    """One state or several, separated by commas."""
    kind: str
    queue: str
    schedule_id: UUID
    label: str
    error: str
    """A part of the message of the error."""
    created_after: datetime
    created_before: datetime


def body_of(kind: str, args: Mapping[str, Any], options: JobOptions) -> dict[str, Any]:
    """Return the body of a submit. Raises Invalid for arguments that are no JSON."""
    text = check_json("args", dict(args), max_bytes=MOST_ARGS_BYTES)
    given = {name: plain(value) for name, value in options.items()}
    if (trace := current()) is not None:
        given = {"traceparent": trace.traceparent, "tracestate": trace.tracestate or "", **given}
    return {"kind": kind, "args": Raw(text.encode()), **given}


def query_of(conditions: JobConditions) -> dict[str, Any]:
    """Return the query of a list."""
    return in_query(conditions)


def in_query(conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Return conditions as a query has them."""
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in conditions.items()}


def plain(value: object) -> object:
    """Return a value as JSON has it."""
    return value.total_seconds() if isinstance(value, timedelta) else value
