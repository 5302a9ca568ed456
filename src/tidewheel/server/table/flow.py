"""Endpoints of gates and limits."""

from typing import Final

from tidewheel.model.access import Action
from tidewheel.server.endpoint import Endpoint
from tidewheel.server.endpoints import flow

FLOW: Final = (
    Endpoint(
        method="GET",
        path="/v1/gates",
        name="list_gates",
        summary="List the closed gates",
        group="gates",
        action=Action.GATES_READ,
        handler=flow.gates,
        answers={200: flow.GateList},
    ),
    Endpoint(
        method="POST",
        path="/v1/gates",
        name="close_gate",
        summary="Close a gate on jobs",
        group="gates",
        action=Action.GATES_WRITE,
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
        action=Action.GATES_WRITE,
        handler=flow.open_gate,
        answers={204: None},
    ),
    Endpoint(
        method="GET",
        path="/v1/limits",
        name="list_limits",
        summary="List the limits",
        group="limits",
        action=Action.LIMITS_READ,
        handler=flow.limits,
        answers={200: flow.LimitList},
    ),
    Endpoint(
        method="PUT",
        path="/v1/limits/{key:path}",
        name="set_limit",
        summary="Set how many jobs with a key may run at once, or start in a time",
        group="limits",
        action=Action.LIMITS_WRITE,
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
        action=Action.LIMITS_WRITE,
        handler=flow.remove_limit,
        answers={204: None},
    ),
)
