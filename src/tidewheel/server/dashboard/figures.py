"""Figures over time. Here the statistics that are rolled up by the minute come in; what is live is told by `pulse`."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tidewheel.server.dashboard.desk import Desk


class Delays(NamedTuple):
    """How long jobs waited from when they were due until they started, in seconds."""

    p50: float | None
    p99: float | None


def delays_of(jobs: Sequence[Any]) -> Delays:
    """Return the delays of jobs that started, as far as that was their first run."""
    waits = sorted(
        max(0.0, (job.last_started_at - max(job.due_at, job.created_at)).total_seconds())
        for job in jobs
        if job.last_started_at is not None and job.token == 1
    )
    if not waits:
        return Delays(None, None)
    return Delays(waits[(len(waits) - 1) // 2], waits[min(len(waits) - 1, round(len(waits) * 0.99))])


async def history_of(_: Desk) -> str:
    """Return what the charts begin with, as JSON: nothing, for the live figures are all there is."""
    return "[]"
