"""Occurrences of schedules: recorded with their jobs, decided when they are due."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec

from tidewheel.errors import NotFound
from tidewheel.model.job import JobSpec
from tidewheel.model.overlap import Alive, Overlaps, decide_due
from tidewheel.model.schedule import Fate, Occurrence, Schedule, Triggered, trigger_fingerprint
from tidewheel.model.states import WAITING, Cause
from tidewheel.model.submission import prepare
from tidewheel.store.postgres.connection import SQL, Connection
from tidewheel.store.postgres.ending import Ending, finish
from tidewheel.store.postgres.parts import DIALECT, intern_tenant, store_now
from tidewheel.store.postgres.recording import Recording, add_lines, locked
from tidewheel.store.postgres.submitting import add_own, known_by_key
from tidewheel.store.recording import Line
from tidewheel.store.schedule_rows import (
    backfill_job,
    left_to_backfill,
    occurrence_of,
    overlap_of,
    readable,
    triggered_job,
)
from tidewheel.store.scheduling import Ahead, Backfill, check_backfill, check_trigger_key
from tidewheel.triggers.planning import KEEP_OCCURRENCES

_TICK: Final = timedelta(microseconds=1)


class Occurring(Recording):
    """See `store.scheduling.OccurrenceStore`, and what of `ScheduleStore` makes jobs."""

    async def look_ahead(self, shard: int, within: timedelta, *, limit: int = 100) -> Ahead:
        async def look(connection: Connection) -> tuple[Any, list[Any]]:
            near = await connection.fetch(SQL["schedules_near"], shard, within, limit)
            return await connection.fetchrow(SQL["next_instants"], shard, within), near

        instants, near = await self._db.read(look)
        # The time is that of the first look: what comes near between the two is in neither, and is found the next time.
        now = near[0]["now"] if near else instants["now"]
        schedules, unreadable = readable(near, DIALECT)
        return Ahead(now, schedules, instants["beyond"], instants["undecided"], unreadable)

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
            while not await add_lines(connection, [Line(schedule_id, fire_at, "manual", Fate.MADE, "", job_id)]):
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
            found = await connection.fetch(SQL["recorded_before"], schedule_id, times)
            wanted = {at: self._make_id() for at in left_to_backfill(schedule, times, dict(map(tuple, found)))}
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
        bounds = [overlap_of(row, DIALECT) for row in await connection.fetch(SQL["lock_schedules"], ids)]
        named = [row["schedule_id"] for row in due], [row["fire_at"] for row in due]
        left = await connection.fetch(SQL["still_undecided"], *named)
        if not left:
            return 0, False
        alive: dict[UUID, list[Alive]] = {bound.schedule_id: [] for bound in bounds}
        for schedule_id, due_at, job_id, running in await connection.fetch(SQL["alive_of_schedules"], ids):
            alive[schedule_id].append(Alive(due_at, job_id, running))
        mine: dict[UUID, list[UUID]] = {}
        for row in left:
            mine.setdefault(row["schedule_id"], []).append(row["job_id"])
        decided = [
            decide_due(bound.overlap, bound.max_concurrency, alive[bound.schedule_id], mine.get(bound.schedule_id, []))
            for bound in bounds
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
