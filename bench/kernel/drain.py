"""Drain: how fast jobs are claimed and completed, and how much of what the bare statements allow that is."""

import asyncio
import statistics
import time

from bench.grounds.ground import Ground, Place
from bench.jobs import fill
from bench.kernel.sizes import Sizes
from bench.kernel.work import drain, fill_and_drain, warm_up
from bench.measure import Drained, Figures, compare, median_rate, side_by_side, spread


async def measure(ground: Ground, sizes: Sizes) -> Figures:
    async with ground.place() as place:
        await warm_up(place, sizes)

        async def ours() -> Drained:
            return await fill_and_drain(place, sizes)

        async def bare() -> Drained:
            await fill(place.store, sizes.round_jobs, sizes.submit_batch)
            return await place.bare_drain(sizes.round_jobs, sizes.batch)

        await bare()
        a, b = await side_by_side(sizes.drain_rounds, ours, bare, "drain ours/bare")
        two = [await _two_at_once(place, sizes) for _ in range(max(2, sizes.drain_rounds // 3))]
    return {
        "drain_per_s": median_rate(a),
        "drain_per_s_spread": spread([drained.rate for drained in a]),
        "bare_drain_per_s": median_rate(b),
        "bare_drain_per_s_spread": spread([drained.rate for drained in b]),
        "drain_two_loops_per_s": round(statistics.median(two)),
        **compare("drain_vs_bare", a, b),
        **_steps(a, ""),
        **_steps(b, "bare_"),
    }


async def _two_at_once(place: Place, sizes: Sizes) -> float:
    """Return the rate of two loops in one process: while one waits for the disk, the other goes on."""
    await fill(place.store, sizes.round_jobs, sizes.submit_batch)
    begun = time.perf_counter()
    half = sizes.round_jobs // 2
    drains = await asyncio.gather(*(drain(place, half - sizes.batch, sizes.batch) for _ in range(2)))
    done = sum(drained.jobs for drained in drains)
    took = time.perf_counter() - begun
    await drain(place, sizes.round_jobs - done, sizes.batch)  # what the quicker one left
    return done / took


def _steps(drains: list[Drained], prefix: str) -> Figures:
    """Where the time of a job goes."""

    def median(values: list[float]) -> float:
        return round(statistics.median(values), 3)

    return {
        f"{prefix}claim_us_per_job": median([drained.per_job(drained.claiming) for drained in drains]),
        f"{prefix}settle_us_per_job": median([drained.per_job(drained.settling) for drained in drains]),
        f"{prefix}python_us_per_job": median([drained.per_job(drained.cpu) for drained in drains]),
        f"{prefix}server_us_per_job": median([drained.per_job(drained.server_cpu) for drained in drains]),
        f"{prefix}python_share": median([drained.cpu / drained.wall for drained in drains]),
    }
