"""Vacuum: does a drain still find its plan after the database noted that the hot table was empty?

Autovacuum comes by at any moment, also when all is drained. What it writes down then must not mislead the planner when
the table is full again a second later. Left to chance this would make the other figures jump, so it is measured.
"""

from bench.grounds.ground import Ground
from bench.kernel.sizes import Sizes
from bench.kernel.work import fill_and_drain, warm_up
from bench.measure import Drained, Figures, compare, side_by_side


async def measure(ground: Ground, sizes: Sizes) -> Figures:
    async with ground.place() as tidied, ground.place() as left:
        await warm_up(tidied, sizes)
        await warm_up(left, sizes)
        await tidied.tidy()

        async def after() -> Drained:
            return await fill_and_drain(tidied, sizes)

        async def without() -> Drained:
            return await fill_and_drain(left, sizes)

        a, b = await side_by_side(sizes.vacuum_rounds, after, without, "vacuumed/not")
    return compare("vacuumed_ratio", a, b)
