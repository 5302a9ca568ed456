"""The suite of flow: what stands around the kernel."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from bench import flow_gates, flow_limits, flow_schedules
from bench.flow_gates import GateSizes
from bench.report import Aim, Row
from bench.suite import Suite


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes(GateSizes):
    """How much is measured."""

    schedules: int = 10_000
    schedules_every: float = 60.0
    schedules_seconds: float = 150.0
    round_jobs: int = 20_000
    rounds: int = 5
    fan_out: int = 100_000
    fan_in: int = 50_000
    fan_in_single: int = 2_000


SIZES: Final = (
    Sizes(name="full"),
    Sizes(
        name="quick",
        flood=100_000,
        gate_rounds=5,
        others=100,
        share_seconds=2.0,
        herd=20_000,
        schedules=2_000,
        schedules_every=12.0,
        schedules_seconds=36.0,
        round_jobs=10_000,
        rounds=3,
        fan_out=20_000,
        fan_in=10_000,
        fan_in_single=500,
    ),
    Sizes(
        name="tiny",
        flood=300,
        gate_rounds=2,
        others=4,
        share_seconds=0.2,
        herd=60,
        schedules=20,
        schedules_every=1.0,
        schedules_seconds=4.0,
        batch=20,
        submit_batch=20,
        round_jobs=60,
        rounds=1,
        fan_out=40,
        fan_in=40,
        fan_in_single=10,
    ),
)
"""The quick one fires as often as the full one, with fewer schedules."""

ROWS: Final = (
    Row("schedules_made_per_s", "schedules made, a second"),
    Row("schedules_fired", "their jobs that were measured"),
    Row("schedules_10k_lag_ms_p50", "how late these were claimed, p50, ms"),
    Row("schedules_10k_lag_ms_p99", "p99, ms", Aim(100, least=False)),
    Row("schedules_10k_lag_ms_max", "longest, ms"),
    Row("schedules_cpu_share", "CPU of keeper and worker ÷ wall"),
    Row("schedules_10k_same_second_lag_ms_p50", "how late they are if all fire in the same second, p50, ms"),
    Row("schedules_10k_same_second_lag_ms_p99", "p99, ms"),
    Row("schedules_10k_same_second_lag_ms_max", "longest, ms"),
    Row("gate_close_1m_s", "a gate on the flood closes, until it is in effect, s", Aim(1, least=False)),
    Row("gate_open_1m_s", "and opens, s", Aim(1, least=False)),
    Row("gate_others_p99_ms", "submit and start of others while it moves without a pause, p99, ms"),
    Row("gate_others_quiet_p99_ms", "the same while no gate moves, p99, ms"),
    Row("tenant_delay_ratio", "a tenant's delay beside a backlog ÷ alone", Aim(2, least=False)),
    Row("herd_start_p50_s", "a herd due within one second starts late by, p50, s"),
    Row("herd_start_p99_s", "p99, s"),
    Row("herd_per_s", "and is drained, jobs/s"),
    Row("limit_ratio", "a limit on every job ÷ none", Aim(0.6)),
    Row("full_limit_ratio", "the same, with most jobs waiting for it ÷ none"),
    Row("fanout_per_s", "children of one job, submitted and released, jobs/s"),
    Row("fanout_growth", "time of all ÷ twice the time of a half", Aim(1.3, least=False)),
    Row("fanin_per_s", "parents of one job, run, jobs/s"),
    Row("fanin_growth", "time of all ÷ twice the time of a half", Aim(1.3, least=False)),
    Row("single_ms", "a job that is run alone, ms"),
    Row("fanin_single_ms", "a parent that is run alone, ms"),
)

FLOW: Final = Suite[Sizes](
    help="schedules and flow control",
    parts=MappingProxyType(
        {
            "schedules": flow_schedules.measure,
            "same_second": flow_schedules.measure_same_second,
            "gate": flow_gates.measure_gate,
            "share": flow_gates.measure_share,
            "herd": flow_gates.measure_herd,
            "limit": flow_limits.measure_limit,
            "full_limit": flow_limits.measure_full_limit,
            "fan": flow_limits.measure_fan,
        }
    ),
    sizes=MappingProxyType({sizes.name: sizes for sizes in SIZES}),
    rows=ROWS,
)
