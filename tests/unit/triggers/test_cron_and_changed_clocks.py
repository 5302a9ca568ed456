"""Debian's rule, case by case: what fires when the clocks of a zone are set."""

from datetime import UTC, datetime, timedelta
from importlib import resources
from itertools import pairwise
from struct import unpack

import pytest

from tests.unit.triggers.strategies import ZONES
from tidewheel.triggers import Cron, Trigger, falls_on_change_day
from tidewheel.triggers.zones import SIGHT


def fires(expression: str, zone: str, day: str, days: int = 1) -> list[str]:
    """Return the UTC times of the firings in the UTC days that begin at ``day``."""
    since = datetime.fromisoformat(f"{day}T00:00:00+00:00") - timedelta(microseconds=1)
    found = Trigger(rule=Cron(expression, zone)).between(since, since + timedelta(days=days), limit=2000)
    return [f"{occurrence.nominal:%dT%H:%M:%S}".removesuffix(":00") for occurrence in found]


def test_a_fixed_time_in_the_skipped_hour_fires_once_right_after_the_gap() -> None:
    assert fires("30 2 * * *", "Europe/Berlin", "2024-03-30", 3) == ["30T01:30", "31T01:00", "01T00:30"]


def test_several_fixed_times_in_the_skipped_hour_fire_once_together() -> None:
    assert fires("0,15,30 2 * * *", "Europe/Berlin", "2024-03-31") == ["31T01:00"]


def test_a_skipped_time_and_one_at_the_end_of_the_gap_are_one_occurrence() -> None:
    assert fires("0 2,3 * * *", "Europe/Berlin", "2024-03-31") == ["31T01:00"]


def test_a_fixed_time_in_the_repeated_hour_fires_the_first_time_only() -> None:
    assert fires("30 2 * * *", "Europe/Berlin", "2024-10-27", 2) == ["27T00:30", "28T01:30"]


def test_a_wildcard_in_the_hour_keeps_its_beat_over_the_gap() -> None:
    assert fires("0 * * * *", "Europe/Berlin", "2024-03-31") == [f"31T{hour:02}:00" for hour in range(24)]


def test_a_wildcard_in_the_hour_keeps_its_beat_over_the_repeated_hour() -> None:
    assert fires("0 * * * *", "Europe/Berlin", "2024-10-27") == [f"27T{hour:02}:00" for hour in range(24)]


def test_a_wildcard_minute_of_the_skipped_hour_does_not_fire() -> None:
    assert fires("*/15 2 * * *", "Europe/Berlin", "2024-03-31") == []


def test_a_wildcard_minute_of_the_repeated_hour_fires_in_both_passes() -> None:
    assert fires("*/30 2 * * *", "Europe/Berlin", "2024-10-27") == ["27T00:00", "27T00:30", "27T01:00", "27T01:30"]


def test_ranges_that_name_every_minute_are_fixed_as_in_debian() -> None:
    assert len(fires("0-59 0-23 * * *", "Europe/Berlin", "2024-10-27")) == 23 * 60


@pytest.mark.parametrize("minutes", [0, 10, 29, 30, 31, 59])
def test_asked_inside_the_repeated_hour_the_answer_is_never_in_the_past(minutes: int) -> None:
    inside = datetime(2024, 10, 27, 1, minutes, tzinfo=UTC)
    found = Trigger(rule=Cron("30 2 * * *", "Europe/Berlin")).next_after(inside)
    assert found is not None
    assert found.nominal == datetime(2024, 10, 28, 1, 30, tzinfo=UTC)


def test_a_gap_of_half_an_hour_loses_nothing_of_the_next_hour() -> None:
    assert fires("*/20 3 * * *", "Australia/Lord_Howe", "2024-10-05") == ["05T16:00", "05T16:20", "05T16:40"]


def test_a_fixed_time_in_a_gap_of_half_an_hour_fires_at_its_end() -> None:
    assert fires("10 2 * * *", "Australia/Lord_Howe", "2024-10-05") == ["05T15:30"]


def test_half_an_hour_that_is_repeated_counts_once_for_fixed_times() -> None:
    assert fires("45 1 * * *", "Australia/Lord_Howe", "2024-04-06") == ["06T14:45"]


def test_a_change_of_two_hours_is_still_daylight_saving() -> None:
    assert fires("30 2 * * *", "Antarctica/Troll", "2024-03-31") == ["31T01:00"]
    assert fires("30 2 * * *", "Antarctica/Troll", "2024-10-27") == ["27T00:30"]


def test_midnight_that_is_skipped_fires_at_one_for_fixed_times_and_not_for_wildcards() -> None:
    assert fires("0 0 * * *", "America/Havana", "2024-03-10") == ["10T05:00"]
    assert fires("*/20 0 * * *", "America/Havana", "2024-03-10") == []


def test_a_gap_of_three_hours_is_a_correction_and_its_times_do_not_fire() -> None:
    assert fires("30 3 * * *", "Antarctica/Casey", "2009-10-17", 2) == ["18T16:30"]


def test_three_repeated_hours_are_a_correction_and_their_times_fire_again() -> None:
    assert fires("30 0 * * *", "Antarctica/Casey", "2010-03-04") == ["04T13:30", "04T16:30"]


def test_a_day_that_never_was_fires_nothing() -> None:
    assert fires("0 5 * * *", "Pacific/Apia", "2011-12-28", 4) == ["28T15:00", "29T15:00", "30T15:00", "31T15:00"]
    assert fires("0 5 30 12 *", "Pacific/Apia", "2011-12-28", 4) == []


def test_offsets_with_seconds_are_followed_to_the_second() -> None:
    assert fires("15 0 * * *", "Africa/Monrovia", "1972-01-06", 3) == ["06T00:59:30", "07T00:44:30", "08T00:15"]


def test_a_search_that_hangs_in_cronsim_comes_to_its_end() -> None:
    assert fires("*/30 3 * * *", "Asia/Hong_Kong", "1976-10-16") == ["16T18:00", "16T19:00", "16T19:30"]


def test_a_wildcard_that_always_falls_into_the_gap_never_fires_and_says_so() -> None:
    asked = Trigger(rule=Cron("*/5 2 * 3 SUN#2", "America/New_York"))
    assert asked.next_after(datetime(2024, 1, 1, tzinfo=UTC)) is None


def test_far_away_occurrences_use_the_offset_of_their_own_season() -> None:
    asked = Trigger(rule=Cron("0 0 1 7 *", "Europe/Berlin"))
    found = asked.next_after(datetime(2024, 7, 1, tzinfo=UTC))
    assert found is not None
    assert found.nominal == datetime(2025, 6, 30, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "at"),
    [
        ("Europe/Berlin", "2024-03-31T12:00Z"),
        ("Europe/Berlin", "2024-03-30T23:00Z"),
        ("Europe/Berlin", "2024-10-27T22:59Z"),
        ("America/Havana", "2024-03-10T12:00Z"),
        ("America/Sao_Paulo", "2018-02-18T02:30Z"),
        ("Pacific/Apia", "2011-12-30T12:00Z"),
    ],
)
def test_a_day_on_which_clocks_change_is_marked(zone: str, at: str) -> None:
    assert falls_on_change_day(zone, datetime.fromisoformat(at))


@pytest.mark.parametrize(
    ("zone", "at"),
    [
        ("Europe/Berlin", "2024-03-30T22:59Z"),
        ("Europe/Berlin", "2024-10-27T23:00Z"),
        ("America/Havana", "2024-03-09T12:00Z"),
        ("America/Sao_Paulo", "2018-02-18T12:00Z"),
        ("UTC", "2024-03-31T12:00Z"),
    ],
)
def test_a_day_of_the_usual_length_is_not_marked(zone: str, at: str) -> None:
    assert not falls_on_change_day(zone, datetime.fromisoformat(at))


def offset_changes_in_file(zone: str) -> list[int]:
    """Read the changes of the UTC offset from the second, 64 bit block of a TZif file."""
    data = resources.files("tzdata.zoneinfo").joinpath(*zone.split("/")).read_bytes()
    utc, std, leap, times, types, chars = unpack(">6l", data[20:44])
    block = 44 + times * 5 + types * 6 + chars + leap * 8 + std + utc
    *_, times, types, _ = unpack(">6l", data[block + 20 : block + 44])
    start, kinds, ends = block + 44, block + 44 + 8 * times, block + 44 + 9 * times
    offsets = [unpack(">l", data[ends + 6 * kind : ends + 6 * kind + 4])[0] for kind in range(types)]
    line = list(zip(unpack(f">{times}q", data[start:kinds]), data[kinds:ends], strict=True))
    return [at for (_, old), (at, new) in pairwise(line) if at >= 0 and offsets[old] != offsets[new]]


def test_no_zone_changes_its_offset_twice_within_sight() -> None:
    # The search compares only the two ends of a stretch of that length.
    for zone in ZONES:
        changes = offset_changes_in_file(zone)
        assert all(b - a > SIGHT.total_seconds() for a, b in pairwise(changes)), zone
