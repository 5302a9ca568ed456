"""History: does a drain care how many jobs have finished before?"""

from bench.grounds.ground import Ground
from bench.kernel.sizes import Sizes
from bench.kernel.work import fill_and_drain, warm_up
from bench.measure import Drained, Figures, compare, say, side_by_side


async def measure(ground: Ground, sizes: Sizes) -> Figures:
    async with ground.place() as full, ground.place() as empty:
        say(f"history: loading {sizes.history_jobs:,} rows")
        await warm_up(full, sizes)
        await full.load_history(sizes.history_jobs)
        await warm_up(full, sizes)
        await warm_up(empty, sizes)

        async def with_them() -> Drained:
            return await fill_and_drain(full, sizes)

        async def without() -> Drained:
            return await fill_and_drain(empty, sizes)

        a, b = await side_by_side(sizes.history_rounds, with_them, without, "history with/without")
    return compare("history_ratio", a, b)
