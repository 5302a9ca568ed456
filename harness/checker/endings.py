"""Rules about what must be over: cancelled jobs, finished jobs, and processes."""

from collections.abc import Iterator
from itertools import pairwise

from harness.checker.history import FINAL_STATES, History, Violation
from harness.checker.intervals import Execution
from harness.checker.records import Cancel, Final, Left


def start_after_cancel(history: History) -> Iterator[Violation]:
    """After a cancel was acknowledged no further token of the job starts.

    A run that was already a worker's when it was asked to stop may still be seen to begin; RAN_ON bounds how late.
    """
    for job, cancels in history.cancels.items():
        first = cancels[0]
        for run in history.executions.get(job, ()):
            granted = first.state == "cancelling" and run.token <= first.token
            if run.first > first.t and not granted:
                yield Violation("START_AFTER_CANCEL", job, f"token {run.token} began {run.first - first.t:.3f} s after")


def ran_on(history: History) -> Iterator[Violation]:
    """A cancelled run falls silent within the grace, and no run leaves evidence after its job has ended.

    Whoever was told that a job is over was told so while nothing of it ran any more.
    """
    for job, runs in history.executions.items():
        for run in runs:
            until = _silent_from(history, job, run)
            if run.last > until:
                yield Violation("RAN_ON", job, f"token {run.token} was alive {run.last - until:.3f} s too long")


def _silent_from(history: History, job: str, run: Execution) -> float:
    ends = [float("inf")]
    final = history.finals.get(job)
    if final is not None and final.finished is not None and final.state in FINAL_STATES:
        ends.append(final.finished + history.clock_error)
    for cancel in history.cancels.get(job, ()):
        if cancel.state == "cancelling":
            ends.append(cancel.t + history.grace)
        elif cancel.state in FINAL_STATES and cancel.t > run.first:  # START_AFTER_CANCEL looks at the others
            ends.append(cancel.t)
    return min(ends)


def cancel_overwritten(history: History) -> Iterator[Violation]:
    """What a cancel was answered with stays true: `cancelled` for good, `cancelling` until the end of that very run.

    There is no other answer: a job that goes on as if nobody had asked was not cancelled.
    """
    for job, cancels in history.cancels.items():
        for cancel in cancels:
            if cancel.state not in FINAL_STATES and cancel.state != "cancelling":
                yield Violation("CANCEL_IGNORED", job, f"was still {cancel.state} after its cancel")
        for before, after in pairwise(cancels):
            if before.state in FINAL_STATES and after.state != before.state:
                yield Violation("CANCEL_OVERWRITTEN", job, f"was {before.state}, then {after.state}")
        final = history.finals.get(job)
        if final is not None:
            yield from _overwritten(cancels[-1], final)


def _overwritten(cancel: Cancel, final: Final) -> Iterator[Violation]:
    if final.state not in FINAL_STATES:
        return  # STUCK looks at those
    if cancel.state in FINAL_STATES and final.state != cancel.state:
        yield Violation("CANCEL_OVERWRITTEN", final.job, f"was {cancel.state}, and ended {final.state}")
    if cancel.state == "cancelling" and final.state not in ("cancelled", "succeeded"):
        yield Violation("CANCEL_OVERWRITTEN", final.job, f"was cancelling, and ended {final.state}")


def leak(history: History) -> Iterator[Violation]:
    """Nothing is left when everything was stopped."""
    for left in history.of(Left):
        yield Violation("LEAK", str(left.pid), left.command)
