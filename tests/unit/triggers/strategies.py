"""What the property tests of the triggers are made of: zones, expressions and windows."""

import os
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.unit.triggers.oracle import HIGHEST, LOWEST, MONTHS, WEEKDAYS, offset_changes

LONG = os.environ.get("TIDE_LONG") == "1"
"""Set TIDE_LONG=1 for the run with every change of every zone, and a hundred times the examples."""

# "localtime" is whatever this machine was set to, and refused by the triggers.
ZONES = sorted(available_timezones() - {"localtime"})


@cache
def changes_of(zone: str) -> list[datetime]:
    return offset_changes(ZoneInfo(zone))


def examples(short: int, long: int) -> settings:
    """Return the settings of a property: how many examples it tries in a short and in a long run."""
    return settings(
        max_examples=long if LONG else short,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )


@st.composite
def terms(draw: st.DrawFn, field: int) -> str:
    low, high = LOWEST[field], HIGHEST[field]
    first = draw(st.integers(low, high))
    last = draw(st.integers(first, high))
    step = draw(st.integers(1, 70))
    return draw(
        st.sampled_from([f"{first}", f"{first}-{last}", f"{first}-{last}/{step}", f"*/{step}", f"{first}/{step}"])
    )


def fields(field: int, *special: str) -> st.SearchStrategy[str]:
    lists = st.lists(terms(field), min_size=1, max_size=3).map(",".join)
    choices: list[st.SearchStrategy[str]] = [st.just("*"), terms(field), lists]
    if special:
        choices.append(st.sampled_from(special))
    return st.one_of(choices)


weekday_names = (
    [f"{name}#{nth}" for name in WEEKDAYS for nth in range(1, 6)] + [f"{day}L" for day in range(8)] + WEEKDAYS
)

# Most windows are two days long: an expression that names a day would rarely match in them.
mostly_any = st.just("*")


@st.composite
def expressions(draw: st.DrawFn) -> str:
    minute, hour = draw(fields(0)), draw(fields(1))
    day = draw(st.one_of(mostly_any, fields(2, "L", "LW", "15,L")))
    month = draw(st.one_of(mostly_any, mostly_any, fields(3, *MONTHS)))
    weekday = draw(st.one_of(mostly_any, fields(4, *weekday_names)))
    return f"{minute} {hour} {day} {month} {weekday}"


@st.composite
def zones_at_a_change(draw: st.DrawFn) -> tuple[str, datetime]:
    """Draw a zone, and an instant near one of its offset changes."""
    zone = draw(st.sampled_from(ZONES))
    minutes = timedelta(minutes=draw(st.integers(-2000, 300)), seconds=draw(st.sampled_from([0, 0, 1, 30, 59])))
    changes = changes_of(zone)
    return zone, (draw(st.sampled_from(changes)) + minutes if changes else draw(instants))


# A little inside of 1970-2037, as windows reach beyond the instant.
FIRST, LAST = datetime(1970, 1, 2, tzinfo=UTC), datetime(2037, 12, 1, tzinfo=UTC)
instants = st.integers(0, (LAST - FIRST) // timedelta(seconds=1)).map(lambda n: FIRST + timedelta(seconds=n))
zones_at_any_time = st.tuples(st.sampled_from(ZONES), instants)
