"""What the capture of lines costs: workers drain jobs whose lines are kept, the same to nobody, and silent ones."""

import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Final

from bench.grounds.ground import Ground, Place
from bench.jobs import fill
from bench.logs.lines import lines_of
from bench.logs.sizes import Sizes
from bench.measure import Drained, Figures, compare, in_turns
from bench.worker.gated import drain_by_worker
from bench.worker.loads import INLINE, LOGS, LOGS_TO_NOBODY, PRINTS, PRINTS_TO_NOBODY, Load
from bench.worker.process import Shape
from tidewheel.clock import SystemClock
from tidewheel.store.base import ClaimRequest

_BATCH: Final = 500
_PART: Final = 10_000
_SUBMIT: Final = 1000


async def measure(ground: Ground, sizes: Sizes) -> Figures:
    """Drain in turns jobs that log ten lines, that log them to nobody, that print them, …, and that say nothing."""
    async with ground.place() as place:
        sides = [_by(place, sizes, load) for load in (LOGS, LOGS_TO_NOBODY, PRINTS, PRINTS_TO_NOBODY, INLINE)]
        label = "logged/to nobody/printed/to nobody/silent"
        logged, unlogged, printed, unprinted, silent = await in_turns(sizes.rounds, sides, label)
    return {
        **_cost("capture", logged, unlogged),
        **_cost("capture_print", printed, unprinted),
        **_cost("lines", logged, silent),
    }


def _by(place: Place, sizes: Sizes, load: Load) -> Callable[[], Awaitable[Drained]]:
    async def drain() -> Drained:
        return await drain_by_worker(place, Shape(inline=1), load, jobs=sizes.round_jobs, batch=_SUBMIT)

    return drain


def _cost(name: str, with_lines: list[Drained], without: list[Drained]) -> Figures:
    figures = compare(f"{name}_ratio", with_lines, without)
    low, high = figures[f"{name}_ratio_spread"]
    return {
        **figures,
        f"{name}_cost": round(1 - figures[f"{name}_ratio"], 3),
        f"{name}_cost_spread": [round(1 - high, 3), round(1 - low, 3)],
    }


async def measure_appends(ground: Ground, sizes: Sizes) -> Figures:
    """Append lines in batches, one after the other."""
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
