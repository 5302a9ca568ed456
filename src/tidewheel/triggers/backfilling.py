"""The past of a schedule: which of its occurrences a backfill stands for."""

from datetime import datetime, timedelta
from typing import Final

from tidewheel.errors import Invalid
from tidewheel.model.schedule import Schedule
from tidewheel.triggers.bounds import instant
from tidewheel.triggers.planning import KEEP_OCCURRENCES, trigger_of

MAX_BACKFILL: Final = 10_000
"""How many occurrences one backfill makes."""
LONGEST_BACKFILL: Final = timedelta(days=3653)
"""Ten years."""


def past_of(schedule: Schedule, since: datetime, until: datetime, now: datetime) -> list[datetime]:
    """Return when a schedule would have fired by its rule after one instant and not after another, nor after now."""
    first, last = instant("since", since), min(instant("until", until), now)
    if last <= first:
        raise Invalid("until", "must be after since, and since before now")
    if last - first > LONGEST_BACKFILL:
        raise Invalid("since", "a backfill reaches over ten years at the most")
    _check_recorded(schedule, first, last, now)
    found = trigger_of(schedule).due_between(first, last, limit=MAX_BACKFILL + 1, key=schedule.name)
    if len(found) > MAX_BACKFILL:
        reached = found[MAX_BACKFILL - 1].fire_at.isoformat()
        why = f"there are more than {MAX_BACKFILL} occurrences, which is the most at once; go until {reached} first"
        raise Invalid("until", why)
    return [each.fire_at for each in found]


def _check_recorded(schedule: Schedule, first: datetime, last: datetime, now: datetime) -> None:
    """Refuse a time of which nobody knows any more what has run: it would run a second time."""
    made, kept = schedule.created_at, now - KEEP_OCCURRENCES
    if first < kept and last >= made and made < kept:
        why = f"what ran between {_told(made)}, when the schedule was made, and {_told(kept)} is recorded no more"
        raise Invalid("since", f"{why}: it would run again; begin after that, end before, or name the times")


def _told(instant: datetime) -> str:
    return instant.isoformat(timespec="seconds")
