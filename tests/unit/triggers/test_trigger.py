"""A trigger keeps its rule within bounds, and moves occurrences without mixing them up."""

from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.triggers.strategies import ZONES, examples, instants
from tidewheel.triggers import Cron, Interval, Occurrence, Once, Rule, Trigger, from_json, to_json

NOW = datetime(2024, 1, 1, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=seconds) for seconds in (1, 60, 3600, 86_400))
TICK = timedelta(microseconds=1)
DAILY = Cron("@daily")

rules: st.SearchStrategy[Rule] = st.one_of(
    st.builds(Once, instants),
    st.builds(Interval, st.timedeltas(SECOND, 40 * DAY), instants),
    st.builds(
        Cron,
        st.sampled_from(["*/7 * * * *", "0 2 * * *", "30 1 * * SUN", "0 0 L * *", "0,59 0-23/3 1 * *"]),
        st.sampled_from(ZONES),
    ),
)


def days(found: tuple[Occurrence, ...]) -> list[int]:
    return [occurrence.nominal.day for occurrence in found]


def plain(instant: datetime) -> Occurrence:
    return Occurrence(instant, instant)


def test_once_fires_at_its_instant_and_never_again() -> None:
    asked = Trigger(rule=Once(NOW))
    assert asked.next_after(NOW - TICK) == plain(NOW)
    assert asked.next_after(NOW) is None


def test_once_after_a_delay_counts_from_now() -> None:
    assert Once.after(HOUR, NOW) == Once(NOW + HOUR)
    assert Once.after(timedelta(0), NOW) == Once(NOW)


def test_an_interval_keeps_the_phase_of_its_anchor_in_both_directions() -> None:
    asked = Trigger(rule=Interval(HOUR, NOW + 7 * MINUTE))
    assert asked.next_after(NOW) == plain(NOW + 7 * MINUTE)
    assert asked.next_after(NOW + 7 * MINUTE) == plain(NOW + HOUR + 7 * MINUTE)
    assert asked.next_after(NOW - HOUR) == plain(NOW - 53 * MINUTE)


def test_an_interval_is_found_by_arithmetic_however_far_its_anchor() -> None:
    asked = Trigger(rule=Interval(SECOND, datetime(8999, 1, 1, tzinfo=UTC)))
    assert asked.next_after(NOW) == plain(NOW + SECOND)


def test_start_and_end_are_inclusive() -> None:
    asked = Trigger(rule=DAILY, start=NOW + DAY, end=NOW + 3 * DAY)
    assert days(asked.between(NOW - 9 * DAY, NOW + 9 * DAY, limit=99)) == [2, 3, 4]


def test_start_and_end_may_be_the_same_instant() -> None:
    assert Trigger(rule=DAILY, start=NOW, end=NOW).next_after(NOW - DAY) == plain(NOW)


def test_no_more_than_the_allowed_occurrences_follow() -> None:
    asked = Trigger(rule=DAILY, max_occurrences=5)
    assert days(asked.between(NOW, NOW + 99 * DAY, limit=99)) == [2, 3, 4, 5, 6]
    assert days(asked.between(NOW, NOW + 99 * DAY, limit=99, fired=3)) == [2, 3]
    assert asked.next_after(NOW, fired=4) == plain(NOW + DAY)
    assert asked.next_after(NOW, fired=5) is None
    assert asked.next_after(NOW, fired=6) is None


def test_between_excludes_its_beginning_and_includes_its_end() -> None:
    assert days(Trigger(rule=DAILY).between(NOW, NOW + 2 * DAY, limit=99)) == [2, 3]


def test_between_gives_no_more_than_its_limit() -> None:
    found = Trigger(rule=Cron("* * * * *")).between(NOW, NOW + 9999 * DAY, limit=3)
    assert [occurrence.nominal.minute for occurrence in found] == [1, 2, 3]


def test_between_a_later_and_an_earlier_instant_there_is_nothing() -> None:
    assert Trigger(rule=DAILY).between(NOW + 9 * DAY, NOW, limit=9) == ()


def test_instants_beyond_the_calendar_are_answered_too() -> None:
    asked = Trigger(rule=DAILY)
    assert asked.next_after(datetime.max.replace(tzinfo=UTC)) is None
    assert asked.next_after(datetime.min.replace(tzinfo=UTC)) == plain(datetime(1970, 1, 1, tzinfo=UTC))


def test_instants_of_other_zones_are_kept_in_utc() -> None:
    tokyo = timezone(9 * HOUR)
    assert Once(NOW.astimezone(tokyo)) == Once(NOW)
    assert Once(NOW.astimezone(tokyo)).at.tzinfo is UTC
    assert Trigger(rule=DAILY).next_after(NOW.astimezone(tokyo)) == plain(NOW + DAY)


def test_ten_thousand_daily_schedules_are_spread_over_the_hour() -> None:
    asked = Trigger(rule=DAILY, spread=HOUR)
    seconds: dict[int, int] = {}
    for number in range(10_000):
        found = asked.next_after(NOW, key=f"schedule-{number}")
        assert found is not None
        second = (found.fire_at - found.nominal) // SECOND
        seconds[second] = seconds.get(second, 0) + 1
    assert max(seconds.values()) < 20
    assert min(seconds) < 60
    assert 3540 < max(seconds) < 3600


def test_spread_keeps_the_distance_of_occurrences_and_jitter_does_not() -> None:
    def shifts(asked: Trigger) -> set[timedelta]:
        found = asked.between(NOW, NOW + 9 * DAY, limit=9, key="backup")
        return {occurrence.fire_at - occurrence.nominal for occurrence in found}

    assert len(shifts(Trigger(rule=DAILY, spread=HOUR))) == 1
    assert len(shifts(Trigger(rule=DAILY, jitter=HOUR))) == 9


def test_shifts_are_the_same_on_every_node_and_in_every_release() -> None:
    # Pinned: another hash would move every schedule of every user.
    found = Trigger(rule=DAILY, spread=HOUR, jitter=MINUTE).next_after(NOW, key="backup")
    assert found == Occurrence(NOW + DAY, NOW + DAY + timedelta(milliseconds=1_668_609))


def test_a_shift_moves_neither_bounds_nor_names() -> None:
    asked = Trigger(rule=DAILY, end=NOW + DAY, spread=HOUR)
    (only,) = asked.between(NOW, NOW + 9 * DAY, limit=9, key="backup")
    assert only.nominal == NOW + DAY
    assert only.fire_at > NOW + DAY


@examples(300, 20_000)
@given(
    rule=rules,
    since=instants,
    jitter=st.timedeltas(timedelta(0), 3 * DAY),
    spread=st.timedeltas(timedelta(0), 3 * DAY),
    key=st.text(st.characters(codec="utf-8"), min_size=1),
)
def test_shifts_never_leave_the_room_up_to_the_next_occurrence(
    rule: Rule, since: datetime, jitter: timedelta, spread: timedelta, key: str
) -> None:
    asked = Trigger(rule=rule, jitter=jitter, spread=spread)
    found = asked.between(since, since + 400 * DAY, limit=20, key=key)
    assert found == asked.between(since, since + 400 * DAY, limit=20, key=key)
    assert all(occurrence.nominal <= occurrence.fire_at for occurrence in found)
    assert all(occurrence.fire_at - occurrence.nominal <= jitter + spread for occurrence in found)
    assert all(one.fire_at < other.nominal for one, other in pairwise(found))


@examples(300, 20_000)
@given(rule=rules, since=instants, cut=st.timedeltas(timedelta(0), 2 * DAY))
def test_windows_that_touch_neither_share_nor_lose_an_occurrence(rule: Rule, since: datetime, cut: timedelta) -> None:
    asked, until = Trigger(rule=rule), since + 2 * DAY
    whole = asked.between(since, until, limit=500)
    parts = asked.between(since, since + cut, limit=500) + asked.between(since + cut, until, limit=500)
    assert parts[:500] == whole


@examples(200, 20_000)
@given(
    rule=rules,
    bounds=st.lists(instants, min_size=2, max_size=2).map(sorted),
    most=st.none() | st.integers(1, 10**6),
    jitter=st.timedeltas(timedelta(0), 300 * DAY),
)
def test_a_trigger_survives_storage(rule: Rule, bounds: list[datetime], most: int | None, jitter: timedelta) -> None:
    kept = Trigger(rule=rule, start=bounds[0], end=bounds[1], max_occurrences=most, jitter=jitter)
    assert from_json(to_json(kept)) == kept


def test_stored_triggers_are_plain_json() -> None:
    kept = Trigger(rule=Cron("CRON_TZ=Europe/Berlin @daily"), start=NOW, jitter=90 * SECOND)
    assert to_json(kept).decode() == (
        '{"rule":{"type":"cron","expression":"0 0 * * *","zone":"Europe/Berlin"},"start":"2024-01-01T00:00:00Z",'
        '"end":null,"max_occurrences":null,"jitter":"PT90S","spread":"P0D"}'
    )


@pytest.mark.parametrize("rule", [Once(NOW), Interval(HOUR), DAILY])
def test_records_are_frozen(rule: Rule) -> None:
    with pytest.raises(AttributeError):
        rule.anything = 1  # type: ignore[union-attr]
