"""What every store promises about schedules and their occurrences.

The rules of `store.base` hold here, too. A schedule is locked before any job of it.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Protocol
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_count, check_duration, check_instant, check_key
from tidewheel.model.priority import Priority
from tidewheel.model.schedule import Declared, Occurrence, PastOccurrence, Schedule, ScheduleSpec, Triggered
from tidewheel.triggers.backfilling import MAX_BACKFILL
from tidewheel.triggers.planning import Plan

SHARDS: Final = 8
"""Into how many parts the schedules are split, so that several nodes can look after them."""
MAX_PAGE: Final = 1000
_LONGEST_BACKFILL: Final = timedelta(days=30)
"""Over how long a backfill may be spread: its jobs wait in the store all the while."""


class Unreadable(NamedTuple):
    """A schedule that this version of the program cannot read."""

    schedule_id: UUID
    version: int
    why: str


class Ahead(msgspec.Struct, frozen=True):
    """What is to be done for the schedules of a shard."""

    now: datetime
    schedules: list[Schedule]
    """Those whose next occurrence is near, nearest first."""
    next_fire_at: datetime | None = None
    """When the first of the others fires; only known if the list is not full."""
    next_decision: datetime | None = None
    """When the first occurrence becomes due whose overlap is still to be decided."""
    unreadable: Sequence[Unreadable] = ()
    """Those that are near as well, and count for the limit."""


class Backfill(msgspec.Struct, frozen=True, kw_only=True):
    """Occurrences of the past that are to run."""

    times: Sequence[datetime]
    spacing: timedelta = timedelta(0)
    """How far their jobs are apart, beginning now."""
    priority: Priority | None = None
    """None for that of the schedule."""
    dry_run: bool = False
    """Whether nothing is to be written."""


class ScheduleStore(Protocol):
    """For whoever makes schedules and steers them."""

    async def create_schedule(self, spec: ScheduleSpec) -> Schedule:
        """Add a schedule; it fires for the first time after now.

        Raises Invalid, also if it would never fire, and NameTaken if the tenant has a schedule of that name.
        """
        ...

    async def change_schedule(
        self, schedule_id: UUID, spec: ScheduleSpec, *, version: int, tenant: str | None = None
    ) -> Schedule:
        """Give a schedule another definition, if it is still at that version; the tenant stays the same.

        What is due by now is recorded by the old definition, with its policies. Occurrences that were written ahead
        and are not due are taken back, their jobs cancelled; from now on it fires by the new definition. What is due or
        runs goes on. Raises Invalid, NotFound, NameTaken, and StaleVersion.
        """
        ...

    async def pause_schedule(self, schedule_id: UUID, *, tenant: str | None = None) -> Schedule:
        """Let a schedule fire no more; occurrences that were written ahead are taken back. Raises NotFound.

        What is due by now is recorded before.
        One that is paused stays as it is.
        """
        ...

    async def resume_schedule(self, schedule_id: UUID, *, tenant: str | None = None) -> Schedule:
        """Let a paused schedule fire again, from now on: what fell into the pause was not missed. Raises NotFound."""
        ...

    async def delete_schedule(
        self, schedule_id: UUID, *, version: int | None = None, tenant: str | None = None
    ) -> None:
        """Remove a schedule, and cancel all of its jobs that have not started. Raises NotFound and StaleVersion.

        Its jobs stay in history. Its occurrences can be asked for no more.
        """
        ...

    async def trigger_schedule(
        self, schedule_id: UUID, *, key: str | None = None, tenant: str | None = None
    ) -> Triggered:
        """Make a job at once, also of a paused schedule, and record that as a manual occurrence. Raises NotFound.

        It is never skipped: at the limit it waits for its turn. The planned occurrences are as they were. A key is an
        idempotency key of its job, as with a submit: one that was seen before with the same schedule answers with the
        first occurrence, and with any other request it raises KeyReused.
        """
        ...

    async def backfill_schedule(
        self, schedule_id: UUID, backfill: Backfill, *, version: int, tenant: str | None = None
    ) -> list[Occurrence]:
        """Make jobs for occurrences of the past and return them, oldest first.

        Those that have run, or wait to, are left out, as far as they are recorded; those that were missed or skipped
        run now. Of a schedule with `max_occurrences` there are no others than those that are recorded. The jobs are
        labelled `fire_at` with the time that they stand for, and are outside the limit of the schedule. Raises Invalid,
        NotFound and StaleVersion.
        """
        ...

    async def declare_schedules(self, app: str, specs: Sequence[ScheduleSpec]) -> Declared:
        """Let the schedules of an app be as its code declares them, and say what was done.

        New ones are made, those with another definition are changed, and those as declared are not touched, however
        many workers come with the same code. One whose name belongs to someone else is left alone, and a
        new one that would never fire is not made; one that is known and would never fire again is changed, and ends.
        What the app declared before and does no more goes on, but is marked as orphaned.
        """
        ...

    async def get_schedule(self, schedule_id: UUID, *, tenant: str | None = None) -> Schedule:
        """Return a schedule. Raises NotFound."""
        ...

    async def find_schedule(self, name: str, *, tenant: str) -> Schedule:
        """Return the schedule of that name. Raises NotFound."""
        ...

    async def schedules(
        self, *, tenant: str | None = None, limit: int = 50, after: UUID | None = None
    ) -> list[Schedule]:
        """Return schedules, oldest first, beginning after the id `after`.

        Those that a newer version has written in words unknown to this one are left out.
        """
        ...

    async def coming_schedules(self, *, tenant: str, limit: int = 50) -> list[Schedule]:
        """Return the schedules of a tenant that fire next, the next first."""
        ...

    async def past_occurrences(
        self, schedule_ids: Sequence[UUID], *, each: int = 10, tenant: str | None = None
    ) -> list[PastOccurrence]:
        """Return the last occurrences of each of some schedules that were due, latest first, and what became of them.

        Schedules that are not there have none.
        """
        ...

    async def occurrences(
        self, schedule_id: UUID, *, limit: int = 50, before: datetime | None = None, tenant: str | None = None
    ) -> list[Occurrence]:
        """Return the occurrences of a schedule, latest first, beginning before `before`. Raises NotFound.

        They are kept for 30 days from when they were recorded.
        """
        ...


class OccurrenceStore(Protocol):
    """For the keeper: making the jobs of schedules."""

    async def look_ahead(self, shard: int, within: timedelta, *, limit: int = 100) -> Ahead:
        """Return the schedules of a shard that fire within that time from now, or should have fired."""
        ...

    async def record_occurrences(self, plans: Sequence[Plan]) -> int:
        """Record occurrences and make their jobs, and return how many were recorded.

        A plan counts only if its schedule is at the version and the next occurrence that it was made from; an
        occurrence that was recorded before is left as it is, and no second job is made for it. So it does no harm if
        two do this. A plan whose jobs cannot be made is recorded as missed, with the reason.
        """
        ...

    async def decide_overlaps(self, shard: int, *, limit: int = 500) -> int:
        """Decide by the overlap policies about occurrences that have become due, and return how many there were.

        Each is decided once. One that is to be skipped has its job ended as `skipped` and says so with the reason, if
        it has not started by then; others make room by cancelling earlier ones. Until it is decided, and afterwards,
        the limit of the schedule holds: a job above it waits.
        """
        ...

    async def retire_occurrences(self, *, limit: int = 10_000) -> int:
        """Remove occurrences that were recorded longer than 30 days ago, and return how many."""
        ...


def shard_of(schedule_id: UUID) -> int:
    """Return the shard of a schedule; the low bits of an id are random."""
    return schedule_id.int % SHARDS


def check_trigger_key(key: str | None) -> None:
    """Refuse what cannot be an idempotency key."""
    if key is not None:
        check_key("key", key)


def check_schedule_page(limit: int) -> int:
    """Refuse pages that are empty or too long."""
    return check_count("limit", limit, 1, MAX_PAGE)


def check_occurrence_page(limit: int, before: datetime | None) -> None:
    """Refuse pages of occurrences that are empty or too long, or begin at no instant."""
    check_schedule_page(limit)
    if before is not None:
        check_instant("before", before)


def check_backfill(backfill: Backfill) -> list[datetime]:
    """Return the times of a backfill in order, or refuse what would fill the store."""
    if len(backfill.times) > MAX_BACKFILL:
        raise Invalid("times", f"at most {MAX_BACKFILL} occurrences in one backfill, not {len(backfill.times)}")
    check_duration("spacing", backfill.spacing, timedelta(0), _LONGEST_BACKFILL)
    check_duration("spacing", backfill.spacing * len(backfill.times), timedelta(0), _LONGEST_BACKFILL)
    return sorted({check_instant("times", at) for at in backfill.times})


async def last_recorded(store: ScheduleStore, schedule: Schedule) -> datetime | None:
    """Return the last occurrence of a schedule that has none to record, for previews; of others its next one tells."""
    if schedule.next_fire_at is not None:
        return None
    recorded = await store.occurrences(schedule.id, limit=1, tenant=schedule.tenant)
    return recorded[0].fire_at if recorded else None
