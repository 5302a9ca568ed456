"""Durations as people write them."""

from datetime import timedelta

import pytest

from tidewheel.errors import Invalid
from tidewheel.tasks.durations import parse_duration


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (timedelta(minutes=1), 60),
        (90, 90),
        (0.25, 0.25),
        (0, 0),
        ("90s", 90),
        ("5m", 300),
        ("1h30m", 5400),
        ("2d", 172_800),
        ("250ms", 0.25),
    ],
)
def test_a_duration_may_be_written_in_many_ways(value: object, seconds: float) -> None:
    assert parse_duration(value, "delay") == timedelta(seconds=seconds)


@pytest.mark.parametrize("value", [True, None, "", "5", "m5", "1.5h", "-5s", float("nan"), float("inf"), 1e300, [5]])
def test_anything_else_is_refused_by_the_name_of_the_field(value: object) -> None:
    with pytest.raises(Invalid) as caught:
        parse_duration(value, "delay")

    assert caught.value.field == "delay"
