"""Gates and limits, with what they hold now."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Final

from tidewheel.model.limit import MOST_WAITING
from tidewheel.model.states import WAITING
from tidewheel.server.dashboard.visit import Done, Visit
from tidewheel.server.problems import Refused

PAGE: Final = 50


async def load_gates(visit: Visit) -> Mapping[str, Any]:
    """Return the closed gates, each with how many jobs wait behind it."""
    gates = (await visit.desk.ask("list_gates")).gates
    counted = await visit.desk.ask("list_queues", query={"fresh": "true"})
    everyones = await visit.desk.ask_widely("list_queues", query={"fresh": "true", "full": "true"})
    return {
        "gates": [(gate, _behind(gate, everyones.counts)) for gate in gates],
        "kinds": sorted({kind for queue in counted.queues for kind in queue.kinds}),
        "queues": [queue.queue for queue in counted.queues],
    }


def _behind(gate: Any, counts: Sequence[Any]) -> int:
    """Count who waits behind a gate; whoever may see only one tenant hears only of that."""
    return sum(
        count.jobs
        for count in counts
        if count.state in WAITING
        and gate.tenant in (None, count.tenant)
        and gate.queue in (None, count.queue)
        and gate.kind in (None, count.kind)
    )


async def close_gate(visit: Visit) -> Done:
    """Close a gate."""
    body: dict[str, Any] = {"mode": visit.field("mode"), "stop_running": bool(visit.field("stop_running"))}
    for name in ("kind", "queue", "reason"):
        if visit.field(name):
            body[name] = visit.field(name)
    if visit.field("minutes"):
        body["lasts"] = f"{_number(visit, 'minutes'):g}m"
    if visit.field("rate"):
        body["rate"] = _number(visit, "rate")
    await visit.desk.ask("close_gate", body=body)
    return Done("/ui/gates", "The gate is closed.")


async def open_gate(visit: Visit) -> Done:
    """Open a gate again."""
    await visit.desk.ask("open_gate", id=visit.path["id"])
    return Done("/ui/gates", "The gate is open.")


async def load_limits(visit: Visit) -> Mapping[str, Any]:
    """Return a page of limits, each with who holds it and how many wait."""
    asked = {"limit": PAGE, "use": "true", "cursor": visit.query.get("cursor")}
    page = await visit.desk.ask("list_limits", query=asked)
    return {"limits": page.limits, "next_cursor": page.next_cursor, "most_waiting": MOST_WAITING}


async def set_limit(visit: Visit) -> Done:
    """Set a limit."""
    key = visit.field("key")
    if not key:
        raise Refused("invalid", "key: must not be empty")
    body: dict[str, Any] = {}
    if visit.field("most"):
        body["most"] = _whole(visit, "most")
    if visit.field("rate"):
        body["rate"] = visit.field("rate")
    await visit.desk.ask("set_limit", key=key, body=body)
    return Done("/ui/limits", f"The limit of {key} is set.")


async def remove_limit(visit: Visit) -> Done:
    """Remove a limit."""
    await visit.desk.ask("remove_limit", key=visit.field("key"))
    return Done("/ui/limits", "The limit is gone.")


def _number(visit: Visit, name: str) -> float:
    try:
        number = float(visit.field(name))
    except ValueError:
        number = float("nan")
    if not isfinite(number):
        raise Refused("invalid", f"{name}: must be a number, not {visit.field(name)[:40]!r}")
    return number


def _whole(visit: Visit, name: str) -> int:
    number = _number(visit, name)
    if not number.is_integer():
        raise Refused("invalid", f"{name}: must be a whole number, not {visit.field(name)[:40]!r}")
    return int(number)
