"""The part of the store that is about schedules."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

import apsw

from tidewheel.clock import Clock
from tidewheel.model.checks import check_key
from tidewheel.model.schedule import Declared, Occurrence, PastOccurrence, Schedule, ScheduleSpec, Triggered
from tidewheel.store.faults import Fault, silent
from tidewheel.store.scheduling import (
    Ahead,
    Backfill,
    check_backfill,
    check_occurrence_page,
    check_schedule_page,
    check_trigger_key,
)
from tidewheel.store.sqlite import occurring, schedules
from tidewheel.store.sqlite.recording import record
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import micros
from tidewheel.triggers.planning import Plan, check_definition, plans_due

T = TypeVar("T")


class Scheduling:
    """See `store.scheduling`."""

    _clock: Clock
    fault: Fault = staticmethod(silent)
    """Told of each point between the writes of an occurrence, for tests."""

    def _write(self, work: Callable[[Session], T]) -> "asyncio.Future[T]":
        raise NotImplementedError

    async def _read(self, look: Callable[[apsw.Connection], T]) -> T:
        raise NotImplementedError

    async def create_schedule(self, spec: ScheduleSpec) -> Schedule:
        check_definition(spec)
        return await self._write(lambda session: schedules.create(session, spec))

    async def change_schedule(
        self, schedule_id: UUID, spec: ScheduleSpec, *, version: int, tenant: str | None = None
    ) -> Schedule:
        check_definition(spec)
        await self._catch_up(schedule_id, tenant)
        return await self._write(lambda session: schedules.change(session, schedule_id, spec, version, tenant))

    async def pause_schedule(self, schedule_id: UUID, *, tenant: str | None = None) -> Schedule:
        await self._catch_up(schedule_id, tenant)
        return await self._write(lambda session: schedules.set_paused(session, schedule_id, tenant, paused=True))

    async def resume_schedule(self, schedule_id: UUID, *, tenant: str | None = None) -> Schedule:
        return await self._write(lambda session: schedules.set_paused(session, schedule_id, tenant, paused=False))

    async def delete_schedule(
        self, schedule_id: UUID, *, version: int | None = None, tenant: str | None = None
    ) -> None:
        await self._write(lambda session: schedules.delete(session, schedule_id, version, tenant))

    async def trigger_schedule(
        self, schedule_id: UUID, *, key: str | None = None, tenant: str | None = None
    ) -> Triggered:
        check_trigger_key(key)
        return await self._write(lambda session: occurring.trigger(session, schedule_id, key, tenant))

    async def backfill_schedule(
        self, schedule_id: UUID, backfill: Backfill, *, version: int, tenant: str | None = None
    ) -> list[Occurrence]:
        check_backfill(backfill)
        return await self._write(lambda session: occurring.backfill(session, schedule_id, backfill, version, tenant))

    async def declare_schedules(self, app: str, specs: Sequence[ScheduleSpec]) -> Declared:
        check_key("app", app)
        for spec in specs:
            check_definition(spec)
        while plans := plans_due(
            await self._read(lambda connection: schedules.declared(connection, app)), self._clock.now()
        ):
            await self.record_occurrences(plans)
        return await self._write(lambda session: schedules.declare(session, app, specs))

    async def get_schedule(self, schedule_id: UUID, *, tenant: str | None = None) -> Schedule:
        return await self._read(lambda connection: schedules.get(connection, schedule_id, tenant))

    async def find_schedule(self, name: str, *, tenant: str) -> Schedule:
        return await self._read(lambda connection: schedules.find(connection, name, tenant))

    async def schedules(
        self, *, tenant: str | None = None, limit: int = 50, after: UUID | None = None
    ) -> list[Schedule]:
        check_schedule_page(limit)
        return await self._read(lambda connection: schedules.listed(connection, tenant, limit, after))

    async def coming_schedules(self, *, tenant: str, limit: int = 50) -> list[Schedule]:
        check_schedule_page(limit)
        return await self._read(lambda connection: schedules.coming(connection, tenant, limit))

    async def past_occurrences(
        self, schedule_ids: Sequence[UUID], *, each: int = 10, tenant: str | None = None
    ) -> list[PastOccurrence]:
        check_schedule_page(each)
        now = micros(self._clock.now())
        return await self._read(lambda connection: schedules.past(connection, schedule_ids, each, tenant, now))

    async def occurrences(
        self, schedule_id: UUID, *, limit: int = 50, before: datetime | None = None, tenant: str | None = None
    ) -> list[Occurrence]:
        check_occurrence_page(limit, before)
        return await self._read(
            lambda connection: schedules.occurrences(connection, schedule_id, tenant, limit, before)
        )

    async def look_ahead(self, shard: int, within: timedelta, *, limit: int = 100) -> Ahead:
        now = micros(self._clock.now())
        return await self._read(lambda connection: occurring.look_ahead(connection, now, shard, within, limit))

    async def record_occurrences(self, plans: Sequence[Plan]) -> int:
        return await self._write(lambda session: record(session, plans, self.fault)) if plans else 0

    async def _catch_up(self, schedule_id: UUID, tenant: str | None) -> None:
        """Record what is due of a schedule in pieces, so that little of it is left to the transaction of a change."""
        while plans := plans_due([await self.get_schedule(schedule_id, tenant=tenant)], self._clock.now()):
            await self.record_occurrences(plans)

    async def decide_overlaps(self, shard: int, *, limit: int = 500) -> int:
        return await self._write(lambda session: occurring.decide(session, shard, limit, self.fault))

    async def retire_occurrences(self, *, limit: int = 10_000) -> int:
        return await self._write(lambda session: occurring.retire(session, limit))
