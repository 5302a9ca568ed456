"""What stands beside the figures: the machine, the code, and a table for people."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bench.kernel.measure import Figures

TARGETS: Final = {
    "drain_per_s": 15_000,
    "drain_vs_bare": 0.7,
    "future_ratio": 0.8,
    "snapshot_ratio": 0.8,
    "history_ratio": 0.8,
    "lanes_ratio": 0.6,
}
"""The least that each shall reach on two cores; the ratios on PostgreSQL."""

ROWS: Final = (
    ("submit_many_per_s", "submit in batches, jobs/s"),
    ("submit_one_per_s", "submit one by one, many clients, jobs/s"),
    ("submit_one_serial_per_s", "submit one by one, one client, jobs/s"),
    ("drain_per_s", "claim and complete, jobs/s"),
    ("drain_two_loops_per_s", "the same by two loops at once, jobs/s"),
    ("bare_drain_per_s", "the same by bare statements, jobs/s"),
    ("drain_vs_bare", "ours ÷ bare"),
    ("claim_us_per_job", "claiming, µs a job"),
    ("settle_us_per_job", "settling, µs a job"),
    ("python_us_per_job", "CPU of our process, µs a job"),
    ("server_us_per_job", "CPU of the server, µs a job"),
    ("python_share", "CPU of our process ÷ wall"),
    ("vacuumed_ratio", "after a vacuum of the empty table ÷ before"),
    ("lanes_ratio", "many lanes ÷ one lane"),
    ("snapshot_ratio", "end of the rounds, snapshot held ÷ not"),
    ("future_ratio", "future jobs present ÷ absent"),
    ("history_ratio", "finished jobs present ÷ absent"),
    ("claim_p50_ms", "one claim among many due jobs, p50, ms"),
    ("claim_p99_ms", "p99, ms"),
    ("claim_max_ms", "longest, ms"),
)


def machine() -> Figures:
    """Return on what, by what and when it was measured."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def table(figures: Figures) -> str:
    """Return the figures for people, with how far the rounds spread and what is aimed at."""
    lines = [f"{figures['store']}, {figures['sizes']['name']}, {figures['date']}, {figures['cpu']}"]
    for name, meaning in ROWS:
        if name in figures:
            spread = figures.get(f"{name}_spread")
            around = f"{_number(spread[0])} … {_number(spread[1])}" if spread else ""
            aim = f"aim {_number(TARGETS[name])}" if name in TARGETS else ""
            lines.append(f"{meaning:<42}{_number(figures[name]):>12}  {around:<20}{aim}".rstrip())
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


def _commit() -> str:
    """Return the commit that is checked out, marked if files differ from it."""
    root = Path(__file__).parents[2]

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    commit = git("rev-parse", "--verify", "--quiet", "HEAD") or "none"
    return f"{commit}{'+changes' if git('status', '--porcelain') else ''}"


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
