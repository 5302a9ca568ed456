"""A slow cron that walks the time line and looks at the wall clock, as Debian's daemon does.

It shares nothing with `tidewheel.triggers`: its own matcher of fields, no search for changes, no cronsim. Like the
daemon it keeps a virtual clock, the latest wall time it has dealt with, and compares it with the wall at each step.
"""

import calendar
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from math import gcd
from typing import NamedTuple
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
NOTHING = timedelta(0)
THREE_HOURS = timedelta(hours=3)

LOWEST = (0, 0, 1, 1, 0)
HIGHEST = (59, 23, 31, 12, 7)
MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]


def number(text: str) -> int:
    if text in MONTHS:
        return MONTHS.index(text) + 1
    return WEEKDAYS.index(text) if text in WEEKDAYS else int(text)


def term_has(term: str, value: int, field: int) -> bool:
    """Match one term of a list: ``*``, ``5``, ``1-5``, each with or without a step."""
    term, _, step = term.partition("/")
    low, _, high = term.partition("-")
    if term == "*":
        first, last = LOWEST[field], HIGHEST[field]
    else:
        first = number(low)
        last = number(high) if high else HIGHEST[field] if step else first
    return first <= value <= last and (value - first) % int(step or 1) == 0


def field_has(text: str, value: int, field: int) -> bool:
    return any(term_has(term, value, field) for term in text.split(","))


def last_day(wall: datetime) -> int:
    return calendar.monthrange(wall.year, wall.month)[1]


def day_of_month_fits(text: str, wall: datetime) -> bool:
    for term in text.split(","):
        if term == "L":
            fits = wall.day == last_day(wall)
        elif term == "LW":
            fits = wall.day == max(
                day
                for day in range(1, last_day(wall) + 1)
                if calendar.weekday(wall.year, wall.month, day) < calendar.SATURDAY
            )
        else:
            fits = term_has(term, wall.day, 2)
        if fits:
            return True
    return False


def weekday_fits(text: str, wall: datetime) -> bool:
    today = wall.isoweekday() % 7
    for term in text.split(","):
        name, _, nth = term.partition("#")
        if nth:
            fits = number(name) % 7 == today and (wall.day - 1) // 7 + 1 == int(nth)
        elif term.endswith("L"):
            fits = number(term[:-1]) % 7 == today and wall.day + 7 > last_day(wall)
        else:
            # Sunday is both 0 and 7.
            fits = any(term_has(term, value, 4) for value in ([0, 7] if today == 0 else [today]))
        if fits:
            return True
    return False


def day_fits(day: str, month: str, weekday: str, wall: datetime) -> bool:
    if not field_has(month, wall.month, 3):
        return False
    both = (day_of_month_fits(day, wall), weekday_fits(weekday, wall))
    return all(both) if day.startswith("*") or weekday.startswith("*") else any(both)


class Oracle:
    """One expression; what it found about minutes and days is remembered, to be slow but not hopeless."""

    def __init__(self, expression: str) -> None:
        self.minute, self.hour, self.day, self.month, self.weekday = expression.upper().split()
        self.fixed = self.minute[0] != "*" and self.hour[0] != "*"
        self.minutes = [field_has(self.minute, minute, 0) for minute in range(60)]
        self.hours = [field_has(self.hour, hour, 1) for hour in range(24)]
        self.days: dict[tuple[int, int, int], bool] = {}

    def matches(self, wall: datetime) -> bool:
        if wall.second or not self.minutes[wall.minute] or not self.hours[wall.hour]:
            return False
        date = (wall.year, wall.month, wall.day)
        if date not in self.days:
            self.days[date] = day_fits(self.day, self.month, self.weekday, wall)
        return self.days[date]

    def fires(self, steps: list["Step"]) -> Iterator[datetime]:
        """Yield the instants at which the expression fires, in the order of the walk."""
        virtual = steps[0].wall - MINUTE
        for instant, wall, jump in steps:
            if abs(jump) >= THREE_HOURS or not self.fixed:
                virtual = wall - MINUTE
            elif jump > NOTHING and any(map(self.matches, walls_before(wall, jump))):
                yield instant
                virtual = wall
            if wall > virtual:
                virtual = wall
                if self.matches(wall):
                    yield instant


class Step(NamedTuple):
    """One look at the wall clock."""

    instant: datetime
    wall: datetime
    jump: timedelta
    """How far the clock was set since the last look."""


def walls_before(wall: datetime, skipped: timedelta) -> Iterator[datetime]:
    """Yield the skipped wall times; those that are no whole minute do not match anyhow."""
    skipped_wall = wall - skipped
    while skipped_wall < wall:
        yield skipped_wall
        skipped_wall += SECOND if skipped_wall.second else MINUTE


def walk(zone: ZoneInfo, since: datetime, until: datetime) -> list[Step]:
    """Look at the wall clock each minute of [since - 4 h, until], so that a change before the window is known.

    Offsets that are no whole minutes (Africa/Monrovia before 1972) ask for a finer step.
    """
    instant, last = since.replace(second=0, microsecond=0) - timedelta(hours=4), until
    offsets = [moment.astimezone(zone).utcoffset() or NOTHING for moment in (instant, last)]
    step = timedelta(seconds=gcd(60, *(offset // SECOND for offset in offsets)))
    steps: list[Step] = []
    foreseen = instant.astimezone(zone).replace(tzinfo=None)
    while instant <= last:
        wall = instant.astimezone(zone).replace(tzinfo=None)
        steps.append(Step(instant, wall, wall - foreseen))
        instant, foreseen = instant + step, wall + step
    return steps


def expected(expression: str, zone: ZoneInfo, since: datetime, until: datetime) -> list[datetime]:
    """Return all instants in (since, until] at which the expression fires."""
    return within(since, until, Oracle(expression).fires(walk(zone, since, until)))


def within(since: datetime, until: datetime, fires: Iterator[datetime]) -> list[datetime]:
    return [instant for instant in fires if since < instant <= until]


def offset_changes(zone: ZoneInfo, first_year: int = 1970, last_year: int = 2037) -> list[datetime]:
    """Return the first instant of each offset between the years; found by looking at every fifth day, then closer."""
    found = []
    instant, end = datetime(first_year, 1, 1, tzinfo=UTC), datetime(last_year + 1, 1, 1, tzinfo=UTC)
    offset = instant.astimezone(zone).utcoffset()
    while instant < end:
        later = instant + timedelta(days=5)
        if later.astimezone(zone).utcoffset() != offset:
            offset = later.astimezone(zone).utcoffset()
            found.append(_closer(zone, instant, later))
        instant = later
    return found


def _closer(zone: ZoneInfo, low: datetime, high: datetime) -> datetime:
    for step in (24 * 60 * MINUTE, 240 * MINUTE, 30 * MINUTE, 5 * MINUTE, MINUTE, 10 * SECOND, SECOND):
        while (low + step).astimezone(zone).utcoffset() == low.astimezone(zone).utcoffset() and low + step < high:
            low += step
    return low + SECOND
