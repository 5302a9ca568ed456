"""Runs, claims and ends between the store's records and what goes over the wire."""

import random
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

import msgspec
from msgspec import UNSET, Raw

from tidewheel.errors import Invalid
from tidewheel.model.job import Job, Run
from tidewheel.model.note import RunNote
from tidewheel.model.outcome import NO_DELAY, Outcome, shortened
from tidewheel.model.priority import parse_priority
from tidewheel.model.retry import retries_left, retry_delay
from tidewheel.model.states import Cause
from tidewheel.model.worker import Worker
from tidewheel.model.worker_protocol import Claim, End, Note, PriorityName, Registered, RunDocument
from tidewheel.store.base import ClaimRequest
from tidewheel.tasks.ending import options_of

BEATS_PER_LEASE: Final = 6
"""How often a worker should be heard of within its lease."""
_PRIORITIES: Final[tuple[PriorityName, ...]] = ("high", "medium", "low")
_spread = random.Random()  # noqa: S311 - spreads retries, guards nothing


def registered(worker: Worker) -> Registered:
    """Return the document of a worker, for itself."""
    ttl = worker.ttl.total_seconds()
    return Registered(
        id=worker.id,
        name=worker.name,
        queues=list(worker.queues),
        kinds=None if worker.kinds is None else list(worker.kinds),
        offer=worker.offer,
        tenant=worker.tenant,
        ttl=ttl,
        beat_every=ttl / BEATS_PER_LEASE,
        alive=worker.alive,
        beat=worker.beat,
        registered_at=worker.registered_at,
        beat_at=worker.beat_at,
        lease_until=worker.lease_until,
        ended_at=worker.ended_at,
    )


def claim_request(claim: Claim, worker: Worker) -> ClaimRequest:
    """Return what to ask of the store: what was not said is as it was registered. Raises Invalid."""
    if worker.tenant is not None and claim.tenant not in (None, worker.tenant):
        raise Invalid("tenant", "this worker has the key of another tenant")
    kinds = worker.kinds if claim.kinds is None else claim.kinds
    return ClaimRequest(
        worker_id=worker.id,
        limit=claim.limit,
        queues=worker.queues if claim.queues is None else tuple(claim.queues),
        kinds=None if kinds is None else frozenset(kinds),
        free=claim.free,
        labels=worker.offer.labels if claim.labels is None else claim.labels,
        at_least=None if claim.at_least is None else parse_priority(claim.at_least),
        needs=claim.needs,
        tenant=worker.tenant or claim.tenant,
    )


def run_document(run: Run) -> RunDocument:
    """Return the document of a run."""
    return RunDocument(
        job_id=run.job_id,
        token=run.token,
        lane=run.lane,
        kind=run.kind,
        queue=run.queue,
        tenant=run.tenant,
        priority=_PRIORITIES[run.priority],
        args=Raw(run.args.encode()),
        labels=raw(run.labels),
        options=raw(run.options),
        timeout=options_of(run.options).timeout.total_seconds(),
        attempt=run.attempt,
        run_at=run.run_at,
        due_at=run.due_at,
        start_by=run.start_by,
        claimed_at=run.claimed_at,
        failures=run.failures,
        losses=run.losses,
        cancelling=run.cancelling,
        needs=run.needs,
        limit_keys=list(run.limit_keys),
    )


def outcome_of(end: End, field: str) -> Outcome:
    """Return the outcome that a worker reports. Raises Invalid."""
    if end.result is not UNSET and end.result_text is not None:
        raise Invalid(f"{field}.result_text", "not together with result")
    cause = Cause(end.cause)
    result = end.result_text
    if end.result is not UNSET:
        result = msgspec.json.encode(end.result).decode()
    elif result is None and cause is Cause.RETURNED and end.result_location is None:
        result = "null"
    return Outcome(
        job_id=end.job_id,
        token=end.token,
        cause=cause,
        result=result,
        result_location=end.result_location,
        error=None if end.error is None else shortened(end.error),
        delay=NO_DELAY if end.delay is None else timedelta(seconds=end.delay),
        started_at=end.started_at,
        usage=end.usage,
    )


def by_policy(outcome: Outcome, job: Job) -> Outcome:
    """Return a failure with the delay that the job's own retry policy says, or as the last one."""
    is_crash = outcome.cause is Cause.CRASHED
    tries = job.failures + job.losses + 1 if is_crash else job.failures + 1
    if not retries_left(job.retry, tries):
        return msgspec.structs.replace(outcome, cause=Cause.GAVE_UP)
    earlier = job.losses if is_crash else job.failures
    return msgspec.structs.replace(outcome, delay=retry_delay(job.retry, earlier + 1, _spread.random()))


def notes_of(notes: Iterable[Note]) -> list[RunNote]:
    """Return notes as the store keeps them. Raises Invalid."""
    return [_note(note, f"notes[{position}]") for position, note in enumerate(notes)]


def _note(note: Note, field: str) -> RunNote:
    if note.checkpoint is not UNSET and note.checkpoint_text is not None:
        raise Invalid(f"{field}.checkpoint_text", "not together with checkpoint")
    checkpoint = note.checkpoint_text
    if note.checkpoint is not UNSET:
        checkpoint = msgspec.json.encode(note.checkpoint).decode()
    return RunNote(
        job_id=note.job_id,
        token=note.token,
        progress=note.progress,
        message=note.message,
        checkpoint=checkpoint,
        paused=note.paused,
    )


def raw(text: str | None) -> Raw:
    """Return stored JSON text as it is; null if there is none."""
    return Raw(b"null" if text is None else text.encode())
