"""Submitting: one job, or many at once."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid, OutcomeUnknown, TideError, TooMany
from tidewheel.model.job import JobSpec, Submitted
from tidewheel.model.states import FINAL
from tidewheel.model.trace import trace_of
from tidewheel.observe.own_log import note
from tidewheel.observe.tracing import sending
from tidewheel.server.artifact_use import artifact_in, use_artifacts
from tidewheel.server.endpoint import Answer, Call, NoQuery
from tidewheel.server.job_document import JobDocument, job_document
from tidewheel.server.job_flaws import telling_all
from tidewheel.server.job_request import MOST_IN_BATCH_KEY, JobRequest, spec_of, specs_of
from tidewheel.server.reading import read_key, read_wait
from tidewheel.server.service import Service
from tidewheel.tasks.builtin import check_call

MOST_IN_BATCH: Final = 10_000
OK: Final = 200
ACCEPTED: Final = 202
_POSITION: Final = re.compile(r"specs\[([0-9]+)\]")
_encode = msgspec.json.Encoder().encode


class AcceptedJob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job that is stored durably."""

    id: UUID
    created: bool
    """Whether this very request made it; false if a key stood for an earlier one."""
    location: str
    """Where to ask for it."""
    job: JobDocument | None = None
    """The whole job, if it was waited for and has ended."""


class AcceptedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that are stored durably, in the order in which they were sent."""

    jobs: list[AcceptedJob]
    created: int
    """How many of them this very request made."""


async def submit(service: Service, call: Call[JobRequest, NoQuery]) -> Answer:
    """Store one job; wait for its end if that is wished."""
    _check_tenants(call, [call.body])
    with telling_all([call.body], call.tenant):
        spec = spec_of(call.body, call.tenant, read_key(call.headers))
        check_call(spec.kind, spec.args)
        if (digest := artifact_in(spec.kind, spec.args)) is not None:
            await use_artifacts(service, [("args.artifact", digest)], call.tenant)
        [submitted] = await _take_in(service, call, [spec], service.intake.submit)
    note(job_id=str(submitted.job_id), kind=spec.kind)
    accepted, wait = _accepted(submitted), read_wait(call.headers)
    status, headers = ACCEPTED if submitted.created else OK, [("location", accepted.location)]
    if wait:
        job = await service.ended(submitted.job_id, spec.tenant, wait, call.gone)
        headers.append(("preference-applied", f"wait={wait}"))
        if job.state in FINAL:
            status = OK
            accepted = msgspec.structs.replace(accepted, job=job_document(job, service.clock.now()))
    return Answer(accepted, status, tuple(headers))


async def submit_batch(service: Service, call: Call[list[JobRequest], NoQuery]) -> Answer:
    """Store many jobs, all or none."""
    _check_tenants(call, call.body)
    with telling_all(call.body, call.tenant, batch=len(call.body) > 1):
        answers = await _take_in_all(service, call)
    created = sum(answer.created for answer in answers)
    batch = AcceptedBatch(jobs=[_accepted(answer) for answer in answers], created=created)
    return Answer(batch, ACCEPTED if created else OK)


async def _take_in_all(service: Service, call: Call[list[JobRequest], NoQuery]) -> list[Submitted]:
    specs = specs_of(call.body, call.tenant, read_key(call.headers, MOST_IN_BATCH_KEY))
    named = [(f"specs[{place}].args.artifact", artifact_in(one.kind, one.args)) for place, one in enumerate(specs)]
    await use_artifacts(service, named, call.tenant)
    return await _take_in(service, call, specs, service.store.submit)


def _check_tenants(call: Call[Any, NoQuery], requests: Sequence[JobRequest]) -> None:
    """Refuse jobs for others, unless it comes with a key of all tenants."""
    for request in requests:
        if request.tenant is not None:
            call.actor.scope(request.tenant)


async def _take_in(
    service: Service,
    call: Call[Any, Any],
    specs: Sequence[JobSpec],
    store: Callable[[Sequence[JobSpec]], Awaitable[list[Submitted]]],
) -> list[Submitted]:
    """Store jobs within the bounds of their tenants, and have it written down."""
    with sending(specs, trace_of(call.headers.get("traceparent"), call.headers.get("tracestate"))) as traced:
        return await _store_traced(service, call, traced, store)


async def _store_traced(
    service: Service,
    call: Call[Any, Any],
    specs: Sequence[JobSpec],
    store: Callable[[Sequence[JobSpec]], Awaitable[list[Submitted]]],
) -> list[Submitted]:
    let_in = await _let_in(service, specs)
    try:
        answers = await store(specs)
    except OutcomeUnknown:
        raise
    except TideError:
        _give_back(service, let_in)
        raise
    made: dict[str, list[UUID]] = {tenant: [] for tenant in let_in}
    queues: dict[str, int] = {}
    for spec, answer in zip(specs, answers, strict=True):
        if answer.created:
            made.setdefault(spec.tenant, []).append(answer.job_id)
            queues[spec.queue] = queues.get(spec.queue, 0) + 1
    for tenant, ids in made.items():
        service.quotas.give_back(tenant, let_in.get(tenant, 0) - len(ids))
        service.audit.note_submit(call.actor, ids, tenant=tenant)
    for queue, jobs in queues.items():
        service.metrics.submitted(queue, jobs)
    return answers


async def _let_in(service: Service, specs: Sequence[JobSpec]) -> dict[str, int]:
    """Let all in, or none, and return how many of each tenant. A repeat of what was stored is always let in."""
    everyone = range(len(specs))
    try:
        return await _check_quotas(service, specs, everyone)
    except (TooMany, Invalid):  # so that the store is only asked when it matters
        if not any(spec.idempotency_key for spec in specs):
            raise
        seen = await service.store.seen_before(specs)
        if not any(seen):
            raise
        return await _check_quotas(service, specs, [position for position in everyone if not seen[position]])


async def _check_quotas(service: Service, specs: Sequence[JobSpec], positions: Sequence[int]) -> dict[str, int]:
    """Let some of the jobs in, or none of them, and return how many of each tenant."""
    by_tenant: dict[str, list[int]] = {}
    for position in positions:
        by_tenant.setdefault(specs[position].tenant, []).append(position)
    passed: dict[str, int] = {}
    for tenant, own in by_tenant.items():
        try:
            await service.quotas.check(tenant, [len(_encode(specs[position].args)) for position in own])
        except TideError as error:
            _give_back(service, passed)
            if len(specs) > 1 and isinstance(error, Invalid):
                found = _POSITION.match(error.field)
                raise Invalid(f"specs[{own[int(found[1]) if found else 0]}].args", error.why) from None
            raise
        passed[tenant] = len(own)
    return passed


def _give_back(service: Service, let_in: Mapping[str, int]) -> None:
    for tenant, jobs in let_in.items():
        service.quotas.give_back(tenant, jobs)


def _accepted(submitted: Submitted) -> AcceptedJob:
    return AcceptedJob(id=submitted.job_id, created=submitted.created, location=f"/v1/jobs/{submitted.job_id}")
