"""How much of flow control is measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSizes:
    """Numbers of jobs and rounds."""

    name: str
    batch: int = 200
    submit_batch: int = 1_000
    round_jobs: int = 20_000
    rounds: int = 5
    fan_out: int = 100_000
    fan_in: int = 50_000
    fan_in_single: int = 2_000


FLOW_SIZES: Final[Mapping[str, FlowSizes]] = MappingProxyType(
    {
        sizes.name: sizes
        for sizes in (
            FlowSizes(name="full"),
            FlowSizes(name="quick", round_jobs=10_000, rounds=3, fan_out=20_000, fan_in=10_000, fan_in_single=500),
            FlowSizes(
                name="tiny",
                batch=20,
                submit_batch=20,
                round_jobs=60,
                rounds=1,
                fan_out=40,
                fan_in=40,
                fan_in_single=10,
            ),
        )
    }
)
