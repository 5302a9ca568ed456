"""How much is measured of rivals."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Rounds and seconds."""

    name: str
    rounds: int = 5
    drain_seconds: float = 8.0
    """About how long a drain lasts: each contestant gets as many jobs as it does in that time."""
    start_rate: int = 20
    """Jobs a second."""
    start_seconds: float = 10.0
    at_most_seconds: float = 1800.0
    """No round is begun that would probably end later."""

    @classmethod
    def full(cls) -> Self:
        return cls(name="full")

    @classmethod
    def quick(cls) -> Self:
        return cls(name="quick", rounds=2, drain_seconds=1.5, start_seconds=2.0, at_most_seconds=170.0)

    @classmethod
    def tiny(cls) -> Self:
        """Return sizes that prove only that everything runs."""
        return cls(name="tiny", rounds=1, drain_seconds=0.02, start_rate=50, start_seconds=0.1)


SIZES: Final[Mapping[str, Sizes]] = MappingProxyType(
    {sizes.name: sizes for sizes in (Sizes.full(), Sizes.quick(), Sizes.tiny())}
)
