"""Snapshot: does a drain decay while someone else looks at an old state of the database for long?

Two fresh databases are filled and drained in turns. On one of them another connection holds a snapshot from before the
first round, so that no row that is deleted there can be removed. Nothing is vacuumed or analysed by hand.
"""

import statistics

from bench.grounds.ground import Ground, Place
from bench.jobs import fill
from bench.kernel.sizes import Sizes
from bench.kernel.work import drain, warm_up
from bench.measure import Drained, Figures, median_cpu, side_by_side

LAST = 3
"""Rounds at the end whose median stands for the end: one alone is at the mercy of a checkpoint."""


async def measure(ground: Ground, sizes: Sizes) -> Figures:
    async def churn(place: Place) -> Drained:
        await fill(place.store, sizes.snapshot_jobs, sizes.submit_batch)
        return await drain(place, sizes.snapshot_jobs, sizes.batch)

    async with ground.place() as watched, ground.place() as free:
        await warm_up(watched, sizes)
        await warm_up(free, sizes)
        async with watched.hold_snapshot():
            a, b = await side_by_side(
                sizes.snapshot_rounds, lambda: churn(watched), lambda: churn(free), "snapshot held/not"
            )
    ratios = [one.rate / other.rate for one, other in zip(a, b, strict=True)]
    return {
        "snapshot_ratio": round(statistics.median(ratios[-LAST:]), 3),
        "snapshot_ratio_spread": [round(min(ratios[-LAST:]), 3), round(max(ratios[-LAST:]), 3)],
        "snapshot_ratio_cpu_us": [median_cpu(a[-LAST:]), median_cpu(b[-LAST:])],
        "snapshot_ratio_last": round(ratios[-1], 3),
        "snapshot_held_per_s": [round(drained.rate) for drained in a],
        "snapshot_free_per_s": [round(drained.rate) for drained in b],
    }
