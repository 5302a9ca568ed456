"""Endpoints that cancel jobs and send them round again."""

from typing import Final

from tidewheel.model.access import Action
from tidewheel.server.endpoint import Endpoint
from tidewheel.server.endpoints import steering
from tidewheel.server.filters import BulkRequest
from tidewheel.server.job_document import JobDocument

STEERING: Final = (
    Endpoint(
        method="POST",
        path="/v1/jobs/{id}/cancel",
        name="cancel_job",
        summary="Cancel a job",
        description="A job that waits is cancelled at once (200), one that runs is asked to stop (202), one that has "
        "ended stays as it is (200).",
        group="jobs",
        action=Action.JOBS_CANCEL,
        handler=steering.cancel,
        body=steering.CancelRequest,
        body_optional=True,
        answers={200: JobDocument, 202: JobDocument},
    ),
    Endpoint(
        method="POST",
        path="/v1/jobs/{id}/retry",
        name="retry_job",
        summary="Send a job that ended without success round again",
        group="jobs",
        action=Action.JOBS_RETRY,
        handler=steering.retry,
        answers={202: JobDocument},
        errors=("conflict",),
    ),
    Endpoint(
        method="POST",
        path="/v1/jobs/{id}/erase",
        name="erase_job",
        summary="Forget what a finished job was about",
        description="Its arguments, result, labels, names, errors, notes and lines go for good, and its files.",
        group="jobs",
        action=Action.JOBS_ERASE,
        handler=steering.erase,
        answers={200: JobDocument},
        errors=("not-finished",),
    ),
    Endpoint(
        method="POST",
        path="/v1/jobs/cancel",
        name="cancel_jobs",
        summary="Cancel all active jobs that meet some conditions",
        description="With `dry_run` they are only counted, up to 50 000.",
        group="jobs",
        action=Action.JOBS_CANCEL,
        handler=steering.cancel_many,
        body=BulkRequest,
        answers={200: steering.BulkAnswer},
        seconds=60.0,
    ),
    Endpoint(
        method="POST",
        path="/v1/jobs/retry",
        name="retry_jobs",
        summary="Send all jobs round again that ended without success and meet some conditions",
        description="With `dry_run` they are only counted, up to 50 000.",
        group="jobs",
        action=Action.JOBS_RETRY,
        handler=steering.retry_many,
        body=BulkRequest,
        answers={200: steering.BulkAnswer},
        seconds=60.0,
    ),
)
