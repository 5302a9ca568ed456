"""How much is measured."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
    listed: int
    """Jobs in the store while lists are measured."""
    lists: int
    looks: int
    """At each page of the dashboard."""
    busy_submits: int
    feeds: int
    """How often the worker gets 20 000 jobs at the most while submits are measured."""


_FULL: Final = Sizes(
    name="full",
    rounds=5,
    connections=32,
    submits=30_000,
    batches=100,
    batch=1_000,
    gets=30_000,
    listed=5_000_000,
    lists=700,
    looks=50,
    busy_submits=5_000,
    feeds=100,
)
SIZES: Final[Mapping[str, Sizes]] = MappingProxyType(
    {
        sizes.name: sizes
        for sizes in (
            _FULL,
            replace(
                _FULL,
                name="quick",
                rounds=3,
                submits=6_000,
                batches=30,
                gets=6_000,
                listed=500_000,
                lists=280,
                looks=30,
                busy_submits=1_000,
            ),
            Sizes(
                name="tiny",
                rounds=1,
                connections=4,
                submits=40,
                batches=2,
                batch=10,
                gets=40,
                listed=100,
                lists=14,
                looks=2,
                busy_submits=40,
                feeds=1,
            ),
        )
    }
)
