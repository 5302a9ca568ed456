"""Occurrences of schedules are recorded with their jobs, by the keeper or before a schedule is changed."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import msgspec

from tidewheel.errors import NotFound, StaleVersion
from tidewheel.model.schedule import Schedule
from tidewheel.store.bell import SOON
from tidewheel.store.faults import Fault, silent
from tidewheel.store.postgres.connection import SQL, Connection
from tidewheel.store.postgres.parts import DIALECT, Part
from tidewheel.store.postgres.submitting import add_own
from tidewheel.store.recording import Draft, Line, drafts_of
from tidewheel.store.schedule_rows import schedule_of
from tidewheel.triggers.planning import Plan, plan_due

Key = tuple[UUID, datetime]
"""A schedule and the time of one of its occurrences."""


class Recording(Part):
    """What those share who make schedules and those who make their occurrences."""

    fault: Fault = staticmethod(silent)
    """Told of each point between the writes of an occurrence, for tests."""

    async def record_occurrences(self, plans: Sequence[Plan]) -> int:
        if not plans:
            return 0
        drafts = [draft for plan in plans for draft in drafts_of(plan, self._make_id)]
        lanes = list({draft.job.lane for draft in drafts if draft.job is not None})
        if not self._lanes.knows(lanes):
            self._lanes.remember(lanes, await self._db.transaction(lambda found: self._lanes.ids(found, lanes)))
        recorded = await self._db.transaction(lambda connection: self._record(connection, plans, drafts))
        soon = datetime.fromtimestamp(self._db.time(), UTC) + SOON
        if any(fire_at <= soon for _, fire_at in recorded):
            self._hints.send()
        return len(recorded)

    async def _record(self, connection: Connection, plans: Sequence[Plan], drafts: Sequence[Draft]) -> set[Key]:
        rows = await connection.fetch(SQL["lock_schedules"], [plan.schedule.id for plan in plans])
        now = {row["id"]: (row["version"], row["next_fire_at"]) for row in rows}
        standing = [p for p in plans if now.get(p.schedule.id) == (p.schedule.version, p.schedule.next_fire_at)]
        ids = {plan.schedule.id for plan in standing}
        recorded = await add_lines(connection, [draft.line for draft in drafts if draft.line.schedule_id in ids])
        self.fault("occurrences")
        made = [draft.job for draft in drafts if draft.job is not None and draft.line[:2] in recorded]
        await add_own(connection, self._lanes, made)
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

    async def _settle_due(self, connection: Connection, schedule: Schedule, now: datetime) -> Schedule:
        """Record what is due of a locked schedule by its definition so far, and return where it then stands."""
        while (due := plan_due(schedule, now)) is not None:
            await self._record(connection, [due], drafts_of(due, self._make_id))
            schedule = msgspec.structs.replace(schedule, next_fire_at=due.next_fire_at, fired=due.fired)
        return schedule


async def add_lines(connection: Connection, lines: Sequence[Line]) -> set[Key]:
    """Record occurrences that are not there, and return which."""
    if not lines:
        return set()
    columns = [list(column) for column in zip(*lines, strict=True)]
    return {(row[0], row[1]) for row in await connection.fetch(SQL["add_occurrences"], *columns)}


async def locked(connection: Connection, schedule_id: UUID, tenant: str | None, version: int | None = None) -> Schedule:
    """Lock a schedule and return it, if it is at the version that the caller knows."""
    row = await connection.fetchrow(SQL["lock_schedule"], schedule_id, tenant)
    if row is None:
        raise NotFound("schedule", schedule_id)
    schedule = schedule_of(row, DIALECT)
    if version is not None and schedule.version != version:
        raise StaleVersion(schedule.name, version, schedule.version)
    return schedule
