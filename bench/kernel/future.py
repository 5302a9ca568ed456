"""Future: does a drain care how many jobs wait for a later day?"""

from bench.grounds.ground import Ground
from bench.kernel.sizes import Sizes
from bench.kernel.work import fill_and_drain, warm_up
from bench.measure import Drained, Figures, compare, say, side_by_side


async def measure(ground: Ground, sizes: Sizes) -> Figures:
    async with ground.place() as full, ground.place() as empty:
        say(f"future: loading {sizes.future_jobs:,} rows")
        await warm_up(full, sizes)
        await full.load_future(sizes.future_jobs)
        await warm_up(full, sizes)
        await warm_up(empty, sizes)

        async def with_them() -> Drained:
            return await fill_and_drain(full, sizes)

        async def without() -> Drained:
            return await fill_and_drain(empty, sizes)

        a, b = await side_by_side(sizes.future_rounds, with_them, without, "future with/without")
    return compare("future_ratio", a, b)
