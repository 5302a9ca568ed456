"""How many jobs ended, how late they began and how long they ran: by time, queue, kind and outcome."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_instant, check_name
from tidewheel.model.histogram import Histogram
from tidewheel.model.ids import EPOCH
from tidewheel.model.states import State

MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)
KEEP_MINUTES: Final = timedelta(days=2)
"""For how long the minutes of an hour can be told apart."""
DROP_MINUTES: Final = KEEP_MINUTES + HOUR
"""When nobody reads them any more, by whichever clock."""
KEEP_STATISTICS: Final = timedelta(days=400)
MOST_POINTS: Final = 2000
"""How many steps there may be."""
MOST_ROWS: Final = 30_000
"""How many points an answer has at most: of so many steps, queues, kinds and outcomes."""


class StatFilter(msgspec.Struct, frozen=True, kw_only=True):
    """What to add up."""

    since: datetime
    before: datetime
    step: timedelta = MINUTE
    """How much time is one point."""
    tenant: str | None = None
    kind: str | None = None
    queue: str | None = None


class StatPoint(msgspec.Struct, frozen=True, kw_only=True):
    """What ended within one step."""

    at: datetime
    """When it begins."""
    queue: str
    kind: str
    state: State
    jobs: int
    delays: Histogram
    """From when a job might have started to when its last run did; of those that ran."""
    runs: Histogram
    """How long the last run took."""


class StatRow(NamedTuple):
    """The columns of every statement that reads numbers, in this order."""

    at: datetime
    queue: str
    kind: str
    state: str
    jobs: int
    delays: Histogram
    runs: Histogram


class Spans(NamedTuple):
    """Which rows to read: of hours and of minutes, each from one instant to before another."""

    hours_since: datetime
    hours_before: datetime
    minutes_since: datetime
    minutes_before: datetime


def spans_of(where: StatFilter, now: datetime) -> Spans:
    """Return which rows have it: hours for steps of hours and for what is long ago, else minutes."""
    if not where.step % HOUR:
        return Spans(begin_of(where.since, HOUR), where.before, where.before, where.before)
    border = begin_of(now - KEEP_MINUTES, HOUR)
    return Spans(where.since, min(where.before, border), max(where.since, border), where.before)


def check_stat_filter(where: StatFilter) -> StatFilter:
    """Refuse what makes no sense or too many points; return it from and to the ends of whole minutes, or hours."""
    since, before = check_instant("since", where.since), check_instant("before", where.before)
    if before <= since:
        raise Invalid("before", "must be after the beginning")
    if where.step < MINUTE or where.step % MINUTE:
        raise Invalid("step", "must be whole minutes")
    if (before - since) / where.step > MOST_POINTS:
        raise Invalid("step", f"must be longer: there would be more than {MOST_POINTS} points")
    for field, name in (("kind", where.kind), ("queue", where.queue)):
        if name is not None:
            check_name(field, name)
    # What is folded has no finer time, so what is not folded yet must not be cut any finer either.
    unit = MINUTE if where.step % HOUR else HOUR
    return msgspec.structs.replace(where, since=begin_of(since, unit), before=end_of(before, unit))


def begin_of(instant: datetime, step: timedelta) -> datetime:
    """Return when the step begins in which an instant lies."""
    return instant - (instant - EPOCH) % step


def end_of(instant: datetime, step: timedelta) -> datetime:
    """Return the instant, if a step begins at it, or else when the next one does."""
    return instant + (EPOCH - instant) % step


class Sums:
    """Adds up numbers by step, queue, kind and outcome."""

    def __init__(self, step: timedelta) -> None:
        self._step = step
        self._sums: dict[tuple[datetime, str, str, str], tuple[list[int], Counter[int], Counter[int]]] = {}

    def add(self, rows: Iterable[StatRow]) -> None:
        """Add rows. Raises Invalid as soon as there are more points than can be answered."""
        for row in rows:
            key = (begin_of(row.at, self._step), row.queue, row.kind, row.state)
            jobs, delays, runs = self._sums.setdefault(key, ([0], Counter(), Counter()))
            jobs[0] += row.jobs
            delays.update(row.delays)
            runs.update(row.runs)
            if len(self._sums) > MOST_ROWS:
                told = f"there would be more than {MOST_ROWS} points"
                raise Invalid("since", f"{told}: ask for less time, a longer step, or one kind or queue")

    def points(self) -> list[StatPoint]:
        """Return what was added up, in this order."""
        return [
            StatPoint(at=at, queue=queue, kind=kind, state=State(state), jobs=jobs, delays=delays, runs=runs)
            for (at, queue, kind, state), ([jobs], delays, runs) in sorted(self._sums.items(), key=lambda item: item[0])
        ]
