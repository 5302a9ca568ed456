"""The suite of flow: what stands around the kernel, schedules first."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from bench import flow_schedules
from bench.report import Aim, Row
from bench.suite import Suite


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is measured."""

    name: str
    schedules: int = 10_000
    schedules_every: float = 60.0
    schedules_seconds: float = 150.0


SIZES: Final = (
    Sizes(name="full"),
    Sizes(name="quick", schedules=2_000, schedules_every=12.0, schedules_seconds=36.0),
    Sizes(name="tiny", schedules=20, schedules_every=1.0, schedules_seconds=4.0),
)
"""The quick one fires as often as the full one, with fewer schedules."""

ROWS: Final = (
    Row("schedules_made_per_s", "schedules made, a second"),
    Row("schedules_fired", "their jobs that were measured"),
    Row("schedules_10k_lag_ms_p50", "how late these were claimed, p50, ms"),
    Row("schedules_10k_lag_ms_p99", "p99, ms", Aim(100, least=False)),
    Row("schedules_10k_lag_ms_max", "longest, ms"),
    Row("schedules_cpu_share", "CPU of keeper and worker ÷ wall"),
)

FLOW: Final = Suite[Sizes](
    help="schedules and flow control",
    parts=MappingProxyType({"schedules": flow_schedules.measure}),
    sizes=MappingProxyType({sizes.name: sizes for sizes in SIZES}),
    rows=ROWS,
)
