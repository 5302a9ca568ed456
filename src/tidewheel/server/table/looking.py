"""Endpoints that show jobs."""

from typing import Any, Final

from tidewheel.model.access import Action
from tidewheel.server.endpoint import EVENTS, Endpoint, RequestHeader
from tidewheel.server.endpoints import events, looking, results
from tidewheel.server.filters import JobQuery
from tidewheel.server.job_document import JobDocument


def _look(path: str, name: str, summary: str, handler: Any, answer: Any, **more: Any) -> Endpoint:
    return Endpoint(
        method="GET",
        path=path,
        name=name,
        summary=summary,
        group="jobs",
        action=Action.JOBS_READ,
        handler=handler,
        answers={200: answer},
        **more,
    )


LOOKING: Final = (
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
    _look("/v1/jobs/{id}/why", "explain_job", "Ask why a job does not run", looking.explain, looking.WhyDocument),
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
        "/v1/jobs/{id}/attempts",
        "list_attempts",
        "List the attempts of a job",
        looking.attempts,
        looking.AttemptList,
        query=looking.AttemptQuery,
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
        action=Action.JOBS_READ,
        handler=events.follow,
        headers=(RequestHeader.LAST_EVENT_ID,),
        answers={200: EVENTS, 204: None},
        errors=("bad-header", "overloaded"),
    ),
)
