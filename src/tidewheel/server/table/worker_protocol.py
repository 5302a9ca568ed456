"""Endpoints of the worker protocol."""

from typing import Any, Final

from tidewheel.model import worker_protocol as wire
from tidewheel.model.access import Action
from tidewheel.model.problem import Code
from tidewheel.server.endpoint import EVENTS, Endpoint, RequestHeader
from tidewheel.server.endpoints import worker_protocol

MOST_ENDS: Final = 32 * 1024 * 1024
_LOST: Final[tuple[Code, ...]] = ("lease-lost",)


def _say(path: str, name: str, summary: str, handler: Any, answer: Any, **more: Any) -> Endpoint:
    """Return an endpoint at which a worker says something."""
    return Endpoint(
        method=more.pop("method", "POST"),
        path=f"/v1/workers/{{id}}{path}",
        name=name,
        summary=summary,
        group="worker protocol",
        action=Action.WORKERS_CLAIM,
        handler=handler,
        answers={200: answer},
        **more,
    )


WORKER_PROTOCOL: Final = (
    Endpoint(
        method="POST",
        path="/v1/workers",
        name="register_worker",
        summary="Register a worker",
        description="Each process registers once, and gets an id and a lease.",
        group="worker protocol",
        action=Action.WORKERS_CLAIM,
        handler=worker_protocol.register,
        body=wire.Registration,
        answers={201: wire.Registered},
    ),
    _say("", "get_worker", "Look at a worker", worker_protocol.show, wire.Registered, method="GET"),
    _say(
        "/claim",
        "claim_jobs",
        "Take due jobs",
        worker_protocol.claim,
        wire.ClaimAnswer,
        description="With `Prefer: wait=30` it is answered once there is a job, or after that time. One claim at a "
        "time: whoever has not got the answer asks for its runs.",
        body=wire.Claim,
        body_optional=True,
        headers=(RequestHeader.PREFER,),
        errors=_LOST,
    ),
    _say("/runs", "list_runs", "List what a worker has", worker_protocol.runs, wire.RunList, method="GET"),
    _say(
        "/heartbeat",
        "beat_worker",
        "Renew the lease, and hear which runs shall stop",
        worker_protocol.beat,
        wire.Heartbeat,
        body=wire.HeartbeatRequest,
        body_optional=True,
        errors=_LOST,
    ),
    _say(
        "/stopping",
        "list_stopping",
        "List the runs that shall stop",
        worker_protocol.stopping,
        wire.StopList,
        method="GET",
    ),
    _say(
        "/settle",
        "settle_runs",
        "Say how runs ended",
        worker_protocol.settle,
        wire.EndsAnswer,
        description="Safe to repeat. Each end has a verdict of its own; a stale one changed nothing.",
        body=wire.Ends,
        most_body=MOST_ENDS,
    ),
    _say(
        "/notes",
        "note_runs",
        "Tell the progress of runs, and keep checkpoints",
        worker_protocol.note,
        wire.NotesAnswer,
        body=wire.Notes,
        most_body=MOST_ENDS,
    ),
    _say(
        "/unfit",
        "find_unfit",
        "Ask which needs to keep room for",
        worker_protocol.unfit,
        wire.UnfitAnswer,
        body=wire.UnfitQuestion,
    ),
    _say(
        "/deregister",
        "deregister_worker",
        "End a worker; what it has goes back to the queue",
        worker_protocol.deregister,
        wire.GivenBack,
    ),
    Endpoint(
        method="GET",
        path="/v1/jobs/{id}/checkpoint",
        name="get_checkpoint",
        summary="Fetch the last checkpoint of a job",
        group="worker protocol",
        action=Action.JOBS_READ,
        handler=worker_protocol.checkpoint,
        answers={200: wire.CheckpointDocument},
    ),
    Endpoint(
        method="POST",
        path="/v1/logs",
        name="log_runs",
        summary="Store lines that runs wrote",
        description="Sending a line twice is harmless. Lines are taken from runs that were lost, too.",
        group="worker protocol",
        action=Action.WORKERS_CLAIM,
        handler=worker_protocol.log,
        body=wire.Lines,
        answers={200: wire.LinesAnswer},
        errors=("not-found",),
        most_body=MOST_ENDS,
    ),
    Endpoint(
        method="POST",
        path="/v1/declarations",
        name="declare_app",
        summary="Let limits and schedules be as the code of an app declares them",
        description="What workers do when they start. For keys of all tenants.",
        group="worker protocol",
        action=Action.WORKERS_CLAIM,
        everywhere=True,
        handler=worker_protocol.declare,
        body=wire.Declaration,
        answers={200: wire.DeclarationAnswer},
        most_body=MOST_ENDS,
    ),
    Endpoint(
        method="GET",
        path="/v1/me",
        name="get_me",
        summary="Ask who one is here: the role and tenant of the key",
        group="worker protocol",
        action=Action.JOBS_READ,
        handler=worker_protocol.who,
        answers={200: wire.Me},
    ),
    Endpoint(
        method="GET",
        path="/v1/hints",
        name="follow_hints",
        summary="Hear when it may be worth while to look for work",
        description="Server-sent events: `hint`, and `doubt` while hints may be lost. Losing one costs time, never a "
        "job: look now and then all the same.",
        group="worker protocol",
        action=Action.WORKERS_CLAIM,
        handler=worker_protocol.hints,
        query=worker_protocol.HintQuery,
        answers={200: EVENTS},
        errors=("overloaded",),
    ),
)
