"""The schedules of the simulation, and when each of them is to fire, by the slow cron of the triggers' tests."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from tests.builders import DAY, HOUR, MINUTE, a_schedule
from tests.contract.backends import START
from tests.unit.triggers.oracle import Oracle, Step, within
from tidewheel.model.misfire import Misfire
from tidewheel.model.overlap import Overlap
from tidewheel.model.schedule import ScheduleSpec
from tidewheel.triggers import Cron, Interval

BEGIN: Final = START + 7 * MINUTE
LAST: Final = BEGIN + 440 * DAY
HOW_MANY: Final = 50
CRONS: Final = 44
"""How many of them go by cron; the others by intervals."""
QUARTER: Final = 15 * MINUTE

ZONES: Final = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/St_Johns", "UTC")
FIELDS: Final = (
    *("30 2 * * *", "0 0 * * *", "15 3 * * MON-FRI", "*/30 2 * * *", "0 */6 * * *", "45 23 L * *"),
    "30 1,2 * * SUN",
)
MISFIRES: Final = (
    Misfire(),
    Misfire(policy="all", most=20, grace=HOUR),
    Misfire(policy="skip", grace=30 * MINUTE),
    Misfire(policy="latest", grace=timedelta(0)),
)


class Bounds(NamedTuple):
    """What limits or moves the occurrences of one of the schedules."""

    jitter: timedelta = timedelta(0)
    spread: timedelta = timedelta(0)
    max_occurrences: int | None = None
    end: datetime | None = None

    @property
    def shift(self) -> timedelta:
        return self.jitter + self.spread


def bounds_of(number: int) -> Bounds:
    if number % 10 == 3:
        return Bounds(max_occurrences=60)
    if number % 8 == 5:
        return Bounds(end=BEGIN + 50 * DAY)
    if number % 6 == 1:
        return Bounds(jitter=4 * MINUTE)
    return Bounds(spread=6 * HOUR) if number % 6 == 2 else Bounds()


def plain(number: int) -> bool:
    """Tell whether all that is asked for by its rule fires at that instant: such may be paused, or get another rule."""
    return bounds_of(number) == Bounds() and number < CRONS


def spec_of(number: int, turn: int, **fields: Any) -> ScheduleSpec:
    """Return the definition of a schedule after it was given so many other rules."""
    every = (90 + 15 * number) * MINUTE
    rule = Interval(every) if number >= CRONS else Cron(fields_of(number, turn), ZONES[number % len(ZONES)])
    return a_schedule(
        f"s{number}",
        rule,
        args={"number": number},
        misfire=MISFIRES[number % len(MISFIRES)],
        overlap=tuple(Overlap)[number // 2 % len(Overlap)],
        **bounds_of(number)._asdict(),
        **fields,
    )


def fields_of(number: int, turn: int) -> str:
    return FIELDS[(number + turn) % len(FIELDS)]


def asked_for(number: int, turn: int) -> list[datetime]:
    """Return the nominal instants from shortly before the beginning on."""
    since = BEGIN - 7 * HOUR
    bounds, end = bounds_of(number), LAST
    if number >= CRONS:
        every = (90 + 15 * number) * MINUTE
        first = since - (since - datetime(1970, 1, 1, tzinfo=UTC)) % every + every
        times = [first + n * every for n in range((end - first) // every + 1)]
    else:
        times = cron_times(fields_of(number, turn), ZONES[number % len(ZONES)])
    return [at for at in times if at > since and (bounds.end is None or at <= bounds.end)]


@lru_cache
def cron_times(fields: str, zone: str) -> list[datetime]:
    return within(BEGIN - DAY, LAST, Oracle(fields).fires(look_at_walls(zone)))


@lru_cache
def look_at_walls(zone: str) -> list[Step]:
    """Look at the clocks of a zone each quarter of an hour: all that is used here falls on quarters."""
    place, steps = ZoneInfo(zone), list[Step]()
    instant = BEGIN.replace(minute=0) - 2 * DAY
    foreseen = instant.astimezone(place).replace(tzinfo=None)
    while instant <= LAST:
        wall = instant.astimezone(place).replace(tzinfo=None)
        steps.append(Step(instant, wall, wall - foreseen))
        instant, foreseen = instant + QUARTER, wall + QUARTER
    return steps
