"""Schedules: made, changed, paused, declared by code, and gone."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid, NameTaken, NotFound
from tidewheel.model.checks import check_key
from tidewheel.model.schedule import Declared, Occurrence, PastOccurrence, Schedule, ScheduleSpec
from tidewheel.model.states import WAITING, Cause
from tidewheel.store.postgres.connection import SQL, Connection
from tidewheel.store.postgres.ending import Ending, finish
from tidewheel.store.postgres.limiting import drop_limit, put_limit
from tidewheel.store.postgres.parts import DIALECT, intern_tenant, store_now
from tidewheel.store.postgres.recording import Recording, locked
from tidewheel.store.postgres.releasing import NOBODY
from tidewheel.store.schedule_rows import definition_text, occurrence_of, past_of, readable, schedule_of
from tidewheel.store.scheduling import check_occurrence_page, check_schedule_page, shard_of
from tidewheel.triggers.planning import (
    Plan,
    check_definition,
    check_fires,
    fire_after,
    fire_after_change,
    first_fire,
    plans_due,
)


class Scheduling(Recording):
    """See `store.scheduling.ScheduleStore`."""

    async def create_schedule(self, spec: ScheduleSpec) -> Schedule:
        check_definition(spec)
        schedule_id = self._make_id()
        return await self._db.transaction(lambda connection: _create(connection, schedule_id, spec))

    async def change_schedule(
        self, schedule_id: UUID, spec: ScheduleSpec, *, version: int, tenant: str | None = None
    ) -> Schedule:
        check_definition(spec)

        async def change(connection: Connection) -> Schedule:
            schedule = await locked(connection, schedule_id, tenant, version)
            if spec.tenant != schedule.tenant:
                raise Invalid("tenant", f"must stay {schedule.tenant!r}")
            return await self._redefine(connection, schedule, spec)

        await self._catch_up(schedule_id, tenant)
        changed = await self._db.transaction(change)
        self._hints.send()  # those who waited for a limit may go now
        return changed

    async def pause_schedule(self, schedule_id: UUID, *, tenant: str | None = None) -> Schedule:
        await self._catch_up(schedule_id, tenant)
        return await self._db.transaction(lambda found: self._set_paused(found, schedule_id, tenant, paused=True))

    async def resume_schedule(self, schedule_id: UUID, *, tenant: str | None = None) -> Schedule:
        return await self._db.transaction(lambda found: self._set_paused(found, schedule_id, tenant, paused=False))

    async def delete_schedule(
        self, schedule_id: UUID, *, version: int | None = None, tenant: str | None = None
    ) -> None:
        async def delete(connection: Connection) -> None:
            schedule = await locked(connection, schedule_id, tenant, version)
            rows = await connection.fetch(SQL["lock_waiting_of_schedule"], schedule_id)
            why = "its schedule was deleted"
            await finish(connection, WAITING, [Ending.waiting(row["id"], Cause.CANCELLED, why) for row in rows])
            await connection.execute(SQL["leave_undecided"], schedule_id, shard_of(schedule_id))
            await connection.execute(SQL["remove_schedule"], schedule_id, schedule.version)
            await _limit(connection, schedule, None)

        await self._db.transaction(delete)

    async def declare_schedules(self, app: str, specs: Sequence[ScheduleSpec]) -> Declared:
        check_key("app", app)
        for spec in specs:
            check_definition(spec)
        ids = [self._make_id() for _ in specs]
        while plans := await self._db.read(lambda connection: _due(connection, "schedules_declared", app)):
            await self.record_occurrences(plans)
        return await self._db.transaction(lambda connection: self._declare_all(connection, app, specs, ids))

    async def get_schedule(self, schedule_id: UUID, *, tenant: str | None = None) -> Schedule:
        row = await self._db.read(lambda connection: connection.fetchrow(SQL["get_schedule"], schedule_id, tenant))
        return _one(row, schedule_id)

    async def find_schedule(self, name: str, *, tenant: str) -> Schedule:
        row = await self._db.read(lambda connection: connection.fetchrow(SQL["find_schedule"], name, tenant))
        return _one(row, name)

    async def schedules(
        self, *, tenant: str | None = None, limit: int = 50, after: UUID | None = None
    ) -> list[Schedule]:
        check_schedule_page(limit)

        async def look(connection: Connection) -> list[Schedule]:
            begin, found = after or NOBODY, list[Schedule]()
            while (wanted := limit - len(found)) > 0:
                page = await connection.fetch(SQL["list_schedules"], tenant, wanted, begin)
                found += readable(page, DIALECT)[0]
                if len(page) < wanted:
                    break
                begin = page[-1]["id"]
            return found

        return await self._db.read(look)

    async def coming_schedules(self, *, tenant: str, limit: int = 50) -> list[Schedule]:
        check_schedule_page(limit)
        rows = await self._db.read(lambda connection: connection.fetch(SQL["coming_schedules"], tenant, limit))
        return readable(rows, DIALECT)[0]

    async def past_occurrences(
        self, schedule_ids: Sequence[UUID], *, each: int = 10, tenant: str | None = None
    ) -> list[PastOccurrence]:
        values = (list(schedule_ids), check_schedule_page(each), tenant)
        rows = await self._db.read(lambda connection: connection.fetch(SQL["past_occurrences"], *values))
        return [past_of(row, DIALECT) for row in rows]

    async def occurrences(
        self, schedule_id: UUID, *, limit: int = 50, before: datetime | None = None, tenant: str | None = None
    ) -> list[Occurrence]:
        check_occurrence_page(limit, before)

        async def look(connection: Connection) -> list[Any]:
            _one(await connection.fetchrow(SQL["get_schedule"], schedule_id, tenant), schedule_id)
            return await connection.fetch(SQL["list_occurrences"], schedule_id, before, limit)

        return [occurrence_of(row, DIALECT) for row in await self._db.read(look)]

    async def _catch_up(self, schedule_id: UUID, tenant: str | None) -> None:
        """Record what is due of a schedule in pieces, so that little of it is left to the transaction of a change."""
        while plans := await self._db.read(lambda connection: _due(connection, "get_schedule", schedule_id, tenant)):
            await self.record_occurrences(plans)

    async def _set_paused(
        self, connection: Connection, schedule_id: UUID, tenant: str | None, *, paused: bool
    ) -> Schedule:
        schedule = await locked(connection, schedule_id, tenant)
        if schedule.paused == paused:
            return schedule
        now = await store_now(connection)
        schedule = await self._settle_due(connection, schedule, now)
        fired = schedule.fired - await _take_back(connection, schedule, "the schedule was paused", now)
        next_fire_at = None if paused else fire_after(schedule, now, fired)
        moved = msgspec.structs.replace(schedule, paused=paused, fired=fired, next_fire_at=next_fire_at)
        return await _write(connection, moved)

    async def _redefine(
        self, connection: Connection, schedule: Schedule, spec: ScheduleSpec, *, may_end: bool = False
    ) -> Schedule:
        """Give a locked schedule another definition: record what is due by the old one, take back what is ahead."""
        now = await store_now(connection)
        schedule = await self._settle_due(connection, schedule, now)
        fired = schedule.fired - await _take_back(connection, schedule, "the schedule was changed", now)
        next_fire_at = fire_after_change(schedule, spec, now, fired)
        if not may_end:
            check_fires(next_fire_at, spec, now, fired)
        fields: dict[str, Any] = {field: getattr(spec, field) for field in ScheduleSpec.__struct_fields__}
        fields |= {"fired": fired, "next_fire_at": None if schedule.paused else next_fire_at, "orphaned_at": None}
        changed = msgspec.structs.replace(schedule, **fields)
        if changed.most_alive != schedule.most_alive:
            await _limit(connection, changed, changed.most_alive)
        return await _write(connection, changed)

    async def _declare_all(
        self, connection: Connection, app: str, specs: Sequence[ScheduleSpec], ids: Sequence[UUID]
    ) -> Declared:
        await connection.execute(SQL["lock_declaring"], app)
        found, _ = readable(await connection.fetch(SQL["lock_declared"], app), DIALECT)
        known = {(schedule.tenant, schedule.name): schedule for schedule in found}
        became: dict[str, list[str]] = {field: [] for field in Declared.__struct_fields__}
        for spec, new_id in zip(specs, ids, strict=True):
            schedule = known.pop((spec.tenant, spec.name), None)
            became[await self._declare(connection, app, spec, schedule or new_id)].append(spec.name)
        await connection.execute(SQL["orphan_schedules"], [schedule.id for schedule in known.values()])
        became["orphaned"] = [schedule.name for schedule in known.values()]
        return Declared(**{field: tuple(names) for field, names in became.items()})

    async def _declare(self, connection: Connection, app: str, spec: ScheduleSpec, schedule: Schedule | UUID) -> str:
        """Let one schedule, or a new one with that id, be as it is declared."""
        if isinstance(schedule, UUID):
            try:
                await _create(connection, schedule, spec, app)
            except (NameTaken, Invalid):  # nothing was written, and no error came from the database
                return "refused"
            return "created"
        if definition_text(schedule) == definition_text(spec) and schedule.orphaned_at is None:
            return "unchanged"
        await self._redefine(connection, schedule, spec, may_end=True)
        return "changed"


async def _due(connection: Connection, query: str, *values: object) -> list[Plan]:
    """Plan what is due of the schedules that a query finds."""
    found, _ = readable(await connection.fetch(SQL[query], *values), DIALECT)
    return plans_due(found, await store_now(connection))


def _one(row: Any, key: object) -> Schedule:
    if row is None:
        raise NotFound("schedule", key)
    return schedule_of(row, DIALECT)


async def _create(connection: Connection, schedule_id: UUID, spec: ScheduleSpec, app: str | None = None) -> Schedule:
    first = first_fire(spec, await store_now(connection))
    tenant = await intern_tenant(connection, spec.tenant)
    values = (tenant, spec.name, shard_of(schedule_id), definition_text(spec), first, app)
    if await connection.fetchval(SQL["add_schedule"], schedule_id, *values) is None:
        raise NameTaken(spec.name)
    schedule = _one(await connection.fetchrow(SQL["get_schedule"], schedule_id, None), schedule_id)
    if schedule.most_alive is not None:
        await put_limit(connection, (tenant, schedule.limit_key), schedule.most_alive)
    return schedule


async def _write(connection: Connection, schedule: Schedule) -> Schedule:
    if await connection.fetchval(SQL["name_holder"], schedule.id, schedule.name) is not None:
        raise NameTaken(schedule.name)
    row = await connection.fetchrow(
        SQL["write_schedule"],
        schedule.id,
        schedule.version,
        schedule.name,
        definition_text(schedule),
        schedule.paused,
        schedule.next_fire_at,
        schedule.fired,
        schedule.orphaned_at,
    )
    return _one(row, schedule.id)


async def _take_back(connection: Connection, schedule: Schedule, reason: str, now: datetime) -> int:
    """Cancel what was written ahead and is not due; return how many occurrences that were."""
    rows = await connection.fetch(SQL["lock_written_ahead"], schedule.id, now)
    if rows:
        await finish(connection, WAITING, [Ending.waiting(row["id"], Cause.CANCELLED, reason) for row in rows])
        await connection.execute(SQL["take_back"], schedule.id, [row["due_at"] for row in rows])
    return len(rows)


async def _limit(connection: Connection, schedule: Schedule, most: int | None) -> None:
    """Let a limit be as a locked schedule says, and let those go who have room now."""
    slot = (await intern_tenant(connection, schedule.tenant), schedule.limit_key)
    if most is None:
        await drop_limit(connection, slot)
    else:
        await put_limit(connection, slot, most)
