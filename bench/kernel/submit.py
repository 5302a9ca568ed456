"""Submit: how many jobs a second are stored durably, in batches and one by one."""

import asyncio
import time

from bench.grounds.ground import Ground, Place
from bench.jobs import fill, specs
from bench.kernel.sizes import Sizes
from bench.kernel.work import warm_up
from bench.measure import Figures, say

WARM = 10
SERIAL_SHARE = 10
"""One client alone submits this part of what many clients do."""


async def measure(ground: Ground, sizes: Sizes) -> Figures:
    async with ground.place() as place:
        await warm_up(place, sizes)
        await _one_by_one(place, sizes.submit_clients * WARM, sizes.submit_clients)  # every client gets its connection
        many = await _many(place, sizes)
        one = await _one_by_one(place, sizes.submit_one_jobs, sizes.submit_clients)
        serial = await _one_by_one(place, max(1, sizes.submit_one_jobs // SERIAL_SHARE), 1)
    say(f"submit {many:,.0f}/s in batches, {one:,.0f}/s by {sizes.submit_clients} clients, {serial:,.0f}/s by one")
    return {
        "submit_many_per_s": round(many),
        "submit_one_per_s": round(one),
        "submit_one_serial_per_s": round(serial),
    }


async def _many(place: Place, sizes: Sizes) -> float:
    begun = time.perf_counter()
    await fill(place.store, sizes.submit_many_jobs, sizes.submit_batch)
    return sizes.submit_many_jobs / (time.perf_counter() - begun)


async def _one_by_one(place: Place, count: int, clients: int) -> float:
    jobs = iter(specs(count))

    async def client() -> None:
        for spec in jobs:
            await place.store.submit([spec])

    begun = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return count / (time.perf_counter() - begun)
