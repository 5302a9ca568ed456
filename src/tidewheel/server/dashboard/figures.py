"""Figures over time, from the statistics that are rolled up; what is live is told by `pulse`."""

import heapq
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec

from tidewheel.model.states import ACTIVE, State
from tidewheel.server.dashboard.desk import Desk
from tidewheel.server.dashboard.period import Window
from tidewheel.server.problems import Refused
from tidewheel.store.base import MOST_FRESH

LATELY: Final = timedelta(minutes=5)
"""Over how long delays are told."""
FAILED: Final = frozenset({State.DEAD, State.EXPIRED})
MOST_KINDS: Final = 100
"""How many kinds are listed at most."""
_MINUTE: Final = 60
_SHARES: Final = {"50": 0.5, "95": 0.95, "99": 0.99}


@dataclass(slots=True)
class Sum:
    """What ended, added up."""

    succeeded: int = 0
    failed: int = 0
    other: int = 0
    delays: Counter[float] = field(default_factory=Counter)
    """How many waited at most so many seconds from when they might have started until they did."""
    runs: Counter[float] = field(default_factory=Counter)
    """How many ran for at most so many seconds."""

    @property
    def jobs(self) -> int:
        """How many ended, in whichever way."""
        return self.succeeded + self.failed + self.other

    @property
    def failure_rate(self) -> float | None:
        """Which share of all that ended failed; None if nothing ended."""
        return self.failed / self.jobs if self.jobs else None

    def add(self, point: Any) -> None:
        """Add what ended within a step."""
        if point.outcome in FAILED:
            self.failed += point.jobs
        elif point.outcome is State.SUCCEEDED:
            self.succeeded += point.jobs
        else:
            self.other += point.jobs
        for buckets, counted in ((point.start_delay.buckets, self.delays), (point.run_time.buckets, self.runs)):
            for bucket in buckets:
                counted[bucket.seconds] += bucket.count


class Delays(NamedTuple):
    """How long jobs waited from when they might have started until they did, in seconds."""

    p50: float | None
    p99: float | None


class KindRow(NamedTuple):
    """The numbers of a kind, or of all."""

    kind: str
    jobs: int
    failed: int
    failure_rate: float | None
    delay50: float | None
    delay95: float | None
    run50: float | None
    run95: float | None


class History(NamedTuple):
    """All that a page tells of a period."""

    series: str
    """The columns of the charts, as JSON."""
    total: KindRow
    failing: list[KindRow]
    """The kinds that failed most."""
    busy: list[KindRow]
    """The kinds that ended most."""
    kinds: int
    """How many there are, listed or not."""


def is_counted_at_once(counted: Any) -> bool:
    """Tell whether active jobs were counted when they were asked for, or some time before because they are so many."""
    active = sum(queue.jobs.get(state, 0) for queue in counted.queues for state in ACTIVE)
    return counted.as_of is not None and active <= MOST_FRESH


async def delays_since(desk: Desk, since: datetime) -> Delays:
    """Return the delays of all that ended since, which are not known if there are more kinds than can be added up."""
    try:
        found = await desk.ask("get_statistics", query={"from": since.isoformat(), "step": _MINUTE})
    except Refused as refused:
        if refused.code != "bad-parameter":
            raise
        return Delays(None, None)
    return delays_of(found.points, since)


def delays_of(points: Iterable[Any], since: datetime) -> Delays:
    """Return the delays of all that ended since."""
    total = Sum()
    for point in points:
        if point.at >= since:
            total.add(point)
    return Delays(quantile(total.delays, 0.5), quantile(total.delays, 0.99))


def quantile(counted: Counter[float], share: float) -> float | None:
    """Return how many seconds at most so large a share took."""
    left = share * counted.total()
    for seconds in sorted(counted):
        left -= counted[seconds]
        if left <= 0:
            return seconds
    return None


def history_of(points: Iterable[Any], window: Window) -> History:
    """Add up what ended within a period: by step for the charts, by kind for the table."""
    total, steps, kinds = Sum(), dict[datetime, Sum](), dict[str, Sum]()
    for point in points:
        for each in (total, steps.setdefault(point.at, Sum()), kinds.setdefault(point.kind, Sum())):
            each.add(point)
    failing = heapq.nsmallest(MOST_KINDS, kinds, key=lambda kind: (-kinds[kind].failed, -kinds[kind].jobs, kind))
    busy = heapq.nsmallest(MOST_KINDS, kinds, key=lambda kind: (-kinds[kind].jobs, kind))
    return History(
        series=msgspec.json.encode(_columns(steps, window)).decode(),
        total=_row("", total),
        failing=[_row(kind, kinds[kind]) for kind in failing],
        busy=[_row(kind, kinds[kind]) for kind in busy],
        kinds=len(kinds),
    )


def _columns(steps: dict[datetime, Sum], window: Window) -> dict[str, Any]:
    """Return a value for each step, and null where nothing was recorded: a gap is no zero."""
    count = round((window.before - window.since) / window.step)
    moments = [window.since + number * window.step for number in range(count)]
    sums = [steps.get(moment) for moment in moments]
    columns: dict[str, Any] = {
        "step": window.step.total_seconds(),
        "since": window.since.timestamp(),
        "before": window.before.timestamp(),
        "at": [moment.timestamp() for moment in moments],
    }
    for name in ("succeeded", "failed", "other", "failure_rate"):
        columns[name] = [None if each is None else getattr(each, name) for each in sums]
    for name, share in _SHARES.items():
        columns[f"delay{name}"] = [None if each is None else quantile(each.delays, share) for each in sums]
        columns[f"run{name}"] = [None if each is None else quantile(each.runs, share) for each in sums]
    return columns


def _row(kind: str, counted: Sum) -> KindRow:
    return KindRow(
        kind=kind,
        jobs=counted.jobs,
        failed=counted.failed,
        failure_rate=counted.failure_rate,
        delay50=quantile(counted.delays, 0.5),
        delay95=quantile(counted.delays, 0.95),
        run50=quantile(counted.runs, 0.5),
        run95=quantile(counted.runs, 0.95),
    )
