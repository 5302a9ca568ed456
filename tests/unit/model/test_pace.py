"""A pace lets through at its rate, whoever asks and however often."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.errors import Invalid
from tidewheel.model.pace import GatePace, check_rate, fit, look_at, passed, room

NOW = 1_900_000_000.0


@given(
    st.floats(0.01, 5_000),
    st.lists(st.tuples(st.floats(0, 2), st.integers(1, 400)), min_size=1, max_size=60),
)
def test_no_more_pass_than_the_rate_allows(rate: float, asks: list[tuple[float, int]]) -> None:
    pace, now, taken = GatePace(rate, NOW), NOW, 0
    for pause, wanted in asks:
        now += pause
        count = min(wanted, room(pace, now))
        pace, taken = passed(pace, count, now), taken + count
    saved = max(1, int(rate / 10))
    assert taken <= saved + (now - NOW) * rate + 1


@given(st.floats(0.01, 5_000))
def test_who_comes_when_told_to_gets_the_whole_rate(rate: float) -> None:
    pace, now, taken = GatePace(rate, NOW), NOW, 0
    for _ in range(50):
        count = room(pace, now)
        assert count > 0
        pace, taken = passed(pace, count, now), taken + count
        assert room(pace, now) == 0
        assert look_at(pace, now) > now
        now = look_at(pace, now)
    assert taken >= (now - NOW) * rate - max(1, rate / 10)


def test_a_pause_saves_up_a_tenth_of_a_second() -> None:
    assert room(GatePace(50, NOW - 1_000), NOW) == 5
    assert room(GatePace(2, NOW - 1_000), NOW) == 1


def test_a_clock_that_was_set_back_stops_nobody() -> None:
    pace = passed(GatePace(10, NOW), 1, NOW)
    assert room(pace, NOW - 3_600) == 1
    assert room(passed(pace, 1, NOW - 3_600), NOW - 3_600) == 0


def test_who_lies_behind_two_needs_room_under_both() -> None:
    paces_of = {"x": (1, 2), "y": (1,), "z": (3,), "free": ()}
    assert fit({"x": 5, "y": 5, "z": 5, "free": 5}, paces_of, {1: 4, 2: 3}) == {"x": 3, "y": 1, "z": 5, "free": 5}
    assert fit({"x": 5}, paces_of, {1: 4, 2: 0}) == {}


@pytest.mark.parametrize("rate", [0, -5, float("nan"), float("inf"), 1e-9, 1e9, "5", None, True])
def test_a_rate_that_cannot_be_is_refused(rate: object) -> None:
    with pytest.raises(Invalid, match="rate"):
        check_rate("rate", rate)


@pytest.mark.parametrize("rate", [1 / 86_400, 1, 0.5, 100_000])
def test_other_rates_are_welcome(rate: float) -> None:
    check_rate("rate", rate)
