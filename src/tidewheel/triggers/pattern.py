"""Five cron fields as a pattern over wall clocks, read and walked by cronsim.

cronsim is only ever given naive datetimes. Given aware ones it goes wrong around offset changes: see
`tidewheel.triggers.clock_changes`, which lays the pattern over the real time line.
"""

import copy
from calendar import monthrange
from collections.abc import Iterator
from datetime import date, datetime
from functools import lru_cache
from itertools import product
from typing import Final

from cronsim import CronSim, CronSimError
from cronsim.cronsim import Field

from tidewheel.errors import Invalid

SOME_DAY: Final = datetime(2000, 1, 1)  # noqa: DTZ001 - a wall clock has no zone

ALL_KINDS_OF_YEAR: Final = range(2000, 2028)
"""Leap or not, and beginning on each weekday: what does not come in these never comes."""


class Pattern:
    """The wall clock minutes that five fields name."""

    __slots__ = ("_walker", "fixed")

    def __init__(self, walker: CronSim) -> None:
        self._walker = walker
        _, minute, hour, *_ = walker.parts
        # Debian's cron looks at the first character only: "*/15 2" is a wildcard, "0-59 0-23" is not.
        self.fixed = not minute.startswith("*") and not hour.startswith("*")

    def next_wall(self, after: datetime) -> datetime | None:
        """Return the first match strictly after the wall time."""
        # Reading the fields costs ten times as much as copying what was read.
        walker = copy.copy(self._walker)
        walker.dt = after.replace(microsecond=0)
        return next(walker, None)

    def explain(self) -> str:
        """Return the pattern in English."""
        return self._walker.explain()


@lru_cache(maxsize=4096)
def pattern_of(fields: str) -> Pattern:
    """Read five canonical fields, or refuse them with the reason."""
    try:
        walker = CronSim(_without_idle_steps(fields), SOME_DAY)
    except CronSimError as error:
        raise _refusal(fields, str(error)) from None
    if not any(map(walker.match_day, _days_of_all_kinds(walker))):
        raise Invalid("expression", "never fires: no year has a day that fits the day, month and weekday")
    return Pattern(walker)


def _without_idle_steps(fields: str) -> str:
    """Drop the step of a range of one, as in ``5-5/10``: cronsim takes it for ``5/10``, from five to the end."""
    names = (Field.MINUTE, Field.HOUR, Field.DAY, Field.MONTH, Field.DOW)
    return " ".join(
        ",".join(_without_idle_step(name, term) for term in text.split(","))
        for name, text in zip(names, fields.split(), strict=True)
    )


def _without_idle_step(name: Field, term: str) -> str:
    span, _, step = term.partition("/")
    idle = step.isdigit() and int(step) and "-" in span and len(name.parse(span)) == 1
    return span if idle else term


def _days_of_all_kinds(walker: CronSim) -> Iterator[date]:
    """Yield every kind of day in the pattern's months: as to days, months differ in length and first weekday only.

    cronsim itself notices only days beyond the end of the month; for others that never come, such as
    ``*/30 * MON#2``, it would walk fifty years.
    """
    seen = set()
    for year, month in product(ALL_KINDS_OF_YEAR, walker.months):
        shape = _, length = monthrange(year, month)
        if shape not in seen:
            seen.add(shape)
            yield from (date(year, month, day) for day in range(1, length + 1))


def _refusal(fields: str, complaint: str) -> Invalid:
    minute, hour, day, month, weekday = fields.split()
    named = {"minute": minute, "hour": hour, "day-of-month": day, "month": month, "day-of-week": weekday}
    name = complaint.removeprefix("Bad ")
    if name == "day-of-month" and _is_readable(f"{minute} {hour} {day} * {weekday}"):
        return Invalid("expression", f"never fires: month {month[:32]!r} has no day {day[:32]!r}")
    return Invalid("expression", f"bad {name} {named.get(name, fields)[:32]!r}")


def _is_readable(fields: str) -> bool:
    try:
        CronSim(fields, SOME_DAY)
    except CronSimError:
        return False
    return True
