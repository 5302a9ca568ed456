"""The table of endpoints: routes, checks, the OpenAPI document and the docs are all made from it."""

from typing import Any, Final

from tidewheel.model.access import Role
from tidewheel.server.endpoint import EVENTS, HTML, Endpoint, RequestHeader
from tidewheel.server.endpoints import events, fleet, flow, looking, results, steering, submitting, system
from tidewheel.server.filters import BulkRequest, JobQuery
from tidewheel.server.job_document import JobDocument
from tidewheel.server.job_request import JobRequest
from tidewheel.server.reading import JSON, NDJSON

MOST_BATCH_BODY: Final = 32 * 1024 * 1024

_SUBMITTING: Final = (
    Endpoint(
        method="POST",
        path="/v1/jobs",
        name="submit_job",
        summary="Submit a job",
        description="Answered with 202 once the job is stored durably, or with 200 if a key stands for an earlier one, "
        "or if the job was waited for and has ended.",
        group="jobs",
        role=Role.SUBMITTER,
        handler=submitting.submit,
        body=JobRequest,
        headers=(RequestHeader.IDEMPOTENCY_KEY, RequestHeader.PREFER),
        answers={202: submitting.AcceptedJob, 200: submitting.AcceptedJob},
        errors=("bad-header", "key-reused", "already-active", "id-taken", "conflict", "overloaded"),
    ),
    Endpoint(
        method="POST",
        path="/v1/jobs/batch",
        name="submit_batch",
        summary="Submit up to 10 000 jobs, all or none",
        description="An array of jobs, or one job a line. An Idempotency-Key stands for each job by its position.",
        group="jobs",
        role=Role.SUBMITTER,
        handler=submitting.submit_batch,
        body=list[JobRequest],
        media_types=(JSON, NDJSON),
        headers=(RequestHeader.IDEMPOTENCY_KEY,),
        answers={202: submitting.AcceptedBatch, 200: submitting.AcceptedBatch},
        errors=("bad-header", "key-reused", "already-active", "id-taken", "conflict"),
        most_body=MOST_BATCH_BODY,
        seconds=60.0,
    ),
)


def _look(path: str, name: str, summary: str, handler: Any, answer: Any, **more: Any) -> Endpoint:
    return Endpoint(
        method="GET",
        path=path,
        name=name,
        summary=summary,
        group="jobs",
        role=Role.VIEWER,
        handler=handler,
        answers={200: answer},
        **more,
    )


_LOOKING: Final = (
    _look(
        "/v1/jobs",
        "list_jobs",
        "List jobs, newest first",
        looking.find,
        looking.JobPage,
        query=JobQuery,
        errors=("bad-cursor",),
    ),
    _look("/v1/jobs/{id}", "get_job", "Look at a job", looking.get, JobDocument),
    _look(
        "/v1/jobs/{id}/result",
        "get_result",
        "Fetch the result of a job",
        results.result,
        Any,
        headers=(RequestHeader.PREFER,),
        errors=("not-finished", "no-result", "gone"),
    ),
    _look(
        "/v1/jobs/{id}/attempts", "list_attempts", "List the attempts of a job", looking.attempts, looking.AttemptList
    ),
    _look(
        "/v1/jobs/{id}/logs",
        "list_logs",
        "Read what the runs of a job wrote",
        results.logs,
        results.LinePage,
        query=results.LogQuery,
        errors=("bad-cursor",),
    ),
    _look(
        "/v1/jobs/{id}/parents",
        "list_parents",
        "List the jobs that a job waits for",
        looking.parents,
        looking.RelativePage,
        query=looking.PageQuery,
        errors=("bad-cursor",),
    ),
    _look(
        "/v1/jobs/{id}/children",
        "list_children",
        "List the jobs that wait for a job",
        looking.children,
        looking.RelativePage,
        query=looking.PageQuery,
        errors=("bad-cursor",),
    ),
    Endpoint(
        method="GET",
        path="/v1/jobs/{id}/events",
        name="follow_job",
        summary="Follow a job as it happens",
        description="Server-sent events: `state` with the job (without args and result), `log` with a line, and `end`.",
        group="jobs",
        role=Role.VIEWER,
        handler=events.follow,
        headers=(RequestHeader.LAST_EVENT_ID,),
        answers={200: EVENTS, 204: None},
        errors=("bad-header", "overloaded"),
    ),
)

_STEERING: Final = (
    Endpoint(
        method="POST",
        path="/v1/jobs/{id}/cancel",
        name="cancel_job",
        summary="Cancel a job",
        description="A job that waits is cancelled at once (200), one that runs is asked to stop (202), one that has "
        "ended stays as it is (200).",
        group="jobs",
        role=Role.SUBMITTER,
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
        role=Role.SUBMITTER,
        handler=steering.retry,
        answers={202: JobDocument},
        errors=("conflict",),
    ),
    Endpoint(
        method="POST",
        path="/v1/jobs/cancel",
        name="cancel_jobs",
        summary="Cancel all active jobs that meet some conditions",
        description="With `dry_run` they are only counted, up to 50 000.",
        group="jobs",
        role=Role.OPERATOR,
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
        role=Role.OPERATOR,
        handler=steering.retry_many,
        body=BulkRequest,
        answers={200: steering.BulkAnswer},
        seconds=60.0,
    ),
)

_FLOW: Final = (
    Endpoint(
        method="GET",
        path="/v1/gates",
        name="list_gates",
        summary="List the closed gates",
        group="gates",
        role=Role.VIEWER,
        handler=flow.gates,
        answers={200: flow.GateList},
    ),
    Endpoint(
        method="POST",
        path="/v1/gates",
        name="close_gate",
        summary="Close a gate on jobs",
        group="gates",
        role=Role.OPERATOR,
        handler=flow.close_gate,
        body=flow.GateRequest,
        answers={201: flow.GateDocument},
    ),
    Endpoint(
        method="DELETE",
        path="/v1/gates/{id}",
        name="open_gate",
        summary="Open a gate again",
        group="gates",
        role=Role.OPERATOR,
        handler=flow.open_gate,
        answers={204: None},
    ),
    Endpoint(
        method="GET",
        path="/v1/limits",
        name="list_limits",
        summary="List the limits",
        group="limits",
        role=Role.VIEWER,
        handler=flow.limits,
        answers={200: flow.LimitList},
    ),
    Endpoint(
        method="PUT",
        path="/v1/limits/{key:path}",
        name="set_limit",
        summary="Set how many jobs with a key may run at once, or start in a time",
        group="limits",
        role=Role.OPERATOR,
        handler=flow.set_limit,
        body=flow.LimitRequest,
        answers={200: flow.LimitDocument},
    ),
    Endpoint(
        method="DELETE",
        path="/v1/limits/{key:path}",
        name="remove_limit",
        summary="Remove a limit",
        group="limits",
        role=Role.OPERATOR,
        handler=flow.remove_limit,
        answers={204: None},
    ),
)

_FLEET: Final = (
    Endpoint(
        method="GET",
        path="/v1/queues",
        name="list_queues",
        summary="List the queues with their numbers",
        group="fleet",
        role=Role.VIEWER,
        handler=fleet.queues,
        answers={200: fleet.QueueList},
    ),
    Endpoint(
        method="GET",
        path="/v1/workers",
        name="list_workers",
        summary="List the workers",
        group="fleet",
        role=Role.OPERATOR,
        handler=fleet.workers,
        query=fleet.WorkerQuery,
        answers={200: fleet.WorkerList},
    ),
)


def _open(path: str, name: str, summary: str, handler: Any, answer: Any) -> Endpoint:
    return Endpoint(
        method="GET",
        path=path,
        name=name,
        summary=summary,
        group="server",
        role=None,
        handler=handler,
        answers={200: answer},
    )


_SERVER: Final = (
    _open("/livez", "live", "Tell whether the server lives", system.live, system.Health),
    _open("/readyz", "ready", "Tell whether the server can serve requests", system.ready, system.Health),
    _open("/openapi.json", "openapi", "Fetch this document", system.openapi, dict[str, Any]),
    _open("/docs", "docs", "Read the docs", system.docs, HTML),
)

ENDPOINTS: Final[tuple[Endpoint, ...]] = (*_SUBMITTING, *_LOOKING, *_STEERING, *_FLOW, *_FLEET, *_SERVER)
