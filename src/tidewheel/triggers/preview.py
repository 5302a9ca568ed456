"""Coming occurrences for people: in local time, with a word about days on which clocks are set."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, Literal
from zoneinfo import ZoneInfo

import msgspec

from tidewheel.model.checks import check_count, duration_text
from tidewheel.model.schedule import Schedule
from tidewheel.triggers.bounds import JUST_BEFORE, LATEST, NOTHING, aware
from tidewheel.triggers.pattern import pattern_of
from tidewheel.triggers.planning import trigger_of
from tidewheel.triggers.rules import Cron
from tidewheel.triggers.trigger import Occurrence, Trigger
from tidewheel.triggers.zones import SECOND, OffsetChange, change_on_day_of, first_change, wall_at, zone_named

Change = Literal["gap", "fold"]
"""A gap is wall time that is skipped, a fold is wall time that comes twice."""

MOST_SHOWN: Final = 1000
_MOST_RECORDED: Final = 2000
_MOST_COUNTED: Final = 10_000
"""How many are counted between now and a time that is asked for; past more of them, as many are shown as it gives."""
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
    """Return the next occurrences of a schedule; `last` is the last that was recorded, if there is none to record.

    Of one that is paused they are those that would come if it were resumed now.
    """
    check_count("count", count, 1, MOST_SHOWN)
    trigger, fired = trigger_of(schedule), _fired(schedule, now, last)
    return preview_of(trigger, trigger.due_between(now, LATEST, limit=count, key=schedule.name, fired=fired))


def between_of(
    schedule: Schedule, since: datetime, until: datetime, limit: int, *, now: datetime, last: datetime | None = None
) -> list[Preview]:
    """Return the first occurrences of a schedule by its rule after one instant and not after another.

    Those that are to come are the same that `coming_of` tells of, so that there are no more than may still be.
    """
    check_count("limit", limit, 1, MOST_SHOWN)
    first, end, trigger = aware("since", since), aware("until", until), trigger_of(schedule)
    past = trigger.due_between(first, min(end, now), limit=limit, key=schedule.name) if first < now else ()
    fired = _fired(schedule, now, last)
    if first > now and trigger.max_occurrences is not None:
        fired += len(trigger.due_between(now, first, limit=_MOST_COUNTED, key=schedule.name, fired=fired))
    coming = trigger.due_between(max(first, now), end, limit=limit, key=schedule.name, fired=fired)
    return preview_of(trigger, [*past, *coming][:limit])


def _fired(schedule: Schedule, now: datetime, last: datetime | None) -> int:
    """Return how many occurrences were recorded whose time has come."""
    recorded_until = last if schedule.next_fire_at is None else schedule.next_fire_at - _INSTANT
    if recorded_until is None or recorded_until <= now or not schedule.fired:
        return schedule.fired
    coming = trigger_of(schedule).due_between(now, recorded_until, limit=_MOST_RECORDED, key=schedule.name)
    return schedule.fired - min(schedule.fired, len(coming))


def preview_of(trigger: Trigger, occurrences: Iterable[Occurrence]) -> list[Preview]:
    """Tell people of occurrences of a trigger."""
    if not isinstance(trigger.rule, Cron):
        return [Preview(fire_at=each.fire_at, local=each.fire_at) for each in occurrences]
    return [_preview(trigger.rule, occurrence) for occurrence in occurrences]


def _preview(rule: Cron, occurrence: Occurrence) -> Preview:
    zone, nominal = zone_named(rule.zone), occurrence.nominal
    local = occurrence.fire_at.astimezone(zone)
    moved = _change_that_moved(rule, zone, nominal)
    change = moved or change_on_day_of(zone, nominal)
    if change is None:
        return Preview(fire_at=occurrence.fire_at, local=local)
    if change.size > NOTHING:
        note = f"{_gap(change)}; runs right after it" if moved else _gap(change)
        return Preview(fire_at=occurrence.fire_at, local=local, change="gap", note=note)
    return Preview(fire_at=occurrence.fire_at, local=local, change="fold", note=_fold(change, zone, nominal))


def _change_that_moved(rule: Cron, zone: ZoneInfo, nominal: datetime) -> OffsetChange | None:
    """Return the change that skipped the time of an occurrence, which so runs right after it."""
    change = first_change(zone, nominal - SECOND, nominal)
    if change is None or change.size < NOTHING:
        return None
    wall = pattern_of(rule.expression).next_wall(change.wall_after - JUST_BEFORE)
    return None if wall == change.wall_after else change


def _gap(change: OffsetChange) -> str:
    return f"clocks go forward by {duration_text(change.size)}: {_skipped(change)} does not exist"


def _skipped(change: OffsetChange) -> str:
    first, last = change.wall_before, change.wall_after
    form = "%Y-%m-%d %H:%M" if change.size >= _DAY else "%H:%M"
    return f"{first:{form}} to {last:{form}}"


def _fold(change: OffsetChange, zone: ZoneInfo, nominal: datetime) -> str:
    first, last = change.wall_after, change.wall_before
    told = f"clocks go back by {duration_text(-change.size)}: {first:%H:%M} to {last:%H:%M} comes twice"
    if not first <= wall_at(zone, nominal) < last:
        return told
    return f"{told}; this is the {'first' if nominal < change.at else 'second'} time"
