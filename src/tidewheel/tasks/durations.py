"""Durations as people write them in code: a timedelta, a text such as `1h30m`, or a number of seconds."""

from datetime import timedelta
from typing import TypeAlias

from tidewheel.errors import Invalid
from tidewheel.model import checks

Duration: TypeAlias = timedelta | str | float
"""A timedelta, a text such as `250ms`, `90s`, `5m`, `1h30m` or `2d`, or seconds."""


def parse_duration(value: object, field: str = "duration") -> timedelta:
    """Return the duration that a timedelta, a text or a number of seconds stands for."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            value = timedelta(seconds=value)
        except (OverflowError, ValueError):
            raise Invalid(field, f"must be a number of seconds that makes a duration, not {value}") from None
    duration = checks.parse_duration(value, field)
    if duration < timedelta(0):
        raise Invalid(field, f"must not be negative, and is {checks.duration_text(duration)}")
    return duration
