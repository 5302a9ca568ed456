"""Submitting: one job, or many at once."""

from typing import Final
from uuid import UUID

import msgspec

from tidewheel.model.job import Submitted
from tidewheel.model.states import FINAL
from tidewheel.server.artifact_use import artifact_in, use_artifacts
from tidewheel.server.endpoint import Answer, Call, NoQuery
from tidewheel.server.job_document import JobDocument, job_document
from tidewheel.server.job_request import JobRequest, spec_of, specs_of
from tidewheel.server.problems import Refused
from tidewheel.server.reading import read_key, read_wait
from tidewheel.server.service import Service

MOST_IN_BATCH: Final = 10_000
OK: Final = 200
ACCEPTED: Final = 202


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
    spec = spec_of(call.body, call.tenant, read_key(call.headers))
    if (digest := artifact_in(spec.kind, spec.args)) is not None:
        await use_artifacts(service, [("args.artifact", digest)], call.tenant)
    submitted = await service.intake.submit(spec)
    accepted, wait = _accepted(submitted), read_wait(call.headers)
    status, headers = ACCEPTED if submitted.created else OK, [("location", accepted.location)]
    if wait:
        job = await service.ended(submitted.job_id, call.tenant, wait)
        headers.append(("preference-applied", f"wait={wait}"))
        if job.state in FINAL:
            status = OK
            accepted = msgspec.structs.replace(accepted, job=job_document(job, service.clock.now()))
    return Answer(accepted, status, tuple(headers))


async def submit_batch(service: Service, call: Call[list[JobRequest], NoQuery]) -> Answer:
    """Store many jobs, all or none."""
    if len(call.body) > MOST_IN_BATCH:
        raise Refused("too-large", f"at most {MOST_IN_BATCH} jobs at once, not {len(call.body)}")
    specs = specs_of(call.body, call.tenant, read_key(call.headers))
    named = [(f"specs[{place}].args.artifact", artifact_in(one.kind, one.args)) for place, one in enumerate(specs)]
    await use_artifacts(service, named, call.tenant)
    answers = await service.store.submit(specs)
    created = sum(answer.created for answer in answers)
    batch = AcceptedBatch(jobs=[_accepted(answer) for answer in answers], created=created)
    return Answer(batch, ACCEPTED if created else OK)


def _accepted(submitted: Submitted) -> AcceptedJob:
    return AcceptedJob(id=submitted.job_id, created=submitted.created, location=f"/v1/jobs/{submitted.job_id}")
