"""Whom the death of a child is held against."""

import signal
from collections.abc import Sequence

from tidewheel.model.job import Run
from tidewheel.model.outcome import Outcome
from tidewheel.tasks.ending import TOO_LONG, End, Ended, outcome_of
from tidewheel.worker.loop_watch import Stuck
from tidewheel.worker.members import Member


def blames(member: Member) -> bool:
    """Tell whether the death of a child is held against what it ran: not if its lease or its own will ended it."""
    return not member.fenced and not member.page.excused


def ends_of(member: Member, owned: Sequence[Run], rand: float) -> list[Outcome]:
    """Return the outcomes of runs that may have killed their process: the one that had the loop, or else all under way.

    Those that had not begun, or had ended and only wait for their outcome to be stored, are not to blame for anything.
    """
    if member.stuck is not None and member.stuck.run is not None:
        late = Ended(end=End.TIMEOUT, message=f"{TOO_LONG} and did not stop; its runner was ended")
        blamed = [run for run in owned if run.job_id == member.stuck.run.job_id]
        return [outcome_of(run, Ended(end=End.STOPPED) if run.cancelling else late, rand) for run in blamed]
    current = member.page.blamed or member.page.current
    under_way = member.page.under_way
    suspects = [run for run in owned if current is not None and run.job_id == current.job_id] or [
        run for run in owned if (run.job_id, run.token) in under_way
    ]
    ended = Ended(end=End.SIGNAL, message=f"its process {_how(member.stuck, member.exit_code or 0)}")
    return [outcome_of(run, ended, rand) for run in suspects]


def _how(stuck: Stuck | None, exit_code: int) -> str:
    return f"ended with {exit_words(exit_code)}" if stuck is None else "did not answer any more and was ended"


def exit_words(code: int) -> str:
    """Say how a process ended."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:  # those for real-time use have no names
        return f"signal {-code}"
