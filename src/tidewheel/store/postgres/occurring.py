"""Occurrences of schedules: recorded with their jobs, decided when they are due."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec

from tidewheel.errors import NotFound
from tidewheel.model.job import JobSpec
from tidewheel.model.overlap import Alive, Overlaps, decide_due
from tidewheel.model.schedule import Fate, Occurrence, Schedule, Triggered, trigger_fingerprint
from tidewheel.model.states import WAITING, Cause
from tidewheel.model.submission import Prepared, prepare
from tidewheel.store.bell import SOON
from tidewheel.store.faults import Fault, silent
from tidewheel.store.postgres.connection import SQL, Connection
from tidewheel.store.postgres.ending import Ending, finish
from tidewheel.store.postgres.parts import DIALECT, Part, intern_tenant
from tidewheel.store.postgres.scheduling import locked, store_now
from tidewheel.store.postgres.submitting import add_own, known_by_key
from tidewheel.store.schedule_rows import backfill_job, occurrence_of, planned_job, schedule_of, triggered_job
from tidewheel.store.scheduling import Ahead, Backfill, check_backfill, check_trigger_key, shard_of
from tidewheel.triggers.planning import KEEP_OCCURRENCES, Plan

_TICK: Final = timedelta(microseconds=1)
Key = tuple[UUID, datetime]
"""A schedule and the time of one of its occurrences."""
Line = tuple[UUID, datetime, str, Fate, str, UUID | None, int | None]
"""An occurrence in the order of the columns of `add_occurrences`."""


class Occurring(Part):
    """See `store.scheduling.OccurrenceStore`, and what of `ScheduleStore` makes jobs."""

    fault: Fault = staticmethod(silent)
    """Told of each point between the writes of an occurrence, for tests."""

    async def look_ahead(self, shard: int, within: timedelta, *, limit: int = 100) -> Ahead:
        async def look(connection: Connection) -> tuple[Any, list[Any]]:
            near = await connection.fetch(SQL["schedules_near"], shard, within, limit)
            return await connection.fetchrow(SQL["next_instants"], shard, within), near

        instants, near = await self._db.read(look)
        # The time is that of the first look: what comes near between the two is in neither, and is found the next time.
        now = near[0]["now"] if near else instants["now"]
        schedules = [schedule_of(row, DIALECT) for row in near]
        return Ahead(now, schedules, instants["beyond"], instants["undecided"])

    async def record_occurrences(self, plans: Sequence[Plan]) -> int:
        if not plans:
            return 0
        lines, jobs = self._lines(plans)
        lanes = list({job.lane for job in jobs.values()})
        if not self._lanes.knows(lanes):
            self._lanes.remember(lanes, await self._db.transaction(lambda found: self._lanes.ids(found, lanes)))
        recorded = await self._db.transaction(lambda connection: self._record(connection, plans, lines, jobs))
        soon = datetime.fromtimestamp(self._db.time(), UTC) + SOON
        if any(fire_at <= soon for _, fire_at in recorded):
            self._hints.send()
        return len(recorded)

    async def trigger_schedule(
        self, schedule_id: UUID, *, key: str | None = None, tenant: str | None = None
    ) -> Triggered:
        check_trigger_key(key)
        job_id = self._make_id()

        async def make(connection: Connection) -> Triggered:
            schedule = await locked(connection, schedule_id, tenant)
            if key is not None and (known := await _known(connection, schedule, key)) is not None:
                return Triggered(known, created=False)
            fire_at = await store_now(connection)
            while not await _add(connection, [(schedule_id, fire_at, "manual", Fate.MADE, "", job_id, None)]):
                fire_at += _TICK  # there is one of this very instant
            await add_own(connection, self._lanes, [triggered_job(schedule, job_id, fire_at, key)])
            made = Occurrence(
                schedule_id=schedule_id, fire_at=fire_at, job_id=job_id, outcome=Fate.MADE, source="manual"
            )
            return Triggered(made, created=True)

        triggered = await self._db.transaction(make)
        self._hints.send()
        return triggered

    async def backfill_schedule(
        self, schedule_id: UUID, backfill: Backfill, *, version: int, tenant: str | None = None
    ) -> list[Occurrence]:
        times = check_backfill(backfill)

        async def make(connection: Connection) -> dict[datetime, UUID]:
            schedule = await locked(connection, schedule_id, tenant, version)
            made = {row[0] for row in await connection.fetch(SQL["made_before"], schedule_id, times)}
            wanted = {at: self._make_id() for at in times if at not in made}
            if not backfill.dry_run:
                await self._backfill(connection, schedule, backfill, wanted)
            return wanted

        wanted = await self._db.transaction(make)
        self._hints.send()
        return [
            Occurrence(
                schedule_id=schedule_id,
                fire_at=at,
                job_id=None if backfill.dry_run else job_id,
                outcome=Fate.MADE,
                source="backfill",
            )
            for at, job_id in wanted.items()
        ]

    async def decide_overlaps(self, shard: int, *, limit: int = 500) -> int:
        due = await self._db.read(lambda connection: connection.fetch(SQL["undecided"], shard, limit))
        if not due:
            return 0
        decided, ended = await self._db.transaction(lambda connection: self._decide(connection, due))
        if ended:
            self._hints.send()  # some were asked to stop, others have room now
        return decided

    async def retire_occurrences(self, *, limit: int = 10_000) -> int:
        gone: int = await self._db.write(
            lambda connection: connection.fetchval(SQL["retire_occurrences"], KEEP_OCCURRENCES, limit)
        )
        return gone

    async def _record(
        self, connection: Connection, plans: Sequence[Plan], lines: Sequence[Line], jobs: Mapping[Key, Prepared]
    ) -> set[Key]:
        rows = await connection.fetch(SQL["lock_schedules"], [plan.schedule.id for plan in plans])
        now = {row["id"]: (row["version"], row["next_fire_at"]) for row in rows}
        standing = [p for p in plans if now.get(p.schedule.id) == (p.schedule.version, p.schedule.next_fire_at)]
        ids = {plan.schedule.id for plan in standing}
        recorded = await _add(connection, [line for line in lines if line[0] in ids])
        self.fault("occurrences")
        await add_own(connection, self._lanes, [job for key, job in jobs.items() if key in recorded])
        self.fault("jobs")
        await connection.execute(
            SQL["advance_schedules"],
            [plan.schedule.id for plan in standing],
            [plan.schedule.version for plan in standing],
            [plan.schedule.next_fire_at for plan in standing],
            [plan.next_fire_at for plan in standing],
            [plan.fired for plan in standing],
        )
        self.fault("schedules")
        return recorded

    def _lines(self, plans: Sequence[Plan]) -> tuple[list[Line], dict[Key, Prepared]]:
        """Return the occurrences of plans, and the jobs of those that run."""
        lines: list[Line] = []
        jobs: dict[Key, Prepared] = {}
        for plan in plans:
            schedule = plan.schedule
            shard = None if schedule.most_alive is None else shard_of(schedule.id)
            for planned in plan.occurrences:
                job_id = self._make_id() if planned.outcome is Fate.MADE else None
                undecided = shard if job_id is not None else None
                told = (planned.outcome, planned.reason, job_id, undecided)
                lines.append((schedule.id, planned.fire_at, "planned", *told))
                if job_id is not None:
                    jobs[schedule.id, planned.fire_at] = prepare(planned_job(schedule, job_id, planned.fire_at))
        return lines, jobs

    async def _make(self, connection: Connection, specs: Sequence[JobSpec]) -> None:
        await add_own(connection, self._lanes, [prepare(spec) for spec in specs])

    async def _backfill(
        self, connection: Connection, schedule: Schedule, wish: Backfill, wanted: Mapping[datetime, UUID]
    ) -> None:
        if wish.priority is not None:
            schedule = msgspec.structs.replace(schedule, priority=wish.priority)
        await connection.execute(SQL["backfill_occurrences"], schedule.id, list(wanted), list(wanted.values()))
        first = await store_now(connection)
        jobs = [
            backfill_job(schedule, job_id, at, first + index * wish.spacing)
            for index, (at, job_id) in enumerate(wanted.items())
        ]
        await self._make(connection, jobs)

    async def _decide(self, connection: Connection, due: Sequence[Any]) -> tuple[int, bool]:
        """Return how many were decided, and whether that ended any job."""
        ids = sorted({row["schedule_id"] for row in due})
        schedules = [schedule_of(row, DIALECT) for row in await connection.fetch(SQL["lock_schedules"], ids)]
        named = [row["schedule_id"] for row in due], [row["fire_at"] for row in due]
        left = await connection.fetch(SQL["still_undecided"], *named)
        if not left:
            return 0, False
        alive: dict[UUID, list[Alive]] = {schedule.id: [] for schedule in schedules}
        for schedule_id, due_at, job_id, running in await connection.fetch(SQL["alive_of_schedules"], ids):
            alive[schedule_id].append(Alive(due_at, job_id, running))
        decided = [
            decide_due(
                schedule.overlap,
                schedule.max_concurrency,
                alive[schedule.id],
                [row["job_id"] for row in left if row["schedule_id"] == schedule.id],
            )
            for schedule in schedules
        ]
        skipped = await _carry_out(connection, decided)
        self.fault("decided")
        columns = [(row["schedule_id"], row["fire_at"], skipped.get(row["job_id"])) for row in left]
        await connection.execute(SQL["note_decided"], *(list(column) for column in zip(*columns, strict=True)))
        return len(left), any(overlaps.skip or overlaps.cancel for overlaps in decided)


async def _known(connection: Connection, schedule: Schedule, key: str) -> Occurrence | None:
    """Return what was triggered with the same key before."""
    number = await intern_tenant(connection, schedule.tenant)
    job_id = await known_by_key(connection, number, key, trigger_fingerprint(schedule.id))
    if job_id is None:
        return None
    row = await connection.fetchrow(SQL["occurrence_of_job"], schedule.id, job_id)
    if row is None:
        raise NotFound("occurrence of job", job_id)
    return occurrence_of(row, DIALECT)


async def _add(connection: Connection, lines: Sequence[Line]) -> set[Key]:
    """Record occurrences that are not there, and return which."""
    if not lines:
        return set()
    columns = [list(column) for column in zip(*lines, strict=True)]
    return {(row[0], row[1]) for row in await connection.fetch(SQL["add_occurrences"], *columns)}


async def _carry_out(connection: Connection, decided: Sequence[Overlaps]) -> dict[UUID, str]:
    """End what is to be skipped or cancelled; return which jobs were skipped, and why. One that started was not."""
    skip = {job_id: why for overlaps in decided for job_id, why in overlaps.skip.items()}
    cancel = [job_id for overlaps in decided for job_id in overlaps.cancel]
    if not skip and not cancel:
        return {}
    rows = await connection.fetch(SQL["lock_to_end"], [*skip, *cancel])
    running = {row["id"]: row["running"] for row in rows}
    skipped = {job_id: why for job_id, why in skip.items() if running.get(job_id) is False}
    endings = [Ending.waiting(job_id, Cause.OVERLAPPED, why) for job_id, why in skipped.items()]
    for job_id in cancel:
        if running.get(job_id):
            await connection.execute(SQL["ask_to_stop"], job_id, "a later run takes its place")
        elif job_id in running:
            endings.append(Ending.waiting(job_id, Cause.CANCELLED, "a later run took its place"))
    await finish(connection, WAITING, endings)
    return skipped
