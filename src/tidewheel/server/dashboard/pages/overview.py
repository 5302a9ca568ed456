"""The overview: how it goes, at a glance."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from tidewheel.model.states import FINAL, WAITING, State
from tidewheel.server.dashboard.figures import (
    FAILED,
    LATELY,
    PAST,
    Delays,
    delays_of,
    history_of,
    is_counted_at_once,
    points_since,
)
from tidewheel.server.dashboard.pages import alerts
from tidewheel.server.dashboard.visit import Visit

SHOWN: Final = 8


async def load(visit: Visit) -> Mapping[str, Any]:
    """Return the numbers, what runs, what failed of late and what comes."""
    ask = visit.desk.ask
    counted = await ask("list_queues", query={"fresh": "true"})
    lately = visit.now - LATELY
    points = await points_since(visit.desk, lately if visit.follows else visit.now - PAST)
    failures = (await ask("list_jobs", query={"state": "dead,expired", "limit": SHOWN})).jobs
    running = (await ask("list_jobs", query={"state": "running", "limit": SHOWN})).jobs
    workers = (await ask("list_workers", query={"alive": "true"})).workers if visit.desk.may("list_workers") else []
    numbers = _numbers(visit, counted.queues, delays_of(points, lately))
    if len(running) < SHOWN:
        numbers["running"] = len(running)  # they are all there is, and the number must not say otherwise
    return {
        "as_of": counted.as_of,
        "counted_at_once": is_counted_at_once(counted),
        "numbers": numbers,
        "point": msgspec.json.encode({"at": visit.now.timestamp(), **numbers}).decode(),
        "history": history_of(points, visit.now),
        "running": running,
        "failures": failures,
        "workers": workers,
        "coming": await _coming(visit),
        "firing": await alerts.firing(visit),
    }


def _numbers(visit: Visit, queues: Sequence[Any], delays: Delays) -> dict[str, Any]:
    total = {state: sum(queue.jobs.get(state, 0) for queue in queues) for state in State}
    ended, failed = sum(total[state] for state in FINAL), sum(total[state] for state in FAILED)
    rates = visit.pulse.feel(visit.desk.visitor.tenant, ended, failed)
    return {
        "rate": rates.ended,
        "failing": rates.failed,
        "running": total[State.RUNNING],
        "waiting": sum(total[state] for state in WAITING),
        "dead": total[State.DEAD],
        "succeeded": total[State.SUCCEEDED],
        "p50": delays.p50,
        "p99": delays.p99,
        **{level: sum(queue.waiting.get(level, 0) for queue in queues) for level in ("high", "medium", "low")},
    }


async def _coming(visit: Visit) -> list[Any]:
    if not visit.desk.may("list_schedules"):
        return []
    found: list[Any] = (await visit.desk.ask("list_schedules", query={"coming": "true", "limit": SHOWN})).schedules
    return found
