"""Lanes: the same number of jobs in a thousand lanes and in one."""

from bench.grounds.ground import Ground
from bench.jobs import many_lanes
from bench.kernel.sizes import Sizes
from bench.kernel.work import fill_and_drain, warm_up
from bench.measure import Drained, Figures, compare, side_by_side


async def measure(ground: Ground, sizes: Sizes) -> Figures:
    names = many_lanes(sizes.kinds, sizes.tenants)
    async with ground.place() as many, ground.place() as one:
        await warm_up(many, sizes, names)
        await warm_up(one, sizes)

        async def in_many() -> Drained:
            return await fill_and_drain(many, sizes, names)

        async def in_one() -> Drained:
            return await fill_and_drain(one, sizes)

        a, b = await side_by_side(sizes.lanes_rounds, in_many, in_one, f"lanes {len(names)}/1")
    return compare("lanes_ratio", a, b)
