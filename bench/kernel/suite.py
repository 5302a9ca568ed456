"""The suite of the kernel: submit, claim and settle, without a worker around them."""

from types import MappingProxyType
from typing import Final

from bench.kernel import claim, drain, future, history, lanes, snapshot, submit, vacuum
from bench.kernel.sizes import SIZES, Sizes
from bench.report import Aim, Row
from bench.suite import Suite

ROWS: Final = (
    Row("submit_many_per_s", "submit in batches, jobs/s"),
    Row("submit_one_per_s", "submit one by one, many clients, jobs/s"),
    Row("submit_one_serial_per_s", "submit one by one, one client, jobs/s"),
    Row("drain_per_s", "claim and complete, jobs/s", Aim(15_000)),
    Row("drain_two_loops_per_s", "the same by two loops at once, jobs/s"),
    Row("bare_drain_per_s", "the same by bare statements, jobs/s"),
    Row("drain_vs_bare", "ours ÷ bare", Aim(0.7)),
    Row("claim_us_per_job", "claiming, µs a job"),
    Row("settle_us_per_job", "settling, µs a job"),
    Row("python_us_per_job", "CPU of our process, µs a job"),
    Row("server_us_per_job", "CPU of the server, µs a job"),
    Row("python_share", "CPU of our process ÷ wall"),
    Row("vacuumed_ratio", "after a vacuum of the empty table ÷ before"),
    Row("lanes_ratio", "many lanes ÷ one lane", Aim(0.6)),
    Row("snapshot_ratio", "end of the rounds, snapshot held ÷ not", Aim(0.8)),
    Row("future_ratio", "future jobs present ÷ absent", Aim(0.8)),
    Row("history_ratio", "finished jobs present ÷ absent", Aim(0.8)),
    Row("claim_p50_ms", "one claim among many due jobs, p50, ms"),
    Row("claim_p99_ms", "p99, ms"),
    Row("claim_max_ms", "longest, ms"),
)
"""The aims are for two cores; those of the ratios for PostgreSQL."""

KERNEL: Final = Suite[Sizes](
    help="submit, claim and settle",
    parts=MappingProxyType(
        {
            "submit": submit.measure,
            "drain": drain.measure,
            "vacuum": vacuum.measure,
            "lanes": lanes.measure,
            "snapshot": snapshot.measure,
            "claim": claim.measure,
            "future": future.measure,
            "history": history.measure,
        }
    ),
    sizes=SIZES,
    rows=ROWS,
)
