"""How late jobs began, apart for quiet times and for times of fault."""

from collections.abc import Iterator, Sequence

import msgspec

from harness.checker.history import History
from harness.checker.records import Fault


class Lateness(msgspec.Struct, frozen=True, kw_only=True):
    """Percentiles of the time from due to the first start, in seconds."""

    jobs: int
    p50: float
    p95: float
    p99: float
    most: float


def lateness(history: History, *, settling: float = 5.0) -> dict[str, Lateness]:
    """Return `quiet` and `faulted` lateness; faulted is what was due during a fault or `settling` seconds after it."""
    windows = list(_windows(history, settling))
    late: dict[str, list[float]] = {"quiet": [], "faulted": []}
    for job, final in history.finals.items():
        if runs := history.executions.get(job):
            faulted = any(begin <= final.due <= end for begin, end in windows)
            late["faulted" if faulted else "quiet"].append(max(0.0, runs[0].first - final.due))
    return {name: percentiles(values) for name, values in late.items() if values}


def _windows(history: History, settling: float) -> Iterator[tuple[float, float]]:
    """Yield when faults were under way; one that was never called over lasts for ever."""
    begun: dict[str, float] = {}
    for fault in sorted(history.of(Fault), key=lambda fault: fault.t):
        if fault.phase == "begin":
            begun.setdefault(fault.name, fault.t)
        elif fault.name in begun:
            yield begun.pop(fault.name), fault.t + settling
    for begin in begun.values():
        yield begin, float("inf")


def percentiles(values: Sequence[float]) -> Lateness:
    """Return percentiles by the nearest rank."""
    ranked = sorted(values)

    def at(share: float) -> float:
        return ranked[min(len(ranked) - 1, int(share * len(ranked)))]

    return Lateness(jobs=len(ranked), p50=at(0.5), p95=at(0.95), p99=at(0.99), most=ranked[-1])
