"""Endpoints that take jobs in."""

from typing import Final

from tidewheel.model.access import Action
from tidewheel.server.endpoint import Endpoint, RequestHeader
from tidewheel.server.endpoints import submitting
from tidewheel.server.job_request import JobRequest
from tidewheel.server.reading import JSON, NDJSON

MOST_BATCH_BODY: Final = 32 * 1024 * 1024
_TRACE: Final = (RequestHeader.TRACEPARENT, RequestHeader.TRACESTATE)

SUBMITTING: Final = (
    Endpoint(
        method="POST",
        path="/v1/jobs",
        name="submit_job",
        summary="Submit a job",
        description="Answered with 202 once the job is stored durably, or with 200 if a key stands for an earlier one, "
        "or if the job was waited for and has ended.",
        group="jobs",
        action=Action.JOBS_SUBMIT,
        handler=submitting.submit,
        body=JobRequest,
        headers=(RequestHeader.IDEMPOTENCY_KEY, RequestHeader.PREFER, *_TRACE),
        answers={202: submitting.AcceptedJob, 200: submitting.AcceptedJob},
        errors=("bad-header", "key-reused", "already-active", "queue-full", "id-taken", "conflict", "overloaded"),
    ),
    Endpoint(
        method="POST",
        path="/v1/jobs/batch",
        name="submit_batch",
        summary="Submit up to 10 000 jobs, all or none",
        description="An array of jobs, or one job a line. An Idempotency-Key stands for all of them in "
        "their order. By the rate of its key it is one request; each job counts by the bound of its tenant.",
        group="jobs",
        action=Action.JOBS_SUBMIT,
        handler=submitting.submit_batch,
        body=list[JobRequest],
        media_types=(JSON, NDJSON),
        headers=(RequestHeader.IDEMPOTENCY_KEY, *_TRACE),
        answers={202: submitting.AcceptedBatch, 200: submitting.AcceptedBatch},
        errors=("bad-header", "key-reused", "already-active", "queue-full", "id-taken", "conflict"),
        most_body=MOST_BATCH_BODY,
        seconds=60.0,
    ),
)
