"""Drain: how fast a worker does async functions that do nothing, and how much of what the bare statements allow."""

import statistics
from collections.abc import Awaitable, Callable

from bench.grounds.ground import Ground, Place
from bench.jobs import fill
from bench.measure import Drained, Figures, compare, in_turns, median_rate, spread
from bench.worker.gated import drain_by_worker
from bench.worker.loads import INLINE
from bench.worker.process import Shape
from bench.worker.sizes import Sizes


async def measure(ground: Ground, sizes: Sizes) -> Figures:
    async with ground.place() as place:
        await _bare(place, sizes, sizes.drain_jobs // 10)
        sides = (_runners(place, sizes, 1), _runners(place, sizes, 2), lambda: _bare(place, sizes, sizes.drain_jobs))
        one, two, bare = await in_turns(sizes.drain_rounds, sides, "drain by one runner/two/bare")
    best = max(one, two, key=median_rate)
    return {
        "drain_per_s": median_rate(best),
        "drain_per_s_spread": spread([drained.rate for drained in best]),
        "drain_one_runner_per_s": median_rate(one),
        "drain_two_runners_per_s": median_rate(two),
        "bare_drain_per_s": median_rate(bare),
        "bare_drain_per_s_spread": spread([drained.rate for drained in bare]),
        **compare("drain_vs_bare", best, bare),
        "worker_us_per_job": _per_job(one, lambda drained: drained.cpu),
        "server_us_per_job": _per_job(one, lambda drained: drained.server_cpu),
        "bare_us_per_job": _per_job(bare, lambda drained: drained.cpu),
        "bare_server_us_per_job": _per_job(bare, lambda drained: drained.server_cpu),
    }


def _runners(place: Place, sizes: Sizes, inline: int) -> Callable[[], Awaitable[Drained]]:
    async def drain() -> Drained:
        shape = Shape(inline=inline)
        return await drain_by_worker(place, shape, INLINE, jobs=sizes.drain_jobs, batch=sizes.submit_batch)

    return drain


async def _bare(place: Place, sizes: Sizes, jobs: int) -> Drained:
    await fill(place.store, jobs, sizes.submit_batch)
    return await place.bare_drain(jobs, sizes.batch)


def _per_job(drains: list[Drained], seconds: Callable[[Drained], float]) -> float:
    return round(statistics.median(drained.per_job(seconds(drained)) for drained in drains), 1)
