"""Breaks a real cluster under load for a while, and says whether anything was lost or overlapped.

    python -m harness.chaos --minutes 5 --store postgres --seed 7

The seed decides load and faults; what real processes make of them differs from run to run, so a failing run keeps its
folder: `python -m harness.chaos --again <folder>` judges the same records anew.
"""

import argparse
import asyncio
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from harness.arena import SILENCE, Arena, Commander, StoreName, tide_worker
from harness.checker import Figures, History, Vacuous, Violation, check, lateness, measure, require
from harness.checker.records import Cap
from harness.cluster import has_worker_command
from harness.journal import recorded
from harness.load import LIMIT, LIMIT_KEY, Load
from harness.nemesis import Nemesis
from harness.witness import boottime

CLEAN, BROKEN, INVALID = 0, 1, 2
"""Exit codes; an invalid run proves nothing, for too little happened in it."""
DURING: Final = {"kills": 1, "reclaims": 1, "cancelled": 1}
"""What must have happened for a run to prove anything."""
OVERTIME: Final = 120.0
"""Seconds that a run goes on at the most for that to happen."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One chaos run."""

    store: StoreName
    seconds: float
    seed: int
    rate: float = 20.0
    workers: int = 2
    servers: int = 0
    """With some, all goes over HTTP, and they are broken, too."""
    commands: bool = True


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    plan: Plan
    figures: Figures
    lateness: dict[str, Any]
    violations: list[Violation]
    invalid: str | None = None
    """Why the run proves nothing."""

    @property
    def exit_code(self) -> int:
        return BROKEN if self.violations else INVALID if self.invalid else CLEAN


async def run(plan: Plan, command: Commander = tide_worker) -> Report:
    """Load, break, heal, come to rest, and check."""
    rng = random.Random(plan.seed)
    async with Arena(plan.store, workers=plan.workers, command=command, servers=plan.servers) as arena:
        await arena.store.set_limit(LIMIT_KEY, LIMIT)
        arena.journal.add(Cap(key=LIMIT_KEY, most=LIMIT))
        over = asyncio.Event()
        load = Load(arena, random.Random(rng.random()), rate=plan.rate, commands=plan.commands)
        nemesis = Nemesis(arena, random.Random(rng.random()))
        async with asyncio.TaskGroup() as group:
            group.create_task(load.run(over.is_set))
            group.create_task(nemesis.rage(over.is_set))
            group.create_task(_end(plan, arena, over))
        history = await arena.finish()
        report = judge(plan, history)
        arena.judge(history)
        return report


async def _end(plan: Plan, arena: Arena, over: asyncio.Event) -> None:
    """Say when it is over: when the time has passed, but on a slow machine not before it can prove anything."""
    await asyncio.sleep(plan.seconds)
    latest = boottime() + OVERTIME
    while boottime() < latest and not _proves_something(arena):
        await asyncio.sleep(1.0)
    over.set()


def _proves_something(arena: Arena) -> bool:
    so_far = measure(History([*recorded(arena.folder), *recorded(arena.memory)]))
    return all(getattr(so_far, name) >= number for name, number in DURING.items())


def judge(plan: Plan, history: History) -> Report:
    """Say what the records of a run prove."""
    invalid = None
    try:
        require(history, succeeded=1, **DURING)
    except Vacuous as nothing:
        invalid = str(nothing)
    late = {name: msgspec.to_builtins(found) for name, found in lateness(history).items()}
    return Report(plan=plan, figures=measure(history), lateness=late, violations=check(history), invalid=invalid)


def page(report: Report) -> str:
    """Return the report for a reader."""
    lines = [f"chaos on {report.plan.store}, {report.plan.seconds:g} s, seed {report.plan.seed}", ""]
    lines += [f"  {name:<14}{value}" for name, value in msgspec.structs.asdict(report.figures).items()]
    for name, found in report.lateness.items():
        values = "  ".join(f"{which} {found[which]:.3f}" for which in ("p50", "p95", "p99", "most"))
        lines += [f"  late, {name:<8}{values}  ({found['jobs']} jobs)"]
    lines += ["", *(str(violation) for violation in report.violations[:50])]
    verdict = {CLEAN: "clean", BROKEN: f"{len(report.violations)} violations", INVALID: f"invalid: {report.invalid}"}
    return "\n".join([*lines, verdict[report.exit_code]])


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m harness.chaos", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--seed", type=int, default=None, help="repeats the same load and faults")
    parser.add_argument("--rate", type=float, default=20.0, help="jobs a second")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--servers", type=int, default=0, help="go over HTTP, and break so many servers, too")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--report", type=Path, help="where to write the report as JSON")
    parser.add_argument("--again", type=Path, help="judge the records of an earlier run")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    options = parse(words)
    seed = random.SystemRandom().randrange(2**31) if options.seed is None else options.seed
    plan = Plan(
        store=options.store,
        seconds=60 * options.minutes,
        seed=seed,
        rate=options.rate,
        workers=options.workers,
        servers=options.servers,
    )
    if options.again is not None:
        report = judge(plan, History(recorded(options.again), grace=SILENCE, clock_error=0.01))
    elif not has_worker_command():
        print("there is no `tide worker` to break", file=sys.stderr)
        return INVALID
    else:
        report = asyncio.run(run(plan))
    text = msgspec.json.format(msgspec.json.encode(report)).decode()
    if options.report is not None:
        options.report.write_text(text + "\n")
    print(text if options.json else page(report))
    return report.exit_code


if __name__ == "__main__":
    sys.exit(main())
