"""What the capture of lines costs: jobs are drained with ten lines each, and without."""

import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Final
from uuid import UUID

from bench.grounds.ground import Ground, Place
from bench.jobs import fill, outcomes
from bench.logs.lines import lines_of
from bench.logs.sizes import Sizes
from bench.measure import Drained, Figures, Stopwatch, compare, side_by_side
from tidewheel.clock import SystemClock
from tidewheel.logs import LogShipper, RunLog
from tidewheel.model.job import Run
from tidewheel.store.base import ClaimRequest

_ANY: Final = (UUID(int=1), 1)
_BATCH: Final = 500
_PART: Final = 10_000


async def measure(ground: Ground, sizes: Sizes) -> Figures:
    """Drain in turns runs that print, whose lines are stored before they end, and silent ones."""
    clock = SystemClock()
    chunk = "".join(f"{line.text}\n" for line in lines_of([_ANY], sizes.lines_a_job, clock.now(), 1)).encode()
    async with ground.place() as place:
        shipper = LogShipper(place.store.append_logs, clock)

        async def speak(runs: list[Run]) -> None:
            logs = [RunLog(run.job_id, run.token, shipper, clock) for run in runs]
            for log in logs:
                log.output("stdout", chunk)
                log.end()
            if runs:
                await shipper.flush(runs[-1].job_id, runs[-1].token)

        async def talking() -> Drained:
            return await _drain(place, sizes, speak)

        async def silent() -> Drained:
            return await _drain(place, sizes, None)

        await silent()
        await talking()
        with_lines, without = await side_by_side(sizes.rounds, talking, silent, "drain with lines/without")
        await shipper.close()
    figures = compare("capture_ratio", with_lines, without)
    low, high = figures["capture_ratio_spread"]
    return {
        **figures,
        "capture_cost": round(1 - figures["capture_ratio"], 3),
        "capture_cost_spread": [round(1 - high, 3), round(1 - low, 3)],
    }


async def _drain(place: Place, sizes: Sizes, speak: Callable[[list[Run]], Awaitable[None]] | None) -> Drained:
    await fill(place.store, sizes.round_jobs, 1000)
    request = ClaimRequest(worker_id=place.worker_id, limit=sizes.batch)
    watch, done = Stopwatch(place.server_cpu), 0
    while done < sizes.round_jobs:
        runs = (await place.store.claim(request)).runs
        watch.claimed()
        if speak is not None:
            await speak(runs)
        await place.store.settle(place.worker_id, outcomes(runs))
        watch.settled()
        done += len(runs)
    return watch.stop(done)


async def measure_appends(ground: Ground, sizes: Sizes) -> Figures:
    """Append lines in the batches of a shipper, one after the other."""
    clock = SystemClock()
    async with ground.place() as place:
        await fill(place.store, 1000, 1000)
        claimed = await place.store.claim(ClaimRequest(worker_id=place.worker_id, limit=1000))
        jobs = [(run.job_id, run.token) for run in claimed.runs]
        rates = []
        for first in range(0, sizes.append_lines, _PART):
            lines = list(lines_of(jobs, _PART // len(jobs) or 1, clock.now(), first))
            begun = time.perf_counter()
            for start in range(0, len(lines), _BATCH):
                await place.store.append_logs(lines[start : start + _BATCH])
            rates.append(len(lines) / (time.perf_counter() - begun))
    return {"append_lines_per_s": round(statistics.median(rates))}
