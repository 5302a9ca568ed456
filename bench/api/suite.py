"""The suite of the API: a real `tide server` process on a durable store, under load from another process."""

from types import MappingProxyType
from typing import Final

from bench.api import crowded, requests
from bench.api.sizes import SIZES, Sizes
from bench.report import Aim, Row
from bench.suite import Suite

ROWS: Final = (
    Row("submit_per_s", "single submits, durable, 32 connections, /s", Aim(3_000)),
    Row("submit_p50_ms", "p50, ms"),
    Row("submit_alone_p99_ms", "p99, ms"),
    Row("submit_cpu_us", "CPU of the server, µs a submit"),
    Row("submit_load_cpu_us", "CPU of the load, µs a submit"),
    Row("batch_jobs_per_s", "jobs in batches, /s", Aim(25_000)),
    Row("batch_jobs_p99_ms", "a batch, p99, ms"),
    Row("batch_jobs_cpu_us", "CPU of the server, µs a job"),
    Row("get_per_s", "looks at jobs, 32 connections, /s"),
    Row("get_p50_ms", "p50, ms"),
    Row("get_p99_ms", "p99, ms"),
    Row("get_cpu_us", "CPU of the server, µs a look"),
    Row("list_per_s", "lists among millions of jobs, 4 connections, /s"),
    Row("list_p50_ms", "p50, ms"),
    Row("list_p99_ms", "p99, ms", Aim(50, least=False)),
    Row("rare_p50_ms", "the first page of what one job of millions has, p50, ms"),
    Row("rare_p99_ms", "p99, ms", Aim(200, least=False)),
    Row("page_p99_ms", "the slowest page of the dashboard among them, p99, ms", Aim(200, least=False)),
    Row("submit_p99_ms", "a submit while workers drain at full speed, p99, ms"),
    Row("busy_submit_per_s", "such submits over 4 connections, /s"),
    Row("server_rss_mib", "memory of a server and its supervisor, MiB"),
)
"""The aims are for two idle cores."""

API: Final = Suite[Sizes](
    help="a real server process: how many requests, how soon, and at what cost",
    parts=MappingProxyType(
        {
            "submit": requests.measure_submits,
            "batch": requests.measure_batches,
            "get": requests.measure_gets,
            "list": crowded.measure_lists,
            "busy": crowded.measure_busy,
        }
    ),
    sizes=SIZES,
    rows=ROWS,
)
