"""One run: every part in turn on one ground, and what a reader must know to judge the figures."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Final

from bench.kernel import claim, drain, future, history, lanes, snapshot, submit, vacuum
from bench.kernel.ground import Ground, open_ground
from bench.kernel.measure import Figures, say
from bench.kernel.report import machine
from bench.kernel.sizes import Sizes

Part = Callable[[Ground, Sizes], Awaitable[Figures]]

STORES: Final = frozenset({"postgres", "sqlite"})
PARTS: Final[Mapping[str, Part]] = MappingProxyType(
    {
        "submit": submit.measure,
        "drain": drain.measure,
        "vacuum": vacuum.measure,
        "lanes": lanes.measure,
        "snapshot": snapshot.measure,
        "claim": claim.measure,
        "future": future.measure,
        "history": history.measure,
    }
)


async def measure(store: str, sizes: Sizes, parts: Sequence[str]) -> Figures:
    """Run the parts and return all figures as one flat object."""
    begun = time.perf_counter()
    figures: Figures = {"store": store}
    seconds: dict[str, float] = {}
    async with open_ground(store) as ground:
        for name in parts:
            part_begun = time.perf_counter()
            say(f"--- {name}")
            figures |= await PARTS[name](ground, sizes)
            seconds[name] = round(time.perf_counter() - part_begun, 1)
        figures |= {"sizes": asdict(sizes), **machine(), **ground.facts}
    return {**figures, "seconds": {**seconds, "all": round(time.perf_counter() - begun, 1)}}
