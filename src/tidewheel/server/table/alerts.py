"""Endpoints of alerts."""

from typing import Final

from tidewheel.model.access import Action
from tidewheel.server.endpoint import Endpoint
from tidewheel.server.endpoints import alerts

_GROUP: Final = "alerts"

ALERTS: Final = (
    Endpoint(
        method="GET",
        path="/v1/alerts",
        name="list_alerts",
        summary="List alerts, newest first",
        group=_GROUP,
        action=Action.ALERTS_READ,
        handler=alerts.alerts,
        query=alerts.AlertQuery,
        answers={200: alerts.AlertList},
    ),
    Endpoint(
        method="POST",
        path="/v1/alerts/{id}/acknowledge",
        name="acknowledge_alert",
        summary="Say that one looks after an alert",
        group=_GROUP,
        action=Action.ALERTS_WRITE,
        handler=alerts.acknowledge,
        answers={200: alerts.AlertDocument},
    ),
    Endpoint(
        method="GET",
        path="/v1/maintenance",
        name="list_maintenance",
        summary="List the maintenance windows",
        group=_GROUP,
        action=Action.ALERTS_READ,
        handler=alerts.windows,
        everywhere=True,
        answers={200: alerts.WindowList},
    ),
    Endpoint(
        method="POST",
        path="/v1/maintenance",
        name="add_maintenance",
        summary="Let rules be silent for a time",
        group=_GROUP,
        action=Action.ALERTS_WRITE,
        handler=alerts.add_window,
        everywhere=True,
        body=alerts.WindowRequest,
        answers={201: alerts.WindowDocument},
    ),
    Endpoint(
        method="DELETE",
        path="/v1/maintenance/{id}",
        name="remove_maintenance",
        summary="Remove a maintenance window",
        group=_GROUP,
        action=Action.ALERTS_WRITE,
        handler=alerts.remove_window,
        everywhere=True,
        answers={204: None},
    ),
)
