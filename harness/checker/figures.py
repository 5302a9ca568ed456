"""What happened in a run, in numbers, and whether it was enough for a clean result to mean anything."""

import msgspec

from harness.checker.history import History
from harness.checker.intervals import Execution
from harness.checker.records import Death, Fault, Kill, Submit


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of one run."""

    submitted: int
    acknowledged: int
    unknown: int
    """Submits whose outcome the client was not told."""
    cancelled: int
    """Jobs whose cancel was acknowledged."""
    succeeded: int
    executions: int
    kills: int
    deaths: int
    faults: int
    reclaims: int
    """Executions that ended without a word, and whose job was given to another."""
    stale: int
    """Executions that ended well though their job had been given to another: their results had to be refused."""


class Vacuous(Exception):
    """The run proves nothing: what it was meant to test did not happen."""


def measure(history: History) -> Figures:
    """Count."""
    runs = [run for found in history.executions.values() for run in found]
    return Figures(
        submitted=len(history.submits),
        acknowledged=len(history.acknowledged),
        unknown=sum(submit.phase == "unknown" for submit in history.of(Submit)),
        cancelled=len(history.cancels),
        succeeded=sum(final.state == "succeeded" for final in history.finals.values()),
        executions=len(runs),
        kills=len(history.of(Kill)),
        deaths=len(history.of(Death)),
        faults=sum(fault.phase == "begin" for fault in history.of(Fault)),
        reclaims=sum(run.ended is None and _superseded(history, run) for run in runs),
        stale=sum(run.ok and _superseded(history, run) for run in runs),
    )


def _superseded(history: History, run: Execution) -> bool:
    return any(other.token > run.token for other in history.executions[run.job])


def require(history: History, **least: int) -> Figures:
    """Return the figures, or raise Vacuous if one of them is lower than it must be for the run to count."""
    figures = measure(history)
    missing = [
        f"{name} was {getattr(figures, name)}, at least {number} needed"
        for name, number in least.items()
        if getattr(figures, name) < number
    ]
    if missing:
        raise Vacuous("; ".join(missing))
    return figures
