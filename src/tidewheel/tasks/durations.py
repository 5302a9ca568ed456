"""Durations as people write them in code: a timedelta, a number of seconds, or a text such as `5m`."""

import math
from datetime import timedelta

from tidewheel.errors import Invalid
from tidewheel.model import checks


def parse_duration(value: object, field: str = "duration") -> timedelta:
    """Return a duration that is not negative, from a timedelta, seconds, or a text such as `90s`, `1h30m` or `2d`."""
    duration = _seconds(value, field) if isinstance(value, int | float) else checks.parse_duration(value, field)
    if duration < timedelta(0):
        raise Invalid(field, f"must not be negative, and {checks.duration_text(duration)} is")
    return duration


def _seconds(value: float, field: str) -> timedelta:
    if isinstance(value, bool) or not math.isfinite(value):
        raise Invalid(field, f"must be a number of seconds, not {value}")
    try:
        return timedelta(seconds=value)
    except OverflowError:
        raise Invalid(field, f"{value} seconds are longer than any duration can be") from None
