"""The suite of the worker: real `tide worker` processes on a durable store."""

from types import MappingProxyType
from typing import Final

from bench.report import Aim, Row
from bench.suite import Suite
from bench.worker import drain, hosted, idle, latency, preempt
from bench.worker.sizes import SIZES, Sizes

ROWS: Final = (
    Row("drain_per_s", "async functions that do nothing, jobs/s", Aim(15_000)),
    Row("drain_one_runner_per_s", "by one runner"),
    Row("drain_two_runners_per_s", "by two runners"),
    Row("bare_drain_per_s", "the same jobs by bare statements, jobs/s"),
    Row("drain_vs_bare", "ours ÷ bare"),
    Row("worker_us_per_job", "CPU of a worker with one runner, µs a job"),
    Row("server_us_per_job", "CPU of the server meanwhile, µs a job"),
    Row("start_ms_p50", "from the submit's answer to the body, p50, ms", Aim(3, least=False)),
    Row("start_ms_p99", "p99, ms", Aim(15, least=False)),
    Row("start_ms_max", "longest, ms"),
    Row("late_ms_p50", "from the due time to the body, p50, ms"),
    Row("late_ms_p99", "p99, ms", Aim(15, least=False)),
    Row("late_ms_max", "longest, ms"),
    Row("process_per_s", "plain functions in processes, 4 slots, jobs/s", Aim(2_500)),
    Row("command_per_s", "executables in sandboxes, 4 slots, jobs/s", Aim(250)),
    Row("preempt_ms_p50", "an urgent job while all slots are busy with what can be paused, p50, ms"),
    Row("preempt_ms_p99", "p99, ms", Aim(200, least=False)),
    Row("preempt_ms_max", "longest, ms"),
    Row("idle_rss_mib", "memory of an idle worker, MiB"),
    Row("idle_rss_keeper_mib", "with a keeper, MiB"),
    Row("idle_cpu_percent", "CPU of an idle worker, % of a core", Aim(1, least=False)),
    Row("idle_cpu_keeper_percent", "with a keeper, %", Aim(1, least=False)),
    Row("idle_queries_per_s", "transactions of an idle worker a second (SQLite: commits)", Aim(2, least=False)),
    Row("idle_queries_keeper_per_s", "with a keeper", Aim(2, least=False)),
)
"""The aims are for two idle cores."""

WORKER: Final = Suite[Sizes](
    help="real worker processes: how fast, how soon, and at what cost while idle",
    parts=MappingProxyType(
        {
            "drain": drain.measure,
            "start": latency.measure_start,
            "late": latency.measure_late,
            "process": hosted.measure_processes,
            "command": hosted.measure_commands,
            "preempt": preempt.measure,
            "idle": idle.measure,
        }
    ),
    sizes=SIZES,
    rows=ROWS,
)
