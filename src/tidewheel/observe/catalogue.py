"""Every metric there is: its name, kind, labels and meaning. `docs/reference/metrics.md` is made from this table."""

from functools import cache
from importlib.metadata import version
from typing import Final

from tidewheel.observe.metrics import Described, Numbers, Row

_LONG: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)
"""Bounds for what jobs take."""

# What every page has

BUILD_INFO: Final = Described("tide_build_info", "gauge", "Which program this is.", ("version",))
PROCESS_MEMORY: Final = Described(
    "tide_process_resident_memory_bytes",
    "gauge",
    "Memory of a process of the program; those of tasks are not among them.",
    ("process",),
)
PROCESS_CPU: Final = Described(
    "tide_process_cpu_seconds_total", "counter", "Processor time of a process of the program.", ("process",)
)
PROCESS_FILES: Final = Described(
    "tide_process_open_fds", "gauge", "Descriptors that a process of the program has open.", ("process",)
)
PROCESS_STARTS: Final = Described(
    "tide_process_starts_total",
    "counter",
    "How often a child was started; more than once means that it ended unexpectedly, or was renewed.",
    ("process",),
)

# Servers

REQUESTS: Final = Described(
    "tide_http_requests_total", "counter", "Requests that were answered.", ("endpoint", "status")
)
REQUEST_SECONDS: Final = Described(
    "tide_http_request_seconds", "histogram", "Time until the answer began.", ("endpoint",)
)
REQUESTS_UNDER_WAY: Final = Described("tide_http_requests_under_way", "gauge", "Requests that are being answered.")
SUBMITTED: Final = Described(
    "tide_jobs_submitted_total", "counter", "Jobs that came in over HTTP; apps may submit without a server.", ("queue",)
)
FINISHED: Final = Described(
    "tide_jobs_finished_total",
    "counter",
    "Jobs that ended since the store was made, by how: succeeded, dead, cancelled, expired, dropped or skipped.",
    ("queue", "outcome"),
)
RUNNING: Final = Described("tide_running_jobs", "gauge", "Jobs that run, as of the last census.", ("queue",))
LIMIT: Final = Described(
    "tide_limit",
    "gauge",
    "How many jobs may run at once under the keys of one name, whatever their values.",
    ("limit",),
)
LIMIT_IN_USE: Final = Described(
    "tide_limit_in_use", "gauge", "How many jobs run under the keys of one name, whatever their values.", ("limit",)
)
SCHEDULE_LAG: Final = Described(
    "tide_schedule_lag_seconds",
    "gauge",
    "By how much the writing of occurrences is behind: nought while a keeper is at work.",
)
SCHEDULE_MISSED: Final = Described(
    "tide_schedule_missed_total", "counter", "Occurrences of schedules that were missed since the store was made."
)
DEAD_ROWS: Final = Described(
    "tide_db_dead_tuples", "gauge", "Rows that are dead and not removed yet; on PostgreSQL only.", ("table",)
)
STORE_SECONDS: Final = Described(
    "tide_store_latency_seconds", "histogram", "How long the store took to answer what this page asks of it."
)
STORE_UP: Final = Described("tide_store_up", "gauge", "Whether the store answers.")
QUEUE_DEPTH: Final = Described("tide_queue_depth", "gauge", "Active jobs, as of the last census.", ("queue", "state"))
QUEUE_OLDEST: Final = Described(
    "tide_queue_oldest_seconds",
    "gauge",
    "How long the first due job of a queue waits, for a worker or for a limit and behind no gate; none if nothing is "
    "due. Scale workers by it while few wait for limits.",
    ("queue",),
)
JOBS_KEPT: Final = Described("tide_jobs_kept", "gauge", "Finished jobs that are still kept.", ("queue", "state"))
DEAD_LETTERS: Final = Described(
    "tide_dead_letters", "gauge", "Jobs that ended without success and wait for someone.", ("queue",)
)
CENSUS_TIME: Final = Described("tide_census_timestamp_seconds", "gauge", "When jobs were last counted.")
UNINDEXED_LINES: Final = Described(
    "tide_log_unindexed_lines",
    "gauge",
    "Lines of runs that wait for the index, counted up to those of 10 000 appends; a search looks through all of them.",
)
UNINDEXED_SECONDS: Final = Described(
    "tide_log_unindexed_seconds",
    "gauge",
    "How long the first of them waits: up to half a minute while a keeper is at work, and keeps up.",
)
ALERTS_FIRING: Final = Described("tide_alerts_firing", "gauge", "Alerts of the program's own that fire now.", ("rule",))
WORKERS_ALIVE: Final = Described("tide_workers_alive", "gauge", "Workers whose lease is valid.")

# Workers

RUNS: Final = Described(
    "tide_runs_total", "counter", "Runs that ended here, by what became of them.", ("kind", "outcome")
)
RETRIES: Final = Described(
    "tide_retries_total", "counter", "Runs that were begun after a failed one of the same job.", ("kind",)
)
RUN_SECONDS: Final = Described("tide_job_run_seconds", "histogram", "How long runs took.", ("kind",), _LONG)
JOB_WAIT: Final = Described(
    "tide_job_wait_seconds", "histogram", "From when a run was due until it was claimed.", ("queue",), _LONG
)
SLOTS: Final = Described("tide_slots", "gauge", "Places for runs, busy and free.", ("part", "state"))
CLAIMS: Final = Described(
    "tide_claims_total", "counter", "Claims, by what they brought: some, none or error.", ("result",)
)
CLAIM_SECONDS: Final = Described("tide_claim_seconds", "histogram", "How long the store took to answer a claim.")
LATE_OUTCOMES: Final = Described(
    "tide_outcomes_late_total", "counter", "Outcomes that were refused, for the run had passed to another worker."
)
RENEWALS: Final = Described(
    "tide_lease_renewals_total", "counter", "Beats of the supervisor, by result: ok or unanswered.", ("result",)
)
LEASES_LOST: Final = Described(
    "tide_lease_lost_total", "counter", "Children that were ended since their lease had passed or was refused."
)
LOG_LINES: Final = Described(
    "tide_log_lines_total", "counter", "Lines that runs wrote, by what became of them: stored or lost.", ("fate",)
)

# Keepers

CHORES: Final = Described("tide_chores_total", "counter", "Chores, by result: ok or error.", ("chore", "result"))
CHORE_SECONDS: Final = Described("tide_chore_seconds_total", "counter", "Time that chores took.", ("chore",))
CHORE_ITEMS: Final = Described("tide_chore_items_total", "counter", "How much chores found to do.", ("chore",))
LEADER: Final = Described("tide_leader", "gauge", "Whether a chore is the duty of this node now.", ("chore",))

GROUPS: Final = (
    ("Every page", (BUILD_INFO, PROCESS_MEMORY, PROCESS_CPU, PROCESS_FILES, PROCESS_STARTS)),
    (
        "Servers",
        (
            REQUESTS,
            REQUEST_SECONDS,
            REQUESTS_UNDER_WAY,
            SUBMITTED,
            FINISHED,
            STORE_UP,
            STORE_SECONDS,
            QUEUE_DEPTH,
            QUEUE_OLDEST,
            RUNNING,
            JOBS_KEPT,
            DEAD_LETTERS,
            CENSUS_TIME,
            LIMIT,
            LIMIT_IN_USE,
            SCHEDULE_LAG,
            SCHEDULE_MISSED,
            DEAD_ROWS,
            UNINDEXED_LINES,
            UNINDEXED_SECONDS,
            ALERTS_FIRING,
            WORKERS_ALIVE,
        ),
    ),
    (
        "Workers",
        (
            RUNS,
            RETRIES,
            RUN_SECONDS,
            JOB_WAIT,
            SLOTS,
            CLAIMS,
            CLAIM_SECONDS,
            LATE_OUTCOMES,
            RENEWALS,
            LEASES_LOST,
            LOG_LINES,
        ),
    ),
    ("Keepers", (CHORES, CHORE_SECONDS, CHORE_ITEMS, LEADER)),
)
CATALOGUE: Final = {metric.name: metric for _, metrics in GROUPS for metric in metrics}


@cache
def build_info() -> Numbers:
    """Return which program this is."""
    return Numbers(BUILD_INFO, [Row((version("tidewheel"),), [1])])


def reference() -> str:
    """Return the tables of all metrics for the docs."""
    lines: list[str] = []
    for title, metrics in GROUPS:
        lines += ["", f"## {title}", "", "| metric | kind | labels | meaning |", "|---|---|---|---|"]
        for one in metrics:
            labels = ", ".join(f"`{label}`" for label in one.labels)
            lines.append(f"| `{one.name}` | {one.kind} | {labels} | {one.help} |")
    return "\n".join(lines[1:])
