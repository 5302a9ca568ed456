"""Rules about what runs at once, in which order, and under which token."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final as Constant

from harness.checker.history import History, Violation
from harness.checker.intervals import Execution, most_at_once, overlaps
from harness.checker.records import Cap, Final

GIVEN_UP: Constant = ("fatal", "unstorable")
"""Why a job may be dead although its policy would allow another attempt."""


def concurrent(history: History) -> Iterator[Violation]:
    """Two executions of a job are never alive at once: certain if each left evidence while the other lived."""
    for job, runs in history.executions.items():
        for old, new in overlaps(runs, lambda run: run.last):
            yield Violation("CONCURRENT", job, _at_once(old, new, old.last - new.first))
        for run in runs:
            if run.alone is False:
                yield Violation("CONCURRENT", job, f"token {run.token} began while another held the job's lock")


def maybe_concurrent(history: History) -> Iterator[Violation]:
    """Nor can two have been alive at once without leaving evidence of it.

    A start that got the job's lock proves that all before it were dead, which is more exact than the instant at which
    their death was noticed.
    """
    for job, runs in history.executions.items():
        certain = {(old.run, new.run) for old, new in overlaps(runs, lambda run: run.last)}
        for old, new in overlaps(runs, lambda run: run.upto):
            if new.alone is None and (old.run, new.run) not in certain:
                yield Violation("MAYBE_CONCURRENT", job, _at_once(old, new, old.upto - new.first))


def _at_once(old: Execution, new: Execution, seconds: float) -> str:
    return f"tokens {old.token} and {new.token} for {seconds:.3f} s"


def token_reused(history: History) -> Iterator[Violation]:
    """No two executions of a job have the same token."""
    for job, runs in history.executions.items():
        tokens = [run.token for run in runs]
        for token in sorted({token for token in tokens if tokens.count(token) > 1}):
            yield Violation("TOKEN_REUSED", job, f"token {token} was used {tokens.count(token)} times")


def token_order(history: History) -> Iterator[Violation]:
    """Tokens rise with the starts."""
    for job, runs in history.executions.items():
        for old, new in pairwise(runs):
            if new.token < old.token:
                yield Violation("TOKEN_ORDER", job, f"token {new.token} began after {old.token}")


def wrong_winner(history: History) -> Iterator[Violation]:
    """The accepted result is that of the execution with the highest token, and it ended well."""
    for job, final in history.finals.items():
        runs = history.executions.get(job, [])
        if final.state != "succeeded" or not any(run.ok for run in runs):
            continue  # FALSE_SUCCESS looks at those
        winner = history.winner(final)
        highest = max(run.token for run in runs)
        if winner is None or not winner.ok:
            yield Violation("WRONG_WINNER", job, f"token {final.token} won and did not end well")
        elif highest > final.token:
            yield Violation("WRONG_WINNER", job, f"token {final.token} won though {highest} had been granted")
        elif final.result_token not in (None, final.token):
            yield Violation("WRONG_WINNER", job, f"token {final.token} won with the result of {final.result_token}")


def early(history: History) -> Iterator[Violation]:
    """Nothing starts before it is due."""
    for job, final in history.finals.items():
        for run in history.executions.get(job, ()):
            if run.first < final.due - history.clock_error:
                yield Violation("EARLY", job, f"token {run.token} began {final.due - run.first:.6f} s early")


def attempts(history: History) -> Iterator[Violation]:
    """What the record of a job says of its attempts covers what was seen, and its policy was used up before it died."""
    for job, final in history.finals.items():
        seen = len({run.token for run in history.executions.get(job, ())})
        if seen > final.token:
            yield Violation("ATTEMPTS", job, f"was seen to run {seen} times under {final.token} tokens")
        if final.attempts > final.token or final.failures + final.losses > final.token:
            yield Violation("ATTEMPTS", job, f"records more attempts than its {final.token} tokens")
        if final.failures > final.max_attempts:
            yield Violation("ATTEMPTS", job, f"failed {final.failures} times of {final.max_attempts} allowed")
        if final.state == "dead" and not _used_up(history, final):
            spent = f"{final.failures} failures of {final.max_attempts} and {final.losses} losses"
            yield Violation("ATTEMPTS", job, f"is dead ({final.reason}) after {spent}")


def _used_up(history: History, final: Final) -> bool:
    return final.failures >= final.max_attempts or final.losses >= history.max_losses or final.reason in GIVEN_UP


def limit(history: History) -> Iterator[Violation]:
    """No more jobs of a limit key run at once than it allows."""
    for cap in history.of(Cap):
        busiest = most_at_once(_under(history, cap.key))
        if busiest > cap.most:
            yield Violation("LIMIT", cap.key, f"{busiest} at once, {cap.most} allowed")


def _under(history: History, key: str) -> Sequence[Execution]:
    jobs = [job for job, final in history.finals.items() if key in final.limit_keys]
    return [run for job in jobs for run in history.executions.get(job, ())]


def dag(history: History) -> Iterator[Violation]:
    """A child begins after its parents have ended."""
    for job, final in history.finals.items():
        runs = history.executions.get(job, [])
        for parent in final.parents if runs else ():
            lasted = max((run.last for run in history.executions.get(parent, ())), default=None)
            if lasted is None:
                yield Violation("DAG", job, f"ran, and its parent {parent} never did")
            elif runs[0].first < lasted:
                yield Violation("DAG", job, f"began {lasted - runs[0].first:.3f} s before its parent {parent} ended")
