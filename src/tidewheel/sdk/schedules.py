"""Schedules at run time: `app.schedules`. Each question has an async form and a synchronous twin."""

from datetime import datetime
from typing import Any, TypeAlias, Unpack, cast
from uuid import UUID

from tidewheel.errors import Invalid
from tidewheel.model.checks import shown
from tidewheel.model.job import JobSpec
from tidewheel.model.priority import parse_priority
from tidewheel.model.schedule import Occurrence, Schedule
from tidewheel.sdk.desk import Desk
from tidewheel.sdk.job import Job
from tidewheel.sdk.options import PriorityWish
from tidewheel.sdk.task import Signature, Task
from tidewheel.store.base import Store
from tidewheel.store.scheduling import Backfill, last_recorded
from tidewheel.tasks.durations import Duration, parse_duration
from tidewheel.tasks.scheduling import ScheduleOptions, changed, schedule_of
from tidewheel.triggers.backfilling import past_of
from tidewheel.triggers.preview import MOST_SHOWN, Preview, between_of, coming_of

Call: TypeAlias = Task[Any, Any] | Signature[Any]
Which: TypeAlias = Schedule | UUID | str
"""A schedule, its id, or its name."""

# Within the class `list` is a method.
ScheduleList: TypeAlias = list[Schedule]
OccurrenceList: TypeAlias = list[Occurrence]
PreviewList: TypeAlias = list[Preview]


class Schedules:
    """The schedules of an app's tenant."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    # Making and changing them

    async def acreate(self, call: Call, **options: Unpack[ScheduleOptions]) -> Schedule:
        """Make a schedule of a task or of a call: `app.schedules.create(report.s("eu"), cron="0 5 * * *")`."""
        job = _job_of(call, options.get("name"))
        spec = schedule_of(job, options)

        async def create(store: Store) -> Schedule:
            await self._desk.declare_limits(store, [job.kind])
            return await store.create_schedule(spec)

        return await self._desk.use(create)

    async def achange(
        self, which: Which, call: Call | None = None, *, version: int | None = None, **options: Unpack[ScheduleOptions]
    ) -> Schedule:
        """Change a schedule; what is not given stays as it is, but `cron`, `every` and `at` bring all of their bounds.

        With `version` only if it is still at that one; a `Schedule` carries its own.
        """
        known = which if isinstance(which, Schedule) else await self.aget(which)
        job = None if call is None else _job_of(call, options.get("name", known.name))
        spec = changed(known.definition, job, options)
        expected = known.version if version is None else version

        async def change(store: Store) -> Schedule:
            await self._desk.declare_limits(store, [] if job is None else [job.kind])
            return await store.change_schedule(known.id, spec, version=expected, tenant=self._desk.tenant)

        return await self._desk.use(change)

    async def apause(self, which: Which) -> Schedule:
        """Let a schedule fire no more, until it is resumed."""
        schedule_id = await self._id(which)
        return await self._desk.use(lambda store: store.pause_schedule(schedule_id, tenant=self._desk.tenant))

    async def aresume(self, which: Which) -> Schedule:
        """Let a paused schedule fire again, from now on."""
        schedule_id = await self._id(which)
        return await self._desk.use(lambda store: store.resume_schedule(schedule_id, tenant=self._desk.tenant))

    async def adelete(self, which: Which, *, version: int | None = None) -> None:
        """Remove a schedule, and cancel those of its jobs that have not started."""
        schedule_id = await self._id(which)
        await self._desk.use(
            lambda store: store.delete_schedule(schedule_id, version=version, tenant=self._desk.tenant)
        )

    async def atrigger(self, which: Which, *, key: str | None = None) -> Job[Any]:
        """Make a job of a schedule now, also if it is paused; its plan stays as it is.

        The same idempotency key twice makes one job.
        """
        schedule_id, tenant = await self._id(which), self._desk.tenant
        made = await self._desk.use(lambda store: store.trigger_schedule(schedule_id, key=key, tenant=tenant))
        return Job(self._desk, cast("UUID", made.occurrence.job_id), created=made.created)

    # Looking at them

    async def aget(self, which: Which) -> Schedule:
        """Return a schedule by its id or name, as it is now."""
        if isinstance(which, str):
            return await self._desk.use(lambda store: store.find_schedule(which, tenant=self._desk.tenant))
        schedule_id = _id_in(which)
        return await self._desk.use(lambda store: store.get_schedule(schedule_id, tenant=self._desk.tenant))

    async def alist(self, *, limit: int = 50, after: Which | None = None) -> list[Schedule]:
        """Return schedules, oldest first, beginning after one."""
        begin = None if after is None else await self._id(after)
        return await self._desk.use(lambda store: store.schedules(tenant=self._desk.tenant, limit=limit, after=begin))

    async def aoccurrences(self, which: Which, *, limit: int = 50, before: datetime | None = None) -> list[Occurrence]:
        """Return what became of the occurrences of a schedule, latest first."""
        schedule_id = await self._id(which)
        return await self._desk.use(
            lambda store: store.occurrences(schedule_id, limit=limit, before=before, tenant=self._desk.tenant)
        )

    async def apreview(self, which: Which, count: int = 10) -> list[Preview]:
        """Return the next occurrences of a schedule, with a note on days on which clocks are set."""
        schedule = await self.aget(which)
        last = await self._desk.use(lambda store: last_recorded(store, schedule))
        return coming_of(schedule, self._desk.now(), count, last)

    async def abetween(
        self, which: Which, since: datetime, until: datetime, *, limit: int = MOST_SHOWN
    ) -> list[Preview]:
        """Return the first occurrences of a schedule by its rule after one instant and not after another."""
        schedule = await self.aget(which)
        last = await self._desk.use(lambda store: last_recorded(store, schedule))
        return between_of(schedule, since, until, limit, now=self._desk.now(), last=last)

    # Making up for the past

    async def abackfill(
        self,
        which: Which,
        since: datetime,
        until: datetime,
        *,
        every: Duration = 0,
        priority: PriorityWish | None = None,
        dry_run: bool = False,
    ) -> list[Occurrence]:
        """Run what a schedule would have run after one instant and not after another, and did not; return what that is.

        The jobs are `every` so long apart, and have the label `fire_at`. A dry run only tells.
        """
        schedule = await self.aget(which)
        wish = Backfill(
            times=past_of(schedule, since, until, self._desk.now()),
            spacing=parse_duration(every, "every"),
            priority=None if priority is None else parse_priority(priority),
            dry_run=dry_run,
        )
        return await self._desk.use(
            lambda store: store.backfill_schedule(schedule.id, wish, version=schedule.version, tenant=self._desk.tenant)
        )

    async def _id(self, which: Which) -> UUID:
        return (await self.aget(which)).id if isinstance(which, str) else _id_in(which)

    # The synchronous twins

    def create(self, call: Call, **options: Unpack[ScheduleOptions]) -> Schedule:
        """Make a schedule of a task or of a call: `app.schedules.create(report.s("eu"), cron="0 5 * * *")`."""
        return self._desk.run(self.acreate(call, **options))

    def change(
        self, which: Which, call: Call | None = None, *, version: int | None = None, **options: Unpack[ScheduleOptions]
    ) -> Schedule:
        """Change a schedule; what is not given stays as it is, but `cron`, `every` and `at` bring all of their bounds.

        With `version` only if it is still at that one; a `Schedule` carries its own.
        """
        return self._desk.run(self.achange(which, call, version=version, **options))

    def pause(self, which: Which) -> Schedule:
        """Let a schedule fire no more, until it is resumed."""
        return self._desk.run(self.apause(which))

    def resume(self, which: Which) -> Schedule:
        """Let a paused schedule fire again, from now on."""
        return self._desk.run(self.aresume(which))

    def delete(self, which: Which, *, version: int | None = None) -> None:
        """Remove a schedule, and cancel those of its jobs that have not started."""
        self._desk.run(self.adelete(which, version=version))

    def trigger(self, which: Which, *, key: str | None = None) -> Job[Any]:
        """Make a job of a schedule now, also if it is paused; its plan stays as it is.

        The same idempotency key twice makes one job.
        """
        return self._desk.run(self.atrigger(which, key=key))

    def get(self, which: Which) -> Schedule:
        """Return a schedule by its id or name, as it is now."""
        return self._desk.run(self.aget(which))

    def list(self, *, limit: int = 50, after: Which | None = None) -> ScheduleList:
        """Return schedules, oldest first, beginning after one."""
        return self._desk.run(self.alist(limit=limit, after=after))

    def occurrences(self, which: Which, *, limit: int = 50, before: datetime | None = None) -> OccurrenceList:
        """Return what became of the occurrences of a schedule, latest first."""
        return self._desk.run(self.aoccurrences(which, limit=limit, before=before))

    def preview(self, which: Which, count: int = 10) -> PreviewList:
        """Return the next occurrences of a schedule, with a note on days on which clocks are set."""
        return self._desk.run(self.apreview(which, count))

    def between(self, which: Which, since: datetime, until: datetime, *, limit: int = MOST_SHOWN) -> PreviewList:
        """Return the first occurrences of a schedule by its rule after one instant and not after another."""
        return self._desk.run(self.abetween(which, since, until, limit=limit))

    def backfill(
        self,
        which: Which,
        since: datetime,
        until: datetime,
        *,
        every: Duration = 0,
        priority: PriorityWish | None = None,
        dry_run: bool = False,
    ) -> OccurrenceList:
        """Run what a schedule would have run after one instant and not after another, and did not; return what that is.

        The jobs are `every` so long apart, and have the label `fire_at`. A dry run only tells.
        """
        return self._desk.run(self.abackfill(which, since, until, every=every, priority=priority, dry_run=dry_run))


def _id_in(which: object) -> UUID:
    if isinstance(which, Schedule):
        return which.id
    if not isinstance(which, UUID):
        raise Invalid("which", f"must be a schedule, its id or its name, not {type(which).__name__}")
    return which


def _job_of(call: Call, schedule: str | None) -> JobSpec:
    if isinstance(call, Task):
        call = call.si()
    if not isinstance(call, Signature):
        raise Invalid("call", f"must be a task or a call such as task.s(…), not {shown(call)}")
    if call.connection is not None:
        raise Invalid("connection", "is for single jobs")
    return call.spec(schedule=schedule)
