"""Coming occurrences for people: in local time, with a word about days on which clocks are set."""

from collections.abc import Iterable
from datetime import UTC, datetime, time, timedelta
from typing import Final, Literal
from zoneinfo import ZoneInfo

import msgspec

from tidewheel.model.checks import check_count, duration_text
from tidewheel.model.schedule import Schedule
from tidewheel.triggers.bounds import LATEST, aware
from tidewheel.triggers.planning import trigger_of
from tidewheel.triggers.rules import Cron
from tidewheel.triggers.trigger import Occurrence, Trigger
from tidewheel.triggers.zones import SECOND, OffsetChange, first_change, wall_at, zone_named

Change = Literal["gap", "fold"]
"""A gap is wall time that is skipped, a fold is wall time that comes twice."""

MOST_SHOWN: Final = 1000
_MOST_RECORDED: Final = 2000
_DAY: Final = timedelta(days=1)
_INSTANT: Final = timedelta.resolution


class Preview(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One occurrence that is to come, or that would have been."""

    fire_at: datetime
    """When it is due, in UTC."""
    local: datetime
    """The same in the zone of its schedule."""
    change: Change | None = None
    """Whether wall time is skipped or repeated on its day."""
    note: str = ""
    """What that means for it, in words."""


def coming_of(schedule: Schedule, now: datetime, count: int, last: datetime | None = None) -> list[Preview]:
    """Return the next occurrences of a schedule; `last` is the last that was recorded, if there is none to record."""
    check_count("count", count, 1, MOST_SHOWN)
    trigger, fired = trigger_of(schedule), schedule.fired
    recorded_until = last if schedule.next_fire_at is None else schedule.next_fire_at - _INSTANT
    if recorded_until is not None and recorded_until > now and fired:
        # Some of those that were recorded are still to come.
        recorded = trigger.due_between(now, recorded_until, limit=_MOST_RECORDED, key=schedule.name)
        fired -= min(fired, len(recorded))
    return preview_of(trigger, trigger.due_between(now, LATEST, limit=count, key=schedule.name, fired=fired))


def between_of(schedule: Schedule, since: datetime, until: datetime, limit: int) -> list[Preview]:
    """Return the first occurrences of a schedule by its rule after one instant and not after another."""
    check_count("limit", limit, 1, MOST_SHOWN)
    first, last, trigger = aware("since", since), aware("until", until), trigger_of(schedule)
    return preview_of(trigger, trigger.due_between(first, last, limit=limit, key=schedule.name))


def preview_of(trigger: Trigger, occurrences: Iterable[Occurrence]) -> list[Preview]:
    """Tell people of occurrences of a trigger."""
    zone = zone_named(trigger.rule.zone) if isinstance(trigger.rule, Cron) else zone_named("UTC")
    return [_preview(zone, occurrence) for occurrence in occurrences]


def _preview(zone: ZoneInfo, occurrence: Occurrence) -> Preview:
    local = occurrence.fire_at.astimezone(zone)
    change = _change_on_day_of(zone, occurrence.nominal)
    if change is None:
        return Preview(fire_at=occurrence.fire_at, local=local)
    kind: Change = "gap" if change.size > timedelta(0) else "fold"
    return Preview(fire_at=occurrence.fire_at, local=local, change=kind, note=_note(change, zone, occurrence.nominal))


def _note(change: OffsetChange, zone: ZoneInfo, nominal: datetime) -> str:
    first, last = sorted((change.wall_before, change.wall_after))
    hours = f"{first:%H:%M} to {last:%H:%M}"
    if change.size > timedelta(0):
        told = f"clocks go forward by {duration_text(change.size)}: {hours} does not exist"
        return f"{told}; runs right after it" if nominal == change.at else told
    told = f"clocks go back by {duration_text(-change.size)}: {hours} comes twice"
    if not first <= wall_at(zone, nominal) < last:
        return told
    return f"{told}; this is the {'first' if nominal < change.at else 'second'} time"


def _change_on_day_of(zone: ZoneInfo, instant: datetime) -> OffsetChange | None:
    """Return the change within the zone's calendar day around an instant, see `zones.falls_on_change_day`."""
    day = wall_at(zone, instant).date()
    begins, ends = (datetime.combine(date, time(), tzinfo=zone).astimezone(UTC) for date in (day, day + _DAY))
    return first_change(zone, begins - SECOND, ends - SECOND)
