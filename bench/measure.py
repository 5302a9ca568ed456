"""Taking times: drains, rounds of A and B side by side, and ratios of them."""

import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

Figures = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """How long it took to claim and complete some jobs, in seconds."""

    jobs: int
    wall: float
    claiming: float = 0.0
    settling: float = 0.0
    """0 where the two are not told apart."""
    cpu: float
    """CPU time of this process, or of the worker that did it."""
    server_cpu: float
    """CPU time of the database server, 0 where there is none or it cannot be seen."""

    @property
    def rate(self) -> float:
        return self.jobs / self.wall

    def per_job(self, seconds: float) -> float:
        """Return microseconds a job."""
        return 1e6 * seconds / self.jobs


class Stopwatch:
    """Adds up the time of two steps that alternate."""

    def __init__(self, server_cpu: Callable[[], float]) -> None:
        self._server_cpu = server_cpu
        self._server_before = server_cpu()
        self._begun, self._cpu = time.perf_counter(), time.process_time()
        self._last = self._begun
        self.claiming = self.settling = 0.0

    def claimed(self) -> None:
        self.claiming += self._lap()

    def settled(self) -> None:
        self.settling += self._lap()

    def stop(self, jobs: int) -> Drained:
        wall, cpu = time.perf_counter() - self._begun, time.process_time() - self._cpu
        return Drained(
            jobs=jobs,
            wall=wall,
            claiming=self.claiming,
            settling=self.settling,
            cpu=cpu,
            server_cpu=self._server_cpu() - self._server_before,
        )

    def _lap(self) -> float:
        last, self._last = self._last, time.perf_counter()
        return self._last - last


async def side_by_side(
    rounds: int, one: Callable[[], Awaitable[Drained]], other: Callable[[], Awaitable[Drained]], label: str
) -> tuple[list[Drained], list[Drained]]:
    """Measure A and B in turns (A B, B A, A B, …), so that what disturbs the machine disturbs both."""
    a, b = await in_turns(rounds, (one, other), label)
    return a, b


async def in_turns(
    rounds: int, sides: Sequence[Callable[[], Awaitable[Drained]]], label: str
) -> tuple[list[Drained], ...]:
    """Measure each side once a round, there and back (A B C, C B A, …)."""
    taken: tuple[list[Drained], ...] = tuple([] for _ in sides)
    for number in range(rounds):
        order = list(zip(taken, sides, strict=True))
        for drains, side in order if number % 2 == 0 else reversed(order):
            drains.append(await side())
        say(f"{label} {number + 1}/{rounds}: {' against '.join(_short(drains[-1]) for drains in taken)}")
    return taken


def compare(name: str, a: Sequence[Drained], b: Sequence[Drained]) -> Figures:
    """Return the median of the rounds' ratios, how far they spread, and the rates behind them."""
    ratios = [one.rate / other.rate for one, other in zip(a, b, strict=True)]
    return {
        name: round(statistics.median(ratios), 3),
        f"{name}_spread": [round(min(ratios), 3), round(max(ratios), 3)],
        f"{name}_per_s": [median_rate(a), median_rate(b)],
        f"{name}_cpu_us": [median_cpu(a), median_cpu(b)],
    }


def _short(drained: Drained) -> str:
    parts = (drained.claiming, drained.settling, drained.cpu, drained.server_cpu)
    steps = "+".join(f"{drained.per_job(seconds):.0f}" for seconds in parts[:2] if seconds) or "…"
    cpu = "+".join(f"{drained.per_job(seconds):.0f}" for seconds in parts[2:])
    return f"{drained.rate:,.0f} jobs/s ({steps} µs, CPU {cpu})"


def median_rate(drains: Sequence[Drained]) -> int:
    return round(statistics.median(drained.rate for drained in drains))


def median_cpu(drains: Sequence[Drained]) -> float:
    """Return microseconds of CPU a job, ours and the server's: what other programs do disturbs this least."""
    return round(statistics.median(drained.per_job(drained.cpu + drained.server_cpu) for drained in drains), 1)


def spread(rates: Sequence[float]) -> list[int]:
    return [round(min(rates)), round(max(rates))]


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def say(text: str) -> None:
    """Tell how far it is; the figures alone go to stdout."""
    print(f"  {text}", file=sys.stderr, flush=True)
