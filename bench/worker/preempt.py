"""Preempt: how soon an urgent job begins while all slots are busy with what can be paused."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final
from uuid import UUID

import msgspec

from bench.grounds.ground import Ground, Place
from bench.measure import Figures
from bench.worker.latency import figures_of
from bench.worker.loads import HURRIERS, LINGERERS, Load
from bench.worker.process import STALLED, RunningWorker, Shape, running
from bench.worker.sizes import Sizes
from tidewheel.model.job import JobSpec
from tidewheel.model.priority import Priority
from tidewheel.model.states import State

SLOTS: Final = 2
LOOK_EVERY: Final = 0.02
"""Seconds between two looks at what goes on: often enough to get on, too seldom to disturb."""


async def measure(ground: Ground, sizes: Sizes) -> Figures:
    """Submit one urgent job after the other; count from the submit's answer to the body."""
    async with ground.place() as place, running(place, Shape(slots=SLOTS), [HURRIERS]) as worker:
        lingerers = [answer.job_id for answer in await place.store.submit(_jobs(LINGERERS, Priority.LOW, SLOTS))]
        took: list[float] = []
        for _ in range(sizes.preempt_jobs):
            await _until(worker, lambda: _all_run(place, lingerers))
            took.append(await _wait_of_one(place, worker))
        for job_id in lingerers:
            await place.store.cancel(job_id)
    return figures_of("preempt_ms", took)


async def _wait_of_one(place: Place, worker: RunningWorker) -> float:
    """Return how many seconds an urgent job waited for its body to begin."""
    [answer] = await place.store.submit(_jobs(HURRIERS, Priority.HIGH, 1))
    answered = time.time()
    await _until(worker, lambda: _has_ended(place, answer.job_id))
    began: float = (await place.store.get(answer.job_id)).result
    return max(0.0, began - answered)


def _jobs(load: Load, priority: Priority, count: int) -> list[JobSpec]:
    return [msgspec.structs.replace(spec, priority=priority) for spec in load.make(count, 0)]


async def _all_run(place: Place, job_ids: list[UUID]) -> bool:
    jobs = [await place.store.get(job_id) for job_id in job_ids]
    return all(job.state is State.RUNNING and not job.paused for job in jobs)


async def _has_ended(place: Place, job_id: UUID) -> bool:
    return (await place.store.get(job_id)).finished_at is not None


async def _until(worker: RunningWorker, condition: Callable[[], Awaitable[bool]]) -> None:
    deadline = time.monotonic() + STALLED
    while not await condition():
        worker.check()
        if time.monotonic() > deadline:
            raise RuntimeError(f"what was waited for does not happen; the worker said:\n{worker.said()}")
        await asyncio.sleep(LOOK_EVERY)
