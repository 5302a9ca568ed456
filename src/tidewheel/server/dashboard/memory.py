"""What was read for charts a moment ago, so that open pages do not add up thirty days again and again.

Each process keeps it for some of what was looked at last: by tenant, time, queue and kind.
"""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from tidewheel.clock import Clock
from tidewheel.errors import Invalid
from tidewheel.server.dashboard.desk import Desk
from tidewheel.server.dashboard.figures import History, history_of
from tidewheel.server.dashboard.period import Period, Window
from tidewheel.server.problems import Refused

MOST_KEPT: Final = 64
MOST_POINTS: Final = 20_000
"""How many points are added up for one page: of so many steps, queues, kinds and outcomes."""
FIRST_STEPS: Final = 4
TOO_MUCH: Final = "There is too much to add up for {told}: choose less time, a queue or a kind."


class _TooMuch(Exception):
    """There are more points than are added up for a page."""


class Reading(NamedTuple):
    """What was read, or why nothing was."""

    as_of: datetime
    history: History
    wrong: str = ""


@dataclass(slots=True)
class _Kept:
    reading: Reading
    good_until: float
    is_read_anew: bool = False


class Memory:
    """Reads the history of a period, or remembers it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: OrderedDict[tuple[Any, ...], _Kept] = OrderedDict()

    async def look(self, desk: Desk, period: Period, now: datetime) -> Reading:
        """Return what ended in a period. While one visitor reads it anew, others are told what was there before."""
        desk.check("get_statistics")
        key = (desk.visitor.tenant, *period[:4])
        kept = self._kept.get(key)
        if kept is None:
            kept = _Kept(await _read(desk, period, now), self._clock.monotonic() + period.range.fresh)
        self._keep(key, kept)
        if kept.good_until <= self._clock.monotonic() and not kept.is_read_anew:
            kept.is_read_anew = True
            try:
                kept.reading = await _read(desk, period, now)
                kept.good_until = self._clock.monotonic() + period.range.fresh
            finally:
                kept.is_read_anew = False
        return kept.reading

    def _keep(self, key: tuple[Any, ...], kept: _Kept) -> None:
        self._kept[key] = kept
        self._kept.move_to_end(key)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)


async def _read(desk: Desk, period: Period, now: datetime) -> Reading:
    """Read by the finest step that is not too much."""
    windows = period.windows(now)
    for window in windows:
        try:
            return Reading(now, history_of(await _points(desk, period, window), window))
        except _TooMuch:
            continue
    return Reading(now, history_of((), windows[-1]), TOO_MUCH.format(told=period.told))


async def _points(desk: Desk, period: Period, window: Window) -> list[Any]:
    """Read the last steps first and then more and more, so that too much is known before much of it is read."""
    whole = (window.before - window.since) // window.step
    points, done, steps = list[Any](), 0, min(FIRST_STEPS, whole)
    while steps:
        before = window.before - done * window.step
        points += await _part(desk, period, Window(before - steps * window.step, before, window.step))
        done, steps = done + steps, min(2 * steps, whole - done - steps)
        if len(points) * (done + steps) / done > MOST_POINTS:
            raise _TooMuch
    return points


async def _part(desk: Desk, period: Period, window: Window) -> list[Any]:
    asked = {
        "from": window.since.isoformat(),
        "to": window.before.isoformat(),
        "step": int(window.step.total_seconds()),
        "queue": period.queue,
        "kind": period.kind,
    }
    try:
        found: list[Any] = (await desk.ask("get_statistics", query=asked)).points
    except (Refused, Invalid) as error:
        if isinstance(error, Refused) and error.code != "bad-parameter":
            raise
        raise _TooMuch from error
    return found
