"""Idle: what a worker costs that has nothing to do, with a keeper and without."""

import asyncio
import time
from dataclasses import replace

from bench.grounds.ground import Ground
from bench.measure import Figures, say
from bench.worker.loads import COMMANDS, INLINE
from bench.worker.process import Shape, running
from bench.worker.sizes import Sizes

ALONE = Shape(inline=1, slots=2)


async def measure(ground: Ground, sizes: Sizes) -> Figures:
    """Let both idle at the same time, each on a database of its own."""
    alone, kept = await asyncio.gather(
        _idle(ground, sizes, ALONE, ""), _idle(ground, sizes, replace(ALONE, keeper=True), "_keeper")
    )
    return alone | kept


async def _idle(ground: Ground, sizes: Sizes, shape: Shape, mark: str) -> Figures:
    async with ground.place() as place, running(place, shape, [INLINE, COMMANDS]) as worker:
        await asyncio.sleep(sizes.settle_seconds)
        begun, cpu, queries = time.monotonic(), worker.cpu(), await place.transactions()
        await asyncio.sleep(sizes.idle_seconds)
        took = time.monotonic() - begun
        cpu, later = worker.cpu() - cpu, await place.transactions()
        memory = worker.memory()
    figures: Figures = {
        f"idle_rss{mark}_mib": round(memory / 2**20, 1),
        f"idle_cpu{mark}_percent": round(100 * cpu / took, 3),
        f"idle_queries{mark}_per_s": round((later - queries) / took, 2),
    }
    say(f"idle: {figures}")
    return figures
