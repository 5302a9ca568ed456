"""Alerts and maintenance windows."""

from typing import Annotated, Final
from uuid import UUID

import msgspec
from msgspec import Meta

from tidewheel.model.access import Action
from tidewheel.model.alert import Alert, AlertState, Rule, Window, WindowSpec
from tidewheel.server.endpoint import Answer, Call, NoQuery
from tidewheel.server.job_request import Instant
from tidewheel.server.names import id_in
from tidewheel.server.recording import record
from tidewheel.server.service import Service

CREATED: Final = 201
NO_CONTENT: Final = 204


class AlertQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which alerts to return."""

    state: AlertState | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class AlertDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is, or was, wrong."""

    id: UUID
    rule: Rule
    subject: str
    tenant: str | None
    told: str
    """For people."""
    state: AlertState
    since: Instant
    resolved_at: Instant | None
    acknowledged_by: str | None
    acknowledged_at: Instant | None


class AlertList(msgspec.Struct, frozen=True, kw_only=True):
    """Alerts, newest first."""

    alerts: list[AlertDocument]


class WindowRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A time in which rules are silent."""

    start: Instant
    end: Instant
    rules: Annotated[list[Rule], Meta(max_length=len(Rule))] = []
    """None stands for all."""
    reason: Annotated[str, Meta(max_length=1000)] = ""


class WindowDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A maintenance window."""

    id: UUID
    start: Instant
    end: Instant
    rules: list[Rule]
    reason: str
    author: str


class WindowList(msgspec.Struct, frozen=True, kw_only=True):
    """The maintenance windows that are not over, the next first."""

    windows: list[WindowDocument]


async def alerts(service: Service, call: Call[None, AlertQuery]) -> Answer:
    """Return alerts; with a key of a tenant, those about its own kinds and schedules."""
    found = await service.store.alerts(tenant=call.scope, state=call.query.state, limit=call.query.limit)
    return Answer(AlertList(alerts=[_alert(alert) for alert in found]))


async def acknowledge(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Say that one looks after an alert."""
    alert = await service.store.acknowledge(id_in(call, "alert"), call.actor.name or "someone", tenant=call.scope)
    everywhere = alert.tenant is None
    await record(service, call, Action.ALERTS_WRITE, alert.id, everywhere=everywhere, did="acknowledge")
    return Answer(_alert(alert))


async def windows(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Return the maintenance windows."""
    del call
    return Answer(WindowList(windows=[_window(window) for window in await service.store.windows()]))


async def add_window(service: Service, call: Call[WindowRequest, NoQuery]) -> Answer:
    """Let rules be silent for a time."""
    request = call.body
    spec = WindowSpec(
        start=request.start,
        end=request.end,
        rules=frozenset(request.rules),
        reason=request.reason,
        author=call.actor.name,
    )
    window = await service.store.add_window(spec)
    await record(service, call, Action.ALERTS_WRITE, window.id, did="add-window", reason=spec.reason or None)
    return Answer(_window(window), CREATED)


async def remove_window(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Remove a maintenance window."""
    window_id = id_in(call, "maintenance window")
    await service.store.remove_window(window_id)
    await record(service, call, Action.ALERTS_WRITE, window_id, did="remove-window")
    return Answer(None, NO_CONTENT)


def _alert(alert: Alert) -> AlertDocument:
    return AlertDocument(**msgspec.structs.asdict(alert))


def _window(window: Window) -> WindowDocument:
    return WindowDocument(
        id=window.id,
        start=window.start,
        end=window.end,
        rules=sorted(window.rules),
        reason=window.reason,
        author=window.author,
    )
