"""What a schedule is to record next: its occurrences up to some instant, and which of them run.

Pure, as the triggers are: the same schedule at the same time gives the same plan on every node. Occurrences that are
still to come run; of those whose time has passed the misfire policy decides.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.misfire import MAX_CATCH_UP, plan_catch_up
from tidewheel.model.schedule import Definition, Fate, Schedule, ScheduleSpec, check_schedule
from tidewheel.triggers.bounds import JUST_BEFORE
from tidewheel.triggers.rules import describe
from tidewheel.triggers.trigger import Trigger, from_json

AHEAD: Final = timedelta(minutes=1)
"""How far occurrences are written ahead."""
KEEP_OCCURRENCES: Final = timedelta(days=30)
"""How long they are kept. What was missed longer ago gets no record of its own if there is very much of it."""
MOST_AT_ONCE: Final = 2 * MAX_CATCH_UP
"""How many occurrences of a schedule one plan looks at."""


class Planned(msgspec.Struct, frozen=True):
    """One occurrence to record."""

    fire_at: datetime
    outcome: Fate = Fate.MADE
    reason: str = ""
    caught_up: bool = False
    """Whether it is one of all that are caught up with: its job waits for its turn, whatever else is alive."""


class Plan(msgspec.Struct, frozen=True):
    """What to record for a schedule, oldest first, and where it then stands."""

    schedule: Schedule
    occurrences: tuple[Planned, ...]
    next_fire_at: datetime | None

    @property
    def fired(self) -> int:
        """How many will have been recorded in all."""
        return self.schedule.fired + len(self.occurrences)


@lru_cache(maxsize=4096)
def _read(text: bytes) -> Trigger:
    return from_json(text)


def trigger_of(spec: ScheduleSpec) -> Trigger:
    """Return the trigger of a schedule, or refuse it."""
    return _read(bytes(spec.trigger))


def recurrence_of(spec: ScheduleSpec) -> str:
    """Say in words how a schedule recurs."""
    return describe(trigger_of(spec).rule)


def check_definition(spec: Definition) -> Definition:
    """Refuse definitions that cannot be stored, whose triggers cannot be read, or whose jobs could not be stored."""
    check_schedule(spec)
    trigger_of(spec)
    return spec


def fire_after(spec: ScheduleSpec, instant: datetime, fired: int = 0) -> datetime | None:
    """Return when a schedule fires next after an instant, None if it does not."""
    found = trigger_of(spec).next_due(instant, key=spec.name, fired=fired)
    return None if found is None else found.fire_at


def first_fire(spec: ScheduleSpec, now: datetime) -> datetime:
    """Return when a new schedule fires first, or refuse one that never will."""
    return check_fires(fire_after(spec, now), spec, now)


def fire_after_change(known: Schedule, spec: ScheduleSpec, now: datetime, fired: int) -> datetime | None:
    """Return when a schedule that has nothing due fires next by another definition; None if it does not.

    By the same rule each nominal instant fires once, though it be moved otherwise now: one that was still to come is
    not lost, even if its new time has passed, and one that has fired does not come again.
    """
    before, after = trigger_of(known), trigger_of(spec)
    found = after.next_due(now, key=spec.name, fired=fired)
    if before.rule == after.rule:
        coming = before.next_due(now, key=known.name, fired=fired)
        if coming is not None and coming.nominal <= now:
            found = after.next_after(coming.nominal - JUST_BEFORE, key=spec.name, fired=fired)
        elif found is not None and found.nominal <= now and before.covers(found.nominal):
            found = after.next_after(now, key=spec.name, fired=fired)
    return None if found is None else found.fire_at


def check_fires(found: datetime | None, spec: ScheduleSpec, now: datetime, fired: int = 0) -> datetime:
    """Return when a schedule fires next, or refuse one that never will."""
    if found is None:
        told = now.isoformat(timespec="seconds")
        raise Invalid("trigger", f"never fires after {told}: {_why_never(spec, now, fired)}")
    return found


def _why_never(spec: ScheduleSpec, now: datetime, fired: int) -> str:
    trigger = trigger_of(spec)
    if trigger.max_occurrences is not None and fired >= trigger.max_occurrences:
        return f"it has had its {trigger.max_occurrences} occurrences"
    if trigger.end is not None and trigger.end <= now:
        return f"its end was {trigger.end.isoformat(timespec='seconds')}"
    return describe(trigger.rule)


def plan(schedule: Schedule, now: datetime, until: datetime) -> Plan:
    """Return what to record for a schedule whose next occurrence falls not after `until`."""
    first = schedule.next_fire_at
    if first is None or first > until:
        return Plan(schedule, (), first)
    trigger = trigger_of(schedule)
    later = trigger.between(first, until, limit=MOST_AT_ONCE - 1, key=schedule.name, fired=schedule.fired + 1)
    times = [first, *(occurrence.fire_at for occurrence in later if occurrence.fire_at <= until)]
    if len(times) == MOST_AT_ONCE and times[-1] <= now:
        return _first_of_very_many(schedule, times, now)
    return _plan_of(schedule, _decided(schedule, times, now))


def plan_due(schedule: Schedule, now: datetime) -> Plan | None:
    """Return what to record before a schedule is changed: what is due by its definition so far, if anything is.

    Of one that cannot be planned any more nothing is known to be due; a change may be what mends it.
    """
    if schedule.next_fire_at is None or schedule.next_fire_at > now:
        return None
    try:
        return plan(schedule, now, now)
    except Invalid:
        return None


def plans_due(schedules: Iterable[Schedule], now: datetime) -> list[Plan]:
    """Return the plans of those of which something is due."""
    return [due for schedule in schedules if (due := plan_due(schedule, now)) is not None]


def _decided(schedule: Schedule, times: Sequence[datetime], now: datetime) -> list[Planned]:
    caught = plan_catch_up([at for at in times if at <= now], schedule.misfire, now)
    missed = [Planned(missed.fire_at, Fate.MISSED, missed.reason) for missed in caught.missed]
    caught_up = schedule.misfire.policy == "all"
    run = [Planned(at, caught_up=caught_up) for at in caught.run]
    return [*missed, *run, *(Planned(at) for at in times if at > now)]


def _first_of_very_many(schedule: Schedule, times: Sequence[datetime], now: datetime) -> Plan:
    """Return the plan for the first half: as more follow it than ever run at once, all of it was missed."""
    oldest = now - KEEP_OCCURRENCES
    trigger = trigger_of(schedule)
    if times[0] < oldest and trigger.max_occurrences is None:
        recent = trigger.between(oldest, now, limit=MOST_AT_ONCE, key=schedule.name)
        if len(recent) == MOST_AT_ONCE:
            until = recent[0].fire_at
            reason = f"nobody could make its job, nor those of all that followed until {until.isoformat()}"
            return Plan(schedule, (Planned(times[0], Fate.MISSED, reason),), until)
    return _plan_of(schedule, _decided(schedule, times, now)[:MAX_CATCH_UP])


def _plan_of(schedule: Schedule, occurrences: Sequence[Planned]) -> Plan:
    fired = schedule.fired + len(occurrences)
    following = trigger_of(schedule).next_after(occurrences[-1].fire_at, key=schedule.name, fired=fired)
    return Plan(schedule, tuple(occurrences), None if following is None else following.fire_at)
