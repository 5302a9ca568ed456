"""When each execution was alive, certainly and possibly, and which of them were so at once."""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Final

import msgspec

from harness.checker.records import Death, Witness

FOR_EVER: Final = float("inf")


class Execution(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a body, as its own records show it.

    It was certainly alive from `first` to `last`, and possibly until `upto`: its end, else the death of its process,
    else for ever.
    """

    job: str
    token: int
    run: str
    first: float
    last: float
    upto: float
    started: bool
    alone: bool | None = None
    ended: float | None = None
    ok: bool = False


def executions(witness: Iterable[Witness], deaths: Mapping[int, Sequence[float]]) -> list[Execution]:
    """Put the records of each execution together; `deaths` are the instants at which each pid was seen dead."""
    grouped: dict[tuple[str, int, str], list[Witness]] = {}
    for record in witness:
        grouped.setdefault((record.job, record.token, record.run), []).append(record)
    return [_execution(records, deaths) for records in grouped.values()]


def deaths_by_pid(deaths: Iterable[Death]) -> dict[int, list[float]]:
    """Return the sorted instants at which each pid was seen dead; a number may be used again."""
    by_pid: dict[int, list[float]] = {}
    for death in deaths:
        by_pid.setdefault(death.pid, []).append(death.t)
    return {pid: sorted(instants) for pid, instants in by_pid.items()}


def _execution(records: Sequence[Witness], deaths: Mapping[int, Sequence[float]]) -> Execution:
    first, last = min(record.t for record in records), max(record.t for record in records)
    start = next((record for record in records if record.event == "start"), None)
    end = next((record for record in records if record.event == "end"), None)
    return Execution(
        job=records[0].job,
        token=records[0].token,
        run=records[0].run,
        first=first,
        last=last,
        upto=last if end is not None else max(_death_of(pid, last, deaths) for pid in _pids(records)),
        started=start is not None,
        alone=None if start is None else start.alone,
        ended=None if end is None else end.t,
        ok=end is not None and end.ok is True,
    )


def _pids(records: Iterable[Witness]) -> set[int]:
    return {record.pid for record in records}


def _death_of(pid: int, last: float, deaths: Mapping[int, Sequence[float]]) -> float:
    """Return when the process that wrote something at `last` was dead, and not one that had its number before."""
    return next((instant for instant in deaths.get(pid, ()) if instant >= last), FOR_EVER)


def overlaps(runs: Iterable[Execution], until: Callable[[Execution], float]) -> list[tuple[Execution, Execution]]:
    """Return the pairs that were alive at once, earlier one first: a sweep over the starts, the live ones in a heap.

    Touching is not overlapping: one may begin at the very instant at which the other was last seen.
    """
    pairs: list[tuple[Execution, Execution]] = []
    live: list[tuple[float, int, Execution]] = []
    number = count()
    for new in sorted(runs, key=lambda run: (run.first, until(run))):
        while live and live[0][0] <= new.first:
            heapq.heappop(live)
        pairs += [(old, new) for _, _, old in live]
        heapq.heappush(live, (until(new), next(number), new))
    return pairs


def most_at_once(runs: Iterable[Execution]) -> int:
    """Return how many were certainly alive at the busiest instant."""
    steps = [step for run in runs for step in ((run.first, 1), (run.last, -1))]
    now = most = 0
    for _, step in sorted(steps):  # at the same instant ends come first: touching is not overlapping
        now += step
        most = max(most, now)
    return most
