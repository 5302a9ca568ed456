"""What cron expressions are taken, and what they mean on an ordinary day in UTC."""

from datetime import UTC, datetime, timedelta

import pytest

from tidewheel.triggers import Cron, Interval, Trigger, describe, parse_rule

BEGIN = datetime(2024, 1, 1, tzinfo=UTC) - timedelta(microseconds=1)


def first(expression: str, count: int = 1, zone: str = "") -> list[str]:
    found = Trigger(rule=Cron(expression, zone)).between(BEGIN, BEGIN + timedelta(days=40_000), limit=count)
    return [f"{occurrence.nominal:%Y-%m-%d %H:%M}" for occurrence in found]


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@Daily", "0 0 * * *"),
    ],
)
def test_names_stand_for_their_five_fields(name: str, fields: str) -> None:
    assert Cron(name) == Cron(fields)


@pytest.mark.parametrize(
    ("expression", "dates"),
    [
        ("15 4 * * *", ["2024-01-01 04:15", "2024-01-02 04:15"]),
        ("*/20 * * * *", ["2024-01-01 00:00", "2024-01-01 00:20"]),
        ("5/30 0 * * *", ["2024-01-01 00:05", "2024-01-01 00:35"]),
        ("5-5/30 0 * * *", ["2024-01-01 00:05", "2024-01-02 00:05"]),
        ("0 0 * * mon-fri", ["2024-01-01 00:00", "2024-01-02 00:00"]),
        ("0 0 * * 7", ["2024-01-07 00:00", "2024-01-14 00:00"]),
        ("0 0 * feb,Dec 0", ["2024-02-04 00:00", "2024-02-11 00:00"]),
        ("0 0 L * *", ["2024-01-31 00:00", "2024-02-29 00:00"]),
        ("0 0 LW * *", ["2024-01-31 00:00", "2024-02-29 00:00", "2024-03-29 00:00"]),
        ("0 0 * * TUE#2", ["2024-01-09 00:00", "2024-02-13 00:00"]),
        ("0 0 * * 5L", ["2024-01-26 00:00", "2024-02-23 00:00"]),
        ("0 0 29 2 *", ["2024-02-29 00:00", "2028-02-29 00:00"]),
        ("0 0 31 * *", ["2024-01-31 00:00", "2024-03-31 00:00"]),
        ("0 0 29 2 */7", ["2032-02-29 00:00", "2060-02-29 00:00", "2088-02-29 00:00", "2128-02-29 00:00"]),
    ],
)
def test_fields_have_ranges_steps_lists_names_and_last_days(expression: str, dates: list[str]) -> None:
    assert first(expression, len(dates)) == dates


def test_day_and_weekday_are_alternatives_when_both_are_named() -> None:
    assert first("0 0 5 * TUE", 3) == ["2024-01-02 00:00", "2024-01-05 00:00", "2024-01-09 00:00"]


def test_day_and_weekday_must_both_fit_when_one_starts_with_a_star() -> None:
    assert first("0 0 */2 * TUE", 2) == ["2024-01-09 00:00", "2024-01-23 00:00"]


@pytest.mark.parametrize("prefix", ["CRON_TZ", "TZ"])
def test_a_prefix_names_the_zone(prefix: str) -> None:
    rule = Cron(f"{prefix}=Europe/Berlin 0 5 * * *")
    assert rule == Cron("0 5 * * *", "Europe/Berlin")
    assert (rule.expression, rule.zone) == ("0 5 * * *", "Europe/Berlin")


def test_a_prefix_may_repeat_the_zone_and_stand_before_a_name() -> None:
    assert Cron("CRON_TZ=Asia/Tokyo @daily", "Asia/Tokyo") == Cron("0 0 * * *", "Asia/Tokyo")


def test_without_a_zone_it_is_utc() -> None:
    assert Cron("@daily").zone == "UTC"


def test_blanks_and_case_do_not_matter() -> None:
    assert Cron("  0   0 * jan\tmon ") == Cron("0 0 * JAN MON")


@pytest.mark.parametrize(
    ("text", "every"),
    [
        ("@every 5m", timedelta(minutes=5)),
        ("@every 1h30m", timedelta(minutes=90)),
        ("@every 90s", timedelta(seconds=90)),
        ("@EVERY 1d", timedelta(days=1)),
        ("TZ=Asia/Tokyo @every 5m", timedelta(minutes=5)),
    ],
)
def test_every_becomes_an_interval(text: str, every: timedelta) -> None:
    assert parse_rule(text) == Interval(every)


def test_parse_rule_reads_cron_too() -> None:
    assert parse_rule("@daily", "Asia/Tokyo") == Cron("0 0 * * *", "Asia/Tokyo")


def test_rules_are_described_in_english() -> None:
    assert describe(Cron("0 5 * * *", "Europe/Berlin")) == "At 05:00 every day (Europe/Berlin)"
    assert describe(parse_rule("@every 90m")) == "Every 1h30m"
    anchored = Interval(timedelta(minutes=10), datetime(2030, 1, 1, 12, 5, tzinfo=UTC))
    assert describe(anchored) == "Every 10m, counted from 2030-01-01 12:05:00 UTC"
