"""The overview: how it goes, at a glance."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from tidewheel.model.states import FINAL, WAITING, State
from tidewheel.server.dashboard.figures import FAILED, LATELY, Delays, delays_since, is_counted_at_once
from tidewheel.server.dashboard.pages import alerts
from tidewheel.server.dashboard.period import RANGES, Period, period_of
from tidewheel.server.dashboard.visit import Visit
from tidewheel.server.endpoint import Answer

SHOWN: Final = 8
SHOWN_KINDS: Final = 6
MOST_CHOICES: Final = 500
"""How many queues or kinds are offered to choose from; others can still be typed."""


async def load(visit: Visit) -> Mapping[str, Any]:
    """Return the numbers, what runs, what failed of late and what comes."""
    ask = visit.desk.ask
    counted = await ask("list_queues", query={"fresh": "true"})
    failures = (await ask("list_jobs", query={"state": "dead,expired", "limit": SHOWN})).jobs
    running = (await ask("list_jobs", query={"state": "running", "limit": SHOWN})).jobs
    workers = (await ask("list_workers", query={"alive": "true"})).workers if visit.desk.may("list_workers") else []
    numbers = _numbers(visit, counted.queues, await delays_since(visit.desk, visit.now - LATELY))
    if len(running) < SHOWN:
        numbers["running"] = len(running)  # they are all there is, and the number must not say otherwise
    return {
        "as_of": counted.as_of,
        "counted_at_once": is_counted_at_once(counted),
        "numbers": numbers,
        "point": msgspec.json.encode({"at": visit.now.timestamp(), **numbers}).decode(),
        **await _over_time(visit, counted.queues),
        "running": running,
        "failures": failures,
        "workers": workers,
        "coming": await _coming(visit),
        "firing": await alerts.firing(visit),
    }


async def series(visit: Visit) -> Answer:
    """Return the columns of the charts, for a page that is open."""
    read = await visit.memory.look(visit.desk, period_of(visit.query, visit.now), visit.now)
    return Answer(read.history.series.encode(), headers=(("cache-control", "no-store"),))


async def _over_time(visit: Visit, queues: Sequence[Any]) -> dict[str, Any]:
    """Return what ended in the time that was chosen."""
    period = period_of(visit.query, visit.now)
    read = await visit.memory.look(visit.desk, period, visit.now)
    by_jobs, all_kinds = visit.query.get("sort") == "jobs", visit.query.get("kinds") == "all"
    listed = read.history.busy if by_jobs else read.history.failing
    return {
        "period": period,
        "ranges": RANGES,
        "read": read,
        "history": read.history,
        "kinds": listed if all_kinds else listed[:SHOWN_KINDS],
        "by_jobs": by_jobs,
        "all_kinds": all_kinds,
        "chosen": {**period.chosen, "sort": "jobs" if by_jobs else None, "kinds": "all" if all_kinds else None},
        "choices": None if visit.follows else _choices(queues, period),
    }


def _choices(queues: Sequence[Any], period: Period) -> dict[str, list[str]]:
    """Return the queues and kinds to choose from; what was chosen is always among them."""
    kinds = {kind for queue in queues for kind in queue.kinds}
    names = {queue.queue for queue in queues}
    chosen = ((names, period.queue), (kinds, period.kind))
    queue_names, kind_names = (
        sorted({*sorted(known)[:MOST_CHOICES], *([one] if one else [])}) for known, one in chosen
    )
    return {"queues": queue_names, "kinds": kind_names}


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
