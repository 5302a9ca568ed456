"""How much is measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Requests of each sort; a round is one process of load against one server."""

    name: str
    rounds: int
    connections: int
    submits: int
    batches: int
    batch: int
    gets: int


SIZES: Final[Mapping[str, Sizes]] = MappingProxyType(
    {
        sizes.name: sizes
        for sizes in (
            Sizes(name="full", rounds=5, connections=32, submits=30_000, batches=100, batch=1_000, gets=30_000),
            Sizes(name="quick", rounds=3, connections=32, submits=6_000, batches=30, batch=1_000, gets=6_000),
            Sizes(name="tiny", rounds=1, connections=4, submits=40, batches=2, batch=10, gets=40),
        )
    }
)
