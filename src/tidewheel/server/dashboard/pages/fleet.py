"""Queues with their numbers, and workers with what they have and run."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tidewheel.model.resources import amount_text
from tidewheel.model.states import FINAL, State
from tidewheel.server.dashboard.figures import is_counted_at_once
from tidewheel.server.dashboard.visit import Visit

MOST_RUNNING: Final = 200
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
    runs: dict[Any, list[Any]] = {}
    for job in (await visit.desk.ask("list_jobs", query={"state": "running", "limit": MOST_RUNNING})).jobs:
        runs.setdefault(job.last_worker, []).append(job)
    living = [
        (worker, runs.get(worker.id, []), _resources(worker, runs.get(worker.id, [])))
        for worker in found
        if worker.alive
    ]
    return {"living": living, "ended": [worker for worker in found if not worker.alive][:20]}


def _resources(worker: Any, jobs: list[Any]) -> list[Resource]:
    return [
        Resource(name, sum(job.needs.resources.get(name, 0) for job in jobs), total)
        for name, total in sorted(worker.offer.resources.items())
    ]
