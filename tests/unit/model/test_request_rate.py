"""The rate of requests: a bucket of tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.errors import Invalid
from tidewheel.model.bucket import Level
from tidewheel.model.request_rate import Rate, check_rate, take

RATE = Rate(2.0, 3)


def test_a_burst_is_allowed_and_then_the_rate() -> None:
    level, told = None, []
    for now in (0.0, 0.0, 0.0, 0.0, 0.4, 0.5, 0.5, 10.0):
        answer = take(level, RATE, now)
        level = answer.left
        told.append((answer.allowed, answer.remaining, answer.retry_after))
    assert told == [
        (True, 2, 0),
        (True, 1, 0),
        (True, 0, 0),
        (False, 0, 1),
        (False, 0, 1),
        (True, 0, 0),
        (False, 0, 1),
        (True, 2, 0),
    ]


def test_the_fields_of_http_are_whole_seconds_that_are_long_enough() -> None:
    slow = Rate(0.1, 2)
    first = take(None, slow, 100.0)
    assert (first.limit, first.remaining, first.reset) == (2, 1, 10)
    last = take(take(first.left, slow, 100.0).left, slow, 100.5)
    assert (last.allowed, last.retry_after) == (False, 10)
    assert take(last.left, slow, 100.5 + last.retry_after).allowed


def test_a_clock_that_stands_still_or_steps_back_gives_nothing_away() -> None:
    empty = Level(0.0, 50.0)
    assert not take(empty, RATE, 50.0).allowed
    assert not take(empty, RATE, 10.0).allowed


@given(st.floats(0.01, 1000), st.integers(1, 100), st.lists(st.floats(0, 5), max_size=250))
def test_in_no_time_more_is_allowed_than_the_burst_and_the_rate(rate: float, burst: int, waits: list[float]) -> None:
    level, now, spent = None, 0.0, 0
    for wait in waits:
        now += wait
        answer = take(level, Rate(rate, burst), now)
        level = answer.left
        spent += answer.allowed
        assert answer.remaining <= burst
        assert spent <= burst + now * rate + 1e-6
        if not answer.allowed:
            assert take(level, Rate(rate, burst), now + answer.retry_after + 1e-6).allowed


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf"), 1e9])
def test_rates_that_allow_nothing_or_anything_are_refused(rate: float) -> None:
    with pytest.raises(Invalid, match="rate"):
        check_rate(rate, None)
    with pytest.raises(Invalid, match="burst"):
        check_rate(None, 0)
    check_rate(None, None)
    check_rate(0.5, 1)
