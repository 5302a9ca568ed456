"""Alerts: what is wrong, who looks after it, and when rules are silent."""

from collections.abc import Mapping
from typing import Any, Final

from tidewheel.model.alert import MEANINGS, AlertState, window_times
from tidewheel.model.checks import parse_duration
from tidewheel.server.dashboard.visit import Done, Visit

HERE: Final = "/ui/alerts"
SHOWN: Final = 50


async def load(visit: Visit) -> Mapping[str, Any]:
    """Return what is wrong and what was; operators of all tenants see all, and the maintenance windows."""
    ask = visit.desk.ask_widely
    windows = (await ask("list_maintenance")).windows if visit.desk.may("list_maintenance") else []
    return {
        "firing": await _in(visit, AlertState.FIRING),
        "resolved": await _in(visit, AlertState.RESOLVED),
        "windows": windows,
        "rules": MEANINGS,
    }


async def firing(visit: Visit) -> int:
    """Return how many alerts fire."""
    return len(await _in(visit, AlertState.FIRING)) if visit.desk.may("list_alerts") else 0


async def acknowledge(visit: Visit) -> Done:
    """Say that the visitor looks after it."""
    alert = await visit.desk.ask_widely("acknowledge_alert", id=visit.path["id"])
    return Done(HERE, f"{alert.acknowledged_by} looks after {alert.rule} of {alert.subject}.")


async def add_window(visit: Visit) -> Done:
    """Let rules be silent for a time."""
    begins = parse_duration(visit.field("begins") or "0s", "begins")
    start, end = window_times(visit.now, begins, parse_duration(visit.field("lasts"), "lasts"))
    body = {
        "start": start.isoformat(),
        "end": end.isoformat(),
        "rules": list(visit.form.get("rules", ())),
        "reason": visit.field("reason"),
    }
    await visit.desk.ask("add_maintenance", body=body)
    return Done(HERE, "The maintenance window is set.")


async def remove_window(visit: Visit) -> Done:
    """End a maintenance window."""
    await visit.desk.ask("remove_maintenance", id=visit.path["id"])
    return Done(HERE, "The maintenance window is over: rules are judged again.")


async def _in(visit: Visit, state: AlertState) -> list[Any]:
    found: list[Any] = (await visit.desk.ask_widely("list_alerts", query={"state": state, "limit": SHOWN})).alerts
    return found
