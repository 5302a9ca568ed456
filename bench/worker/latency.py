"""Start and late: how soon an idle worker begins a job that may begin, and one whose time has come."""

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

from bench.grounds.ground import Ground, Place
from bench.measure import Figures, quantile, say
from bench.worker.loads import COMMANDS, STAMPS
from bench.worker.process import RunningWorker, Shape, emptied, jobs_since, running
from bench.worker.sizes import Sizes
from tidewheel.model.job import JobSpec

USUAL = Shape(inline=1, slots=2, keeper=True)
WARMING = (STAMPS, COMMANDS)
FIRST_AFTER = 0.1
"""Seconds in which the clients get ready."""


async def measure_start(ground: Ground, sizes: Sizes) -> Figures:
    """Submit at a steady rate; count from the answer, at which a client knows that its job is safe, to the body."""
    async with ground.place() as place, running(place, USUAL, WARMING) as worker:
        since = datetime.now(UTC)
        answered = await _submit_steadily(place, sizes)
        began = await _beginnings(place, worker, since)
    # The body may begin before the answer has arrived: then nobody waited.
    return figures_of("start_ms", [max(0.0, began[job] - at) for job, at in answered.items()])


async def measure_late(ground: Ground, sizes: Sizes) -> Figures:
    """Submit jobs that are due later, one after the other; count from the due time to the body."""
    async with ground.place() as place, running(place, USUAL, WARMING) as worker:
        since = datetime.now(UTC)
        first = since + timedelta(seconds=sizes.late_ahead)
        dues = [first + timedelta(seconds=n * sizes.late_seconds / sizes.late_jobs) for n in range(sizes.late_jobs)]
        answers = await place.store.submit(_due_at(dues))
        ready = datetime.now(UTC)
        if ready >= first:
            raise RuntimeError(f"the first job was due {ready - first} before all were submitted")
        began = await _beginnings(place, worker, since)
    late = [began[answer.job_id] - due.timestamp() for answer, due in zip(answers, dues, strict=True)]
    if min(late) < 0:
        raise RuntimeError(f"a job began {-1000 * min(late):.3f} ms before its time")
    return figures_of("late_ms", late)


def _due_at(dues: Sequence[datetime]) -> list[JobSpec]:
    specs = STAMPS.make(len(dues), 0)
    return [msgspec.structs.replace(spec, run_at=due) for spec, due in zip(specs, dues, strict=True)]


async def _submit_steadily(place: Place, sizes: Sizes) -> dict[UUID, float]:
    """Return when the answer to each submit arrived."""
    count = max(1, round(sizes.start_rate * sizes.start_seconds))
    begun = time.monotonic() + FIRST_AFTER

    async def client(number: int, spec: JobSpec) -> tuple[UUID, float]:
        await asyncio.sleep(begun + number / sizes.start_rate - time.monotonic())
        [answer] = await place.store.submit([spec])
        return answer.job_id, time.time()

    return dict(await asyncio.gather(*(client(n, spec) for n, spec in enumerate(STAMPS.make(count, 0)))))


async def _beginnings(place: Place, worker: RunningWorker, since: datetime) -> dict[UUID, float]:
    """Return when each body began, as it said itself."""
    await emptied(place, worker, STAMPS.lane.tenant)
    return {job.id: job.result for job in await jobs_since(place, STAMPS, since)}


def figures_of(name: str, seconds: Sequence[float]) -> Figures:
    """Return the usual figures of some waits, in milliseconds."""
    took = [1000 * each for each in seconds]
    figures = {
        f"{name}_p50": round(quantile(took, 0.5), 3),
        f"{name}_p99": round(quantile(took, 0.99), 3),
        f"{name}_max": round(max(took), 3),
    }
    say(f"{figures}")
    return figures
