"""Queues with their numbers, and workers with what they have and run."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tidewheel.model.resources import amount_text
from tidewheel.model.states import FINAL, State
from tidewheel.server.dashboard.figures import is_counted_at_once
from tidewheel.server.dashboard.visit import Visit

PAGE: Final = 200
MOST_RUNNING: Final = 1_000
"""How many jobs are looked at to tell what workers run."""
SHOWN_STATES: Final = (State.QUEUED, State.LIMITED, State.BLOCKED, State.RUNNING, State.SUCCEEDED, State.DEAD)


class Resource(NamedTuple):
    """How much of something a worker has, and how much of that its runs asked for."""

    name: str
    used: int
    total: int

    @property
    def told(self) -> str:
        """Say it in words."""
        return f"{amount_text(self.name, self.used)} of {amount_text(self.name, self.total)}"


async def load_queues(visit: Visit) -> Mapping[str, Any]:
    """Return the queues."""
    counted = await visit.desk.ask("list_queues", query={"fresh": "true"})
    others = [state for state in FINAL if state not in SHOWN_STATES]
    return {
        "queues": counted.queues,
        "as_of": counted.as_of,
        "counted_at_once": is_counted_at_once(counted),
        "states": SHOWN_STATES,
        "others": others,
    }


async def load_workers(visit: Visit) -> Mapping[str, Any]:
    """Return the workers, each with the jobs that it runs."""
    found = (await visit.desk.ask("list_workers")).workers
    running, has_more = await _running(visit)
    runs: dict[Any, list[Any]] = {}
    for job in running:
        runs.setdefault(job.last_worker, []).append(job)
    living = [
        (worker, runs.get(worker.id, []), _resources(worker, runs.get(worker.id, [])))
        for worker in found
        if worker.alive
    ]
    return {
        "living": living,
        "ended": [worker for worker in found if not worker.alive][:20],
        "has_more": has_more,
        "everywhere": visit.desk.visitor.actor.everywhere,
    }


async def _running(visit: Visit) -> tuple[list[Any], bool]:
    """Return what runs, of all tenants if the visitor may see these, and whether there is more than was looked at."""
    found, cursor = list[Any](), None
    while len(found) < MOST_RUNNING:
        page = await visit.desk.ask_widely("list_jobs", query={"state": "running", "limit": PAGE, "cursor": cursor})
        found, cursor = [*found, *page.jobs], page.next_cursor
        if cursor is None:
            return found, False
    return found, True


def _resources(worker: Any, jobs: list[Any]) -> list[Resource]:
    return [
        Resource(name, sum(job.needs.resources.get(name, 0) for job in jobs), total)
        for name, total in sorted(worker.offer.resources.items())
    ]
