"""The suite of time and flow: gates, shares and herds."""

from types import MappingProxyType
from typing import Final

from bench import flow_gates
from bench.flow_gates import SIZES, GateSizes
from bench.report import Aim, Row
from bench.suite import Suite

ROWS: Final = (
    Row("gate_close_1m_s", "a gate on the flood closes, until it is in effect, s", Aim(1, least=False)),
    Row("gate_open_1m_s", "and opens, s", Aim(1, least=False)),
    Row("gate_others_p99_ms", "submit and start of others meanwhile, p99, ms"),
    Row("gate_others_quiet_p99_ms", "the same while no gate moves, p99, ms"),
    Row("tenant_delay_ratio", "a tenant's delay beside a backlog ÷ alone", Aim(2, least=False)),
    Row("herd_start_p50_s", "a herd due within one second starts late by, p50, s"),
    Row("herd_start_p99_s", "p99, s"),
    Row("herd_per_s", "and is drained, jobs/s"),
)

FLOW: Final = Suite[GateSizes](
    help="gates, shares of tenants, and herds",
    parts=MappingProxyType(
        {
            "gate": flow_gates.measure_gate,
            "share": flow_gates.measure_share,
            "herd": flow_gates.measure_herd,
        }
    ),
    sizes=SIZES,
    rows=ROWS,
)
