"""Rules about jobs that vanish, stick, or are called done without having been done."""

from collections.abc import Iterator

from harness.checker.history import FINAL_STATES, History, Violation
from harness.checker.records import Final


def lost_row(history: History) -> Iterator[Violation]:
    """A job that was acknowledged is there at the end."""
    for job, key in history.acknowledged.items():
        if job not in history.finals:
            yield Violation("LOST_ROW", job, f"acknowledged under key {key}, and gone")


def stuck(history: History) -> Iterator[Violation]:
    """A job has ended, at the latest some time after the last fault."""
    latest = None if history.healed is None else history.healed + history.deadline
    for job, final in history.finals.items():
        if job not in history.acknowledged:
            continue  # CONSERVATION looks at those
        if final.state not in FINAL_STATES:
            yield Violation("STUCK", job, f"still {final.state}")
        elif latest is not None and final.finished is not None and final.finished > latest + history.clock_error:
            yield Violation("STUCK", job, f"ended {final.finished - latest:.3f} s after the deadline")


def false_success(history: History) -> Iterator[Violation]:
    """A job that succeeded was seen to end well by its own witness."""
    for final in history.finals.values():
        if final.state == "succeeded" and not any(run.ok for run in history.executions.get(final.job, ())):
            yield Violation("FALSE_SUCCESS", final.job, "succeeded, and no execution ended well")


def unasked_cancel(history: History) -> Iterator[Violation]:
    """Only a job that somebody tried to cancel is cancelled."""
    for final in history.finals.values():
        if final.state == "cancelled" and final.job not in history.cancel_asked:
            yield Violation("CANCELLED_UNASKED", final.job, "cancelled, and nobody asked for it")


def phantom(history: History) -> Iterator[Violation]:
    """Nothing runs that nobody submitted."""
    for job in history.executions:
        if job not in history.finals and job not in history.acknowledged:
            yield Violation("PHANTOM", job, "ran, and is no job of ours")


def no_start(history: History) -> Iterator[Violation]:
    """Whatever left evidence also said that it began."""
    for runs in history.executions.values():
        for run in runs:
            if not run.started:
                yield Violation("NO_START", run.job, f"token {run.token} left evidence and never began")


def dedup(history: History) -> Iterator[Violation]:
    """One key stands for one job."""
    jobs: dict[str, set[str]] = {}
    for job, key in history.acknowledged.items():
        jobs.setdefault(key, set()).add(job)
    for job, final in history.finals.items():
        if final.key is not None:
            jobs.setdefault(final.key, set()).add(job)
    for key, found in jobs.items():
        if len(found) > 1:
            yield Violation("DEDUP", key, f"became {len(found)} jobs: {', '.join(sorted(found))}")


def conservation(history: History) -> Iterator[Violation]:
    """Every job at the end is one that was submitted, successfully or with an unknown outcome, and has ended."""
    for final in history.finals.values():
        if final.job not in history.acknowledged:
            yield from _landed(history, final)


def _landed(history: History, final: Final) -> Iterator[Violation]:
    phases = {submit.phase for submit in history.submits.get(final.key or "", ())}
    if not phases:
        yield Violation("CONSERVATION", final.job, f"has key {final.key}, which nobody submitted")
    elif phases <= {"invoke", "fail"} and "fail" in phases:
        yield Violation("CONSERVATION", final.job, f"is there, though the submit of {final.key} was refused")
    if final.state not in FINAL_STATES:
        yield Violation("CONSERVATION", final.job, f"landed without an answer, and is still {final.state}")
