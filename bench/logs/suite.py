"""The suite of logs: what it costs to capture lines, how fast they are stored, and how soon a search answers."""

from types import MappingProxyType
from typing import Final

from bench.logs import capture, search
from bench.logs.sizes import SIZES, Sizes
from bench.report import Aim, Row
from bench.suite import Suite

ROWS: Final = (
    Row("capture_cost", "share of a worker's drain that keeping ten logged lines a job costs", Aim(0.15, least=False)),
    Row("capture_print_cost", "the same for ten printed lines", Aim(0.15, least=False)),
    Row("lines_cost", "share that logging and keeping them cost, against jobs that say nothing"),
    Row("append_lines_per_s", "lines stored by one caller, /s"),
    Row("index_lines_per_s", "lines whose words are indexed by the duty, /s"),
    Row("search_p50_ms", "a search over all lines, p50, ms"),
    Row("search_p99_ms", "p99, ms", Aim(200, least=False)),
    Row("search_max_ms", "longest, ms"),
)
"""The aim of a search is that on PostgreSQL; on SQLite it is 400 ms."""

LOGS: Final = Suite[Sizes](
    help="lines that runs write: capture, storage and search",
    parts=MappingProxyType({"capture": capture.measure, "append": capture.measure_appends, "search": search.measure}),
    sizes=SIZES,
    rows=ROWS,
)
