"""Reads Celery's `beat_schedule`, from the configuration in Python or from JSON. Celery itself is not needed.

Schedules are known by their traits: an interval has `run_every`, a crontab the fields that it was made of.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from tidewheel.cli.foreign.plan import Planned, name_of, unique_names
from tidewheel.errors import Invalid
from tidewheel.model.checks import duration_text
from tidewheel.triggers import parse_rule
from tidewheel.triggers.bounds import EPOCH

_FIELDS: Final = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
_EXAMPLE: Final = '{"nightly": {"task": "shop.report", "schedule": {"hour": "5", "minute": "0"}}}'
_MOST_URGENT: Final = 3
_LEAST_URGENT: Final = 6


def read_beat(schedule: object, *, timezone: str) -> list[Planned]:
    """Return what a `beat_schedule` runs."""
    if not isinstance(schedule, Mapping) or not schedule:
        raise Invalid("schedule", f"is no beat_schedule, which looks like {_EXAMPLE}")
    return unique_names(_entries(schedule, timezone))


def _entries(schedule: Mapping[Any, Any], timezone: str) -> Iterator[Planned]:
    for name, entry in schedule.items():
        if not isinstance(entry, Mapping) or not isinstance(entry.get("task"), str) or "schedule" not in entry:
            raise Invalid("schedule", f"entry {str(name)[:60]!r} must have a task and a schedule")
        yield _entry(str(name), entry, timezone)


def _entry(name: str, entry: Mapping[str, Any], timezone: str) -> Planned:
    when, note = _when(entry["schedule"], timezone)
    if entry.get("args"):
        note = note or "has arguments by position; give them names in kwargs"
    if not note and "cron" in when:
        note = _why_not(when)
    return Planned(
        source=name,
        name=name_of(name),
        kind=entry["task"],
        args=dict(entry.get("kwargs") or {}),
        when=when,
        options=_options(entry.get("options") or {}),
        note=note,
    )


def _when(schedule: object, timezone: str) -> tuple[dict[str, Any], str]:
    """Return when an entry is to run, or why that cannot be said here."""
    every = getattr(schedule, "run_every", schedule)
    if isinstance(every, int | float) and not isinstance(every, bool):
        every = timedelta(seconds=every)
    if isinstance(every, timedelta):
        return {"every": duration_text(every)}, ""
    if isinstance(schedule, str):
        return {"cron": schedule, "timezone": timezone}, ""
    fields = _fields(schedule)
    if fields is None:
        return {}, f"has a schedule of a kind that is not known here: {type(schedule).__name__}"
    if fields["day_of_month"] != "*" and fields["day_of_week"] != "*":
        return {}, "asks for a day of the month that is a certain weekday, and cron runs on either"
    return {"cron": " ".join(fields[field] for field in _FIELDS), "timezone": timezone}, ""


def _fields(schedule: object) -> dict[str, str] | None:
    if isinstance(schedule, Mapping):
        given = {field: schedule.get(field, "*") for field in _FIELDS}
        return _texts(given) if schedule and not schedule.keys() - set(_FIELDS) else None
    given = {field: getattr(schedule, f"_orig_{field}", None) for field in _FIELDS}
    return None if None in given.values() else _texts(given)


def _texts(fields: Mapping[str, Any]) -> dict[str, str]:
    return {field: str(value).replace(" ", "") for field, value in fields.items()}


def _why_not(when: Mapping[str, str]) -> str:
    try:
        parse_rule(when["cron"], when["timezone"], EPOCH)
    except Invalid as error:
        return f"cannot be read as cron: {error.why}"
    return ""


def _options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what has a counterpart here; Celery's priorities are taken as Redis has them, where 0 goes first."""
    found: dict[str, Any] = {}
    if isinstance(options.get("queue"), str):
        found["queue"] = options["queue"]
    priority = options.get("priority")
    if isinstance(priority, int):
        urgent = priority < _MOST_URGENT
        found["priority"] = "high" if urgent else "low" if priority > _LEAST_URGENT else "medium"
    return found
