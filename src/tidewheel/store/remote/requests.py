"""What is asked for, as a server reads it."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from tidewheel.errors import Invalid
from tidewheel.model.cap import QueueCap
from tidewheel.model.gate import GateSpec
from tidewheel.model.job import JobSpec
from tidewheel.model.job_words import read_words
from tidewheel.model.limit import LimitRule
from tidewheel.model.outcome import Failure, Outcome
from tidewheel.model.priority import Priority, parse_priority
from tidewheel.model.rate import Pace
from tidewheel.model.retry import RetryPolicy
from tidewheel.model.submission import Prepared
from tidewheel.store.base import ClaimRequest, JobFilter
from tidewheel.store.records import usage_of, usage_text

_halves: Final = re.compile("[\ud800-\udfff]")


def job_request(spec: JobSpec, prepared: Prepared) -> dict[str, Any]:
    """Return the request of a job that passed every check."""
    if spec.schedule_id is not None or spec.options.recurrence is not None:
        raise Invalid("schedule_id", "the jobs of schedules are made by the server")
    options = spec.options
    asked = {
        "kind": spec.kind,
        "args": Raw(prepared.args.encode()),
        "queue": spec.queue,
        "tenant": spec.tenant,
        "priority": priority_name(parse_priority(spec.priority)),
        "name": options.name,
        "description": options.description,
        "labels": spec.labels,
        "needs": {"resources": spec.needs.resources, "labels": spec.needs.labels},
        "retry": retry_body(options.retry),
        "timeout": options.timeout.total_seconds(),
        "traceparent": options.traceparent,
        "tracestate": options.tracestate,
        "run_at": spec.run_at,
        "delay": None if spec.delay is None else spec.delay.total_seconds(),
        "start_by": spec.start_by,
        "limit_keys": list(spec.limit_keys),
        "idempotency_key": spec.idempotency_key,
        "unique_key": spec.unique_key,
        "unique": spec.unique,
        "id": spec.id,
        "after": list(spec.after),
        "on_parent_failure": spec.on_parent_failure,
    }
    return {name: value for name, value in asked.items() if value is not None}


def retry_body(retry: RetryPolicy) -> dict[str, Any]:
    """Return how often a job is tried, as a request says it."""
    return {
        "max_attempts": retry.max_attempts,
        "backoff": retry.backoff,
        "delay": retry.delay.total_seconds(),
        "cap": retry.cap.total_seconds(),
        "jitter": retry.jitter,
    }


def priority_name(priority: Priority) -> str:
    """Return the word for a priority."""
    return priority.name.lower()


def find_query(where: JobFilter, limit: int, after: object) -> dict[str, Any]:
    """Return the query of a list of jobs."""
    return {
        "state": None if where.states is None else ",".join(sorted(where.states)),
        "kind": where.kind,
        "queue": where.queue,
        "schedule_id": where.schedule_id,
        "label": None if where.label is None else "=".join(where.label),
        "error": where.error,
        "q": None if where.text is None else _readable(where.text),
        "created_after": None if where.created_from is None else where.created_from.isoformat(),
        "created_before": None if where.created_before is None else where.created_before.isoformat(),
        "limit": limit,
        "after": after,
        "full": "true",
    }


def claim_body(request: ClaimRequest, most: int) -> dict[str, Any]:
    """Return the body of a claim."""
    asked = {
        "limit": min(request.limit, most),
        "queues": list(request.queues),
        "kinds": None if request.kinds is None else sorted(request.kinds),
        "free": request.free,
        "labels": request.labels,
        "at_least": None if request.at_least is None else priority_name(request.at_least),
        "needs": request.needs,
        "tenant": request.tenant,
    }
    return {name: value for name, value in asked.items() if value is not None}


def end_body(outcome: Outcome) -> dict[str, Any]:
    """Return how a run ended, with its texts as they are: the server says what cannot be stored."""
    return {
        "job_id": outcome.job_id,
        "token": outcome.token,
        "cause": outcome.cause,
        "result_text": _sendable(outcome.result),
        "result_location": _sendable(outcome.result_location),
        "error": None if outcome.error is None else _failure(outcome.error),
        "delay": max(0.0, outcome.delay.total_seconds()),
        "started_at": outcome.started_at,
        "usage": usage_of(usage_text(outcome.usage)),
    }


def gate_body(spec: GateSpec) -> dict[str, Any]:
    """Return the body that closes a gate; its tenant goes by the header."""
    asked: Mapping[str, Any] = {
        "mode": spec.mode,
        "kind": spec.kind,
        "queue": spec.queue,
        "reason": spec.reason,
        "author": spec.author,
        "rate": spec.rate,
        "expires_at": spec.expires_at,
        "lasts": None if spec.lasts is None else spec.lasts.total_seconds(),
        "stop_running": spec.stop_running,
    }
    return {name: value for name, value in asked.items() if value is not None}


def limit_body(most: int | None, rate: Pace | None) -> dict[str, Any]:
    """Return the body that sets a limit."""
    return {
        "most": most,
        "rate": None if rate is None else str(rate),
        "burst": None if rate is None else rate.burst,
    }


def rule_body(rule: LimitRule) -> dict[str, Any]:
    """Return the body that sets a rule."""
    return limit_body(rule.most, rule.rate) | {"waiting": rule.waiting, "overflow": rule.overflow}


def cap_body(cap: QueueCap) -> dict[str, Any]:
    """Return the body that sets a cap; its tenant goes by the header."""
    return {"most": cap.most, "overflow": cap.overflow}


def _readable(text: str) -> str:
    read_words(text)  # says what is wrong with it
    return text


def _failure(error: Failure) -> Failure:
    return msgspec.structs.replace(
        error,
        reason=_sendable(error.reason),
        message=_sendable(error.message),
        detail=_sendable(error.detail),
    )


def _sendable(text: Any) -> Any:
    """Put NUL in the place of half a character: JSON in UTF-8 has none, and a store refuses the one as the other."""
    return None if text is None else _halves.sub("\0", text)
