"""The bucket of a rate: what it holds as time goes by, and that no clock fools it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.errors import Invalid
from tidewheel.model.bucket import Level
from tidewheel.model.limit import Standing, release_by_end, release_by_refill
from tidewheel.model.rate import SLACK, Pace, next_token, parse_pace

SECOND = 1_000_000
TEN = Pace(10, 1, 10)


@pytest.mark.parametrize(
    ("text", "pace"),
    [
        ("10/s", Pace(10, 1, 10)),
        ("100/m", Pace(100, 60, 2)),
        (" 5 / h ", Pace(5, 3600, 1)),
        ("86400/d", Pace(86_400, 86_400, 1)),
        ("7/s", Pace(7, 1, 7)),
    ],
)
def test_a_pace_is_read_with_the_burst_of_one_second(text: str, pace: Pace) -> None:
    assert parse_pace(text) == pace
    assert parse_pace(text, 20) == Pace(pace.starts, pace.seconds, 20)


@pytest.mark.parametrize(
    ("text", "burst", "field"),
    [
        ("10/fortnight", None, "rate"),
        ("0/s", None, "rate"),
        ("-1/s", None, "rate"),
        ("1.5/s", None, "rate"),
        ("ten/s", None, "rate"),
        ("10", None, "rate"),
        ("", None, "rate"),
        (10, None, "rate"),
        (None, None, "rate"),
        ("10/S", None, "rate"),
        ("2000000/s", None, "rate"),
        ("1/s", 0, "burst"),
        ("1/s", -3, "burst"),
        ("1/s", 1.5, "burst"),
        ("1/s", True, "burst"),
        ("1/s", 10_000_000, "burst"),
    ],
)
def test_a_pace_that_is_nonsense_is_refused(text: object, burst: Any, field: str) -> None:
    with pytest.raises(Invalid) as refusal:
        parse_pace(text, burst)
    assert refusal.value.field == field


def test_tokens_come_one_by_one_and_never_more_than_the_burst() -> None:
    level = Level(0.0, 0)
    assert [TEN.bucket.filled(level, tenth * 100_000).whole() for tenth in range(13)] == [*range(11), 10, 10]


def test_a_token_that_is_announced_is_there_and_not_before() -> None:
    level = TEN.bucket.filled(Level(0.0, 0), 30_000)
    due = next_token(level, TEN)
    assert due == 100_000
    assert TEN.bucket.filled(level, due).whole() == 1
    assert TEN.bucket.filled(level, due - 1).whole() == 0


@given(
    starts=st.integers(1, 1_000_000),
    seconds=st.sampled_from([1, 60, 3600, 86_400]),
    tokens=st.floats(0, 5),
    burst=st.integers(1, 6),
)
def test_whoever_looks_when_a_token_is_announced_finds_it(starts: int, seconds: int, tokens: float, burst: int) -> None:
    pace = Pace(starts, seconds, burst)
    level = Level(min(tokens, burst), 1_900_000_000 * SECOND)
    assert pace.bucket.filled(level, next_token(level, pace)).whole() >= min(burst, level.whole() + 1)


@given(
    steps=st.lists(st.tuples(st.integers(-20 * SECOND, 2 * SECOND), st.integers(0, 12)), max_size=40),
    burst=st.integers(1, 10),
)
def test_whatever_the_clock_does_there_are_never_more_starts_than_time_and_burst_allow(
    steps: list[tuple[int, int]], burst: int
) -> None:
    """Only steps forward count as time; steps back give nothing, however they alternate."""
    pace = Pace(10, 1, burst)
    standing = Standing(None, 0, 10, 1, burst, None, None, None)
    now, forward, started = 1_900_000_000 * SECOND, 0, 0
    for step, wish in steps:
        now, forward = now + step, forward + max(0, step)
        number = min(wish, standing.room(now))
        standing, started = standing.started(number, now), started + number
        assert started <= burst + forward / pace.bucket.interval + 1e-3


def test_a_clock_that_was_set_back_far_does_not_stop_the_bucket_until_that_time_comes_again() -> None:
    level = TEN.bucket.filled(Level(0.0, 1000 * SECOND), 10 * SECOND)
    assert level == Level(0.0, 10 * SECOND)
    assert TEN.bucket.filled(level, 11 * SECOND).whole() == 10


def test_someone_who_waited_for_the_lock_and_comes_with_an_old_time_gets_no_time_twice() -> None:
    level = Level(0.0, 1000 * SECOND)
    assert TEN.bucket.filled(level, 1000 * SECOND - SLACK // 2) == level


def test_an_end_gives_no_token_back() -> None:
    standing = Standing(None, 3, 10, 1, 10, 5.0, 0, None)
    assert release_by_end(standing, 3, 0).number == 0


def test_a_refill_lets_go_for_the_tokens_that_came_since_and_not_for_those_that_were_promised_before() -> None:
    standing = Standing(None, 0, 10, 1, 10, 0.0, 0, 100_000)
    first = release_by_refill(standing, 100_000)
    assert first.number == 1
    # Nobody took it; a second look finds two tokens, of which one is promised.
    second = release_by_refill(first.then, 200_000)
    assert (first.then.look_at, second.number) == (200_000, 1)
    assert release_by_refill(first.then, 150_000).number == 0
