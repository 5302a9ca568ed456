"""Cron agrees with a slow oracle in every zone of the tz database, above all where clocks change."""

from datetime import UTC, datetime, timedelta
from zlib import crc32
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given

from tests.unit.triggers.oracle import Oracle, expected, walk, within
from tests.unit.triggers.strategies import (
    LONG,
    ZONES,
    changes_of,
    examples,
    expressions,
    zones_at_a_change,
    zones_at_any_time,
)
from tidewheel.errors import Invalid
from tidewheel.triggers import Cron, Occurrence, Trigger

HOUR = timedelta(hours=1)
# A long run takes its time.
pytestmark = [pytest.mark.slow, *([pytest.mark.timeout(0)] if LONG else [])]
QUIET_DAY = datetime(2024, 7, 1, tzinfo=UTC)


def trigger(expression: str, zone: str) -> Trigger:
    try:
        return Trigger(rule=Cron(expression, zone))
    except Invalid as refused:
        assume("never fires" not in refused.why)
        raise


def nominal(occurrences: tuple[Occurrence, ...]) -> list[datetime]:
    return [occurrence.nominal for occurrence in occurrences]


def told_changes(zone: str) -> list[datetime]:
    """Return the largest change of the zone and one other, or all of them in a long run."""
    changes = changes_of(zone)
    if LONG or len(changes) <= 2:
        return changes or [QUIET_DAY]
    place = ZoneInfo(zone)
    largest = max(changes, key=lambda at: abs(wall(place, at) - wall(place, at - HOUR) - HOUR))
    return [largest, changes[crc32(zone.encode()) % len(changes)]]


def wall(zone: ZoneInfo, instant: datetime) -> datetime:
    return instant.astimezone(zone).replace(tzinfo=None)


def telling_expressions(zone: ZoneInfo, change: datetime) -> list[str]:
    """Return fixed and wildcard expressions that aim at what the change skips or repeats."""
    shown, set_to = wall(zone, change - HOUR) + HOUR, wall(zone, change)
    middle = shown + (set_to - shown) / 2
    return [
        f"{middle.minute} {middle.hour} * * *",
        f"{set_to.minute},{shown.minute} {set_to.hour},{shown.hour} * * *",
        f"*/10 {middle.hour} * * *",
        f"{middle.minute} * * * *",
        "0-59/7 0-23 * * *",
    ]


def brief(zone: str) -> bool:
    """Choose one zone of eight, which stand for all of them where time is short."""
    return crc32(zone.encode()) % 8 == 0


@pytest.mark.parametrize(
    "zone", [zone if brief(zone) else pytest.param(zone, marks=pytest.mark.proof) for zone in ZONES]
)
def test_every_zone_agrees_around_its_changes(zone: str) -> None:
    place = ZoneInfo(zone)
    for change in told_changes(zone):
        since, until = change - 5 * HOUR, change + 5 * HOUR
        steps = walk(place, since, until)
        for expression in telling_expressions(place, change):
            right = within(since, until, Oracle(expression).fires(steps))
            asked = trigger(expression, zone)
            assert nominal(asked.between(since, until, limit=1000)) == right, expression
            for minutes in (-61, -1, 0, 1, 29, 59, 119):
                probe = change + timedelta(minutes=minutes, seconds=-1)
                after = [instant for instant in right if instant > probe]
                assert nominal(asked.between(probe, until, limit=1)) == after[:1], (expression, probe)


@pytest.mark.proof
@examples(700, 50_000)
@given(expression=expressions(), place=zones_at_a_change())
def test_any_expression_agrees_in_the_days_of_a_change(expression: str, place: tuple[str, datetime]) -> None:
    zone, since = place
    until = since + timedelta(hours=36)
    right = expected(expression, ZoneInfo(zone), since, until)
    assert nominal(trigger(expression, zone).between(since, until, limit=10_000)) == right


@examples(200, 20_000)
@given(expression=expressions(), place=zones_at_any_time)
def test_any_expression_agrees_on_any_day(expression: str, place: tuple[str, datetime]) -> None:
    zone, since = place
    until = since + timedelta(hours=36)
    right = expected(expression, ZoneInfo(zone), since, until)
    assert nominal(trigger(expression, zone).between(since, until, limit=10_000)) == right


@pytest.mark.proof
@examples(25, 2_000)
@given(expression=expressions(), place=zones_at_a_change())
def test_the_next_occurrence_agrees_even_if_it_is_weeks_away(expression: str, place: tuple[str, datetime]) -> None:
    zone, since = place
    until = since + timedelta(days=45)
    right = expected(expression, ZoneInfo(zone), since, until)
    assert nominal(trigger(expression, zone).between(since, until, limit=1)) == right[:1]


@examples(300, 20_000)
@given(expression=expressions(), place=zones_at_a_change())
def test_asking_from_any_instant_gives_the_first_later_occurrence(expression: str, place: tuple[str, datetime]) -> None:
    zone, since = place
    asked = trigger(expression, zone)
    chain = nominal(asked.between(since - timedelta(days=1), since + timedelta(days=2), limit=50))
    assert chain == sorted(set(chain))
    probes = [since, *(instant - timedelta(microseconds=1) for instant in chain), *chain[:-1]]
    for probe in probes if chain else []:
        later = [instant for instant in chain if instant > probe]
        found = asked.next_after(probe)
        assert found is not None
        assert not later or found.nominal == later[0]
        assert found.nominal > probe
