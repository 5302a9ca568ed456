"""What stands beside the figures: the machine, the code, and a table for people."""

import os
import platform
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from bench.measure import Figures


class Aim(NamedTuple):
    """What a figure shall reach."""

    bound: float
    least: bool = True
    """Whether the bound is the least that is wanted, and not the most."""

    def __str__(self) -> str:
        return f"{'≥' if self.least else '≤'} {_number(self.bound)}"


class Row(NamedTuple):
    """A line of the table."""

    name: str
    meaning: str
    aim: Aim | None = None


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


def table(figures: Figures, rows: Iterable[Row]) -> str:
    """Return the figures for people, with how far the rounds spread and what is aimed at."""
    lines = [f"{figures['store']}, {figures['sizes']['name']}, {figures['date']}, {figures['cpu']}"]
    for name, meaning, aim in rows:
        if name in figures:
            spread = figures.get(f"{name}_spread")
            around = f"{_number(spread[0])} … {_number(spread[1])}" if spread else ""
            aimed = f"aim {aim}" if aim is not None else ""
            lines.append(f"{meaning:<48}{_number(figures[name]):>12}  {around:<20}{aimed}".rstrip())
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


def _commit() -> str:
    """Return the commit that is checked out, marked if files differ from it."""
    root = Path(__file__).parents[1]

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
