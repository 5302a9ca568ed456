"""The suite of time and flow: limits, dependencies, gates, schedules."""

from types import MappingProxyType
from typing import Final

from bench import flow_limits
from bench.flow_sizes import FLOW_SIZES, FlowSizes
from bench.report import Aim, Row
from bench.suite import Suite

ROWS: Final = (
    Row("limit_ratio", "a limit on every job ÷ none", Aim(0.6)),
    Row("full_limit_ratio", "the same, with most jobs waiting for it ÷ none"),
    Row("fanout_per_s", "children of one job, submitted and released, jobs/s"),
    Row("fanout_growth", "time of all ÷ twice the time of a half", Aim(1.3, least=False)),
    Row("fanin_per_s", "parents of one job, run, jobs/s"),
    Row("fanin_growth", "time of all ÷ twice the time of a half", Aim(1.3, least=False)),
    Row("single_ms", "a job that is run alone, ms"),
    Row("fanin_single_ms", "a parent that is run alone, ms"),
)

FLOW: Final = Suite[FlowSizes](
    help="limits and dependencies",
    parts=MappingProxyType(
        {
            "limit": flow_limits.measure_limit,
            "full_limit": flow_limits.measure_full_limit,
            "fan": flow_limits.measure_fan,
        }
    ),
    sizes=FLOW_SIZES,
    rows=ROWS,
)
