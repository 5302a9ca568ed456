"""The server when there is much: lists among millions of jobs, and submits while workers drain at full speed."""

import asyncio
from typing import Final
from urllib.parse import urlencode

from bench.api.requests import SUBMIT
from bench.api.server import figures_of, serving
from bench.api.sizes import Sizes
from bench.grounds.ground import Ground, Place
from bench.jobs import ONE_LANE, fill
from bench.kernel.work import drain
from bench.measure import Figures, say
from bench.worker.loads import INLINE
from bench.worker.process import Shape, running

TEMPLATES: Final = 20
"""Real jobs of which the others are copies; half of them are finished."""
_LANE: Final = ONE_LANE[0]
LISTS: Final[tuple[dict[str, str], ...]] = (
    {},
    {"state": "succeeded"},
    {"state": "queued"},
    {"kind": _LANE.kind},
    {"kind": _LANE.kind, "state": "succeeded"},
    {"queue": "default", "limit": "200"},
    {"label": "team=growth"},
)
"""What people look for first."""


async def measure_lists(ground: Ground, sizes: Sizes) -> Figures:
    """List jobs of a tenant who has millions, four fifths of them finished."""
    async with ground.place() as place, serving(place) as server:
        say(f"list: loading {sizes.listed:,} rows")
        await fill(place.store, TEMPLATES, TEMPLATES)
        await drain(place, TEMPLATES // 2, TEMPLATES // 2)
        await place.load_history(sizes.listed * 4 // 5)
        await place.load_due(sizes.listed // 5, ONE_LANE)
        await place.tidy()
        order = {
            "connections": 4,
            "method": "GET",
            "paths": [f"/v1/jobs?{urlencode(asked)}" for asked in LISTS],
            "tenant": _LANE.tenant,
            "status": 200,
        }
        await server.load(**order, requests=2 * len(LISTS))
        rounds = [await server.load(**order, requests=sizes.lists) for _ in range(sizes.rounds)]
    return figures_of("list", rounds)


async def measure_busy(ground: Ground, sizes: Sizes) -> Figures:
    """Submit one by one while a worker with two runners has more to do than it can."""
    async with ground.place() as place, serving(place) as server, running(place, Shape(inline=2), [INLINE]):
        rounds = []
        for _ in range(sizes.rounds):
            feeding = asyncio.create_task(_feed(place, sizes))
            rounds.append(await server.load(**SUBMIT, connections=4, requests=sizes.busy_submits))
            feeding.cancel()
            await asyncio.wait([feeding])
    busy = figures_of("busy", rounds)
    return {"submit_p99_ms": busy["busy_p99_ms"], "busy_submit_per_s": busy["busy_per_s"]}


async def _feed(place: Place, sizes: Sizes) -> None:
    """Give the worker something to do all the time."""
    for _ in range(sizes.feeds):
        await fill(place.store, 20_000, 1_000, INLINE.make)
        while await place.any_active(INLINE.lane.tenant):
            await asyncio.sleep(0.05)
