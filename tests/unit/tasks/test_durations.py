from datetime import timedelta
from typing import Any

import pytest

from tidewheel.errors import Invalid
from tidewheel.tasks.durations import parse_duration


@pytest.mark.parametrize(
    ("value", "duration"),
    [
        (timedelta(days=1), timedelta(days=1)),
        (0, timedelta(0)),
        (90, timedelta(seconds=90)),
        (0.5, timedelta(milliseconds=500)),
        ("90s", timedelta(seconds=90)),
        ("5m", timedelta(minutes=5)),
        ("1h30m", timedelta(minutes=90)),
        ("2d", timedelta(days=2)),
    ],
)
def test_durations_are_timedeltas_seconds_or_text(value: Any, duration: timedelta) -> None:
    assert parse_duration(value, "wait") == duration


@pytest.mark.parametrize(
    "value", ["", "soon", "5", "m5", "-5m", None, True, -1, timedelta(-1), float("nan"), float("inf"), 1e300, [5]]
)
def test_anything_else_is_refused_with_the_name_of_the_field(value: Any) -> None:
    with pytest.raises(Invalid) as refused:
        parse_duration(value, "wait")
    assert refused.value.field == "wait"
