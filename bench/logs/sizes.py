"""How much is measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Numbers of jobs, lines and searches."""

    name: str
    rounds: int
    round_jobs: int
    append_lines: int
    stored_lines: int
    """What is searched."""
    searches: int


SIZES: Final[Mapping[str, Sizes]] = MappingProxyType(
    {
        sizes.name: sizes
        for sizes in (
            Sizes(
                name="full",
                rounds=5,
                round_jobs=20_000,
                append_lines=1_000_000,
                stored_lines=10_000_000,
                searches=1_000,
            ),
            Sizes(name="quick", rounds=3, round_jobs=10_000, append_lines=100_000, stored_lines=300_000, searches=300),
            Sizes(name="tiny", rounds=1, round_jobs=200, append_lines=2_000, stored_lines=3_000, searches=30),
        )
    }
)
