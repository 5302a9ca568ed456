"""Figures over time, from the statistics that are rolled up by the minute; what is live is told by `pulse`."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec

from tidewheel.model.states import ACTIVE, State
from tidewheel.server.dashboard.desk import Desk
from tidewheel.store.base import MOST_FRESH

LATELY: Final = timedelta(minutes=5)
"""Over how long delays are told."""
PAST: Final = timedelta(hours=1)
"""How much of the past charts begin with."""
FAILED: Final = frozenset({State.DEAD, State.EXPIRED})
_MINUTE: Final = 60


class Delays(NamedTuple):
    """How long jobs waited from when they might have started until they did, in seconds."""

    p50: float | None
    p99: float | None


def is_counted_at_once(counted: Any) -> bool:
    """Tell whether active jobs were counted when they were asked for, or some time before because they are so many."""
    active = sum(queue.jobs.get(state, 0) for queue in counted.queues for state in ACTIVE)
    return counted.as_of is not None and active <= MOST_FRESH


async def points_since(desk: Desk, since: datetime) -> Sequence[Any]:
    """Return the numbers of what ended, by the minute."""
    found = await desk.ask("get_statistics", query={"from": since.isoformat(), "step": _MINUTE})
    points: Sequence[Any] = found.points
    return points


def delays_of(points: Iterable[Any], since: datetime) -> Delays:
    """Return the delays of all that ended since."""
    counted: Counter[float] = Counter()
    for point in points:
        if point.at >= since:
            counted.update({bucket.seconds: bucket.count for bucket in point.start_delay.buckets})
    return Delays(_quantile(counted, 0.5), _quantile(counted, 0.99))


def _quantile(counted: Counter[float], share: float) -> float | None:
    left = share * counted.total()
    for seconds in sorted(counted):
        left -= counted[seconds]
        if left <= 0:
            return seconds
    return None


def history_of(points: Iterable[Any], now: datetime) -> str:
    """Return what the charts begin with, as JSON: jobs a second by the minute, of minutes that are over."""
    ended: Counter[datetime] = Counter()
    failed: Counter[datetime] = Counter()
    for point in points:
        ended[point.at] += point.jobs
        failed[point.at] += point.jobs if point.outcome in FAILED else 0
    over = [at for at in sorted(ended) if at + timedelta(seconds=_MINUTE) <= now]
    told = [{"at": at.timestamp(), "rate": ended[at] / _MINUTE, "failing": failed[at] / _MINUTE} for at in over]
    return msgspec.json.encode(told).decode()
