"""A suite: parts that are measured in turn on one ground, in one of several sizes, and how to show what came out."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from bench.grounds.ground import STORES, Ground, open_ground
from bench.measure import Figures, say
from bench.report import Row, machine


class AnySizes(Protocol):
    """How much is measured: a dataclass with a name."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def name(self) -> str: ...


SizesT = TypeVar("SizesT", bound=AnySizes)
Part = Callable[[Ground, SizesT], Awaitable[Figures]]


class AnySuite(Protocol):
    """What can be asked for on the command line."""

    @property
    def help(self) -> str: ...
    @property
    def parts(self) -> Mapping[str, object]: ...
    @property
    def rows(self) -> Sequence[Row]: ...
    @property
    def stores(self) -> Sequence[str]: ...
    async def measure(self, store: str, size: str, parts: Sequence[str]) -> Figures: ...


@dataclass(frozen=True, kw_only=True)
class Suite(Generic[SizesT]):
    """What belongs together."""

    help: str
    parts: Mapping[str, Part[SizesT]]
    sizes: Mapping[str, SizesT]
    rows: Sequence[Row]
    stores: Sequence[str] = tuple(sorted(STORES))

    async def measure(self, store: str, size: str, parts: Sequence[str]) -> Figures:
        """Run the parts and return all figures as one flat object, with what a reader must know to judge them."""
        begun = time.perf_counter()
        sizes = self.sizes[size]
        figures: Figures = {"store": store}
        seconds: dict[str, float] = {}
        async with open_ground(store) as ground:
            for name in parts:
                part_begun = time.perf_counter()
                say(f"--- {name}")
                figures |= await self.parts[name](ground, sizes)
                seconds[name] = round(time.perf_counter() - part_begun, 1)
            figures |= {"sizes": asdict(sizes), **machine(), **ground.facts}
        return {**figures, "seconds": {**seconds, "all": round(time.perf_counter() - begun, 1)}}
