"""Alerts and maintenance windows."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from tidewheel.errors import NotFound
from tidewheel.model.alert import (
    KEEP_RESOLVED,
    LOOK_BACK,
    Alert,
    AlertFacts,
    AlertState,
    ClockFact,
    DiskFact,
    Finding,
    KindFact,
    LaneFact,
    QueueFact,
    ReplicaFact,
    Rule,
    ScheduleFact,
    SizeFact,
    SnapshotFact,
    TableFact,
    Window,
    WindowSpec,
    check_window_spec,
    muted_by,
    not_taken,
    turn,
)
from tidewheel.model.log_query import LogBacklog
from tidewheel.model.notification import Event
from tidewheel.store.access import check_keys_page
from tidewheel.store.alert_rows import alert_of, detail_text, finding_detail, lane_of, window_of
from tidewheel.store.log_searching import MOST_COUNTED
from tidewheel.store.postgres.connection import SQL, Connection, one
from tidewheel.store.postgres.own_disk import disks_of
from tidewheel.store.postgres.parts import DIALECT, Part, store_now
from tidewheel.store.postgres.working import worker_of

_FEW: Final = 100
"""Dead rows that are not worth telling."""
_SINCE_WHEN_UNUSED: Final = 17
"""The version that has `inactive_since` of slots."""


class Alerting(Part):
    """See `store.alerting`."""

    async def alert_facts(self) -> AlertFacts:
        return await self._db.read(_facts)

    async def alert_gaps(self) -> list[str]:
        version, sees_all = await self._db.read(lambda connection: one(connection, SQL["sight"]))
        return gaps_of(version, sees_all=sees_all, sees_disk=bool(await self._db.read(_disks)))

    async def queue_waits(self) -> list[QueueFact]:
        return await self._db.read(_queues)

    async def table_facts(self) -> list[TableFact]:
        return await self._db.read(_tables)

    async def keep_alerts(self, findings: Sequence[Finding]) -> int:
        return await self._db.transaction(lambda connection: self._keep(connection, findings))

    async def alerts(
        self, *, tenant: str | None = None, state: AlertState | None = None, limit: int = 100
    ) -> list[Alert]:
        values = (tenant, state, check_keys_page(limit))
        rows = await self._db.read(lambda connection: connection.fetch(SQL["alerts"], *values))
        return [alert_of(row, DIALECT) for row in rows]

    async def acknowledge(self, alert_id: UUID, by: str, *, tenant: str | None = None) -> Alert:
        values = (alert_id, by, tenant)
        row = await self._db.write(lambda connection: connection.fetchrow(SQL["acknowledge"], *values))
        if row is None:
            raise NotFound("alert", alert_id)
        return alert_of(row, DIALECT)

    async def add_window(self, spec: WindowSpec) -> Window:
        check_window_spec(spec)
        values = (self._make_id(), spec.start, spec.end, sorted(spec.rules), spec.reason, spec.author)
        return _window(await self._db.write(lambda connection: one(connection, SQL["add_window"], *values)))

    async def windows(self) -> list[Window]:
        rows = await self._db.read(lambda connection: connection.fetch(SQL["windows"]))
        return [_window(row) for row in rows]

    async def remove_window(self, window_id: UUID) -> None:
        if await self._db.write(lambda connection: connection.fetchval(SQL["remove_window"], window_id)) is None:
            raise NotFound("maintenance window", window_id)

    async def retire_alerts(self, *, keep: timedelta = KEEP_RESOLVED, limit: int = 1000) -> int:
        await self._db.write(lambda connection: connection.execute(SQL["retire_windows"], keep))
        gone: int = await self._db.write(lambda connection: connection.fetchval(SQL["retire_alerts"], keep, limit))
        return gone

    async def _keep(self, connection: Connection, findings: Sequence[Finding]) -> int:
        windows = [_window(row) for row in await connection.fetch(SQL["windows"])]
        standing = [row["firing"] for row in await connection.fetch(SQL["firing"])]
        turns = turn(standing, findings, muted_by(windows, await store_now(connection)))
        for finding in turns.firing:
            values = (self._make_id(), finding.key, finding.rule, finding.subject, finding.tenant, finding.told)
            alert_id = await connection.fetchval(SQL["fire"], *values)
            if alert_id is not None:
                await _tell(connection, Event.FIRING, finding.tenant, finding_detail(alert_id, finding))
        for key in turns.resolved:
            row = await connection.fetchrow(SQL["resolve"], key)
            if row is not None:
                detail = detail_text(row["id"], row["rule"], row["subject"], row["told"])
                await _tell(connection, Event.RESOLVED, row["tenant"], detail)
        return len(turns.firing) + len(turns.resolved)


def gaps_of(version: int, *, sees_all: bool, sees_disk: bool) -> list[str]:
    """Say what a server of such a version does not tell."""
    gaps = []
    if version < _SINCE_WHEN_UNUSED:
        gaps.append(
            f"PostgreSQL {version} does not say since when a replication slot is unused "
            f"(from {_SINCE_WHEN_UNUSED} on): {Rule.HELD_SNAPSHOT} leaves slots out, "
            f"and {Rule.REPLICA_LAG} tells of them by how much they are behind"
        )
    if not sees_all:
        gaps.append(
            f"connections and replicas of other users are not seen by {Rule.HELD_SNAPSHOT} and {Rule.REPLICA_LAG}: "
            "grant pg_monitor to the user of the database"
        )
    if not sees_disk:
        gaps.append(
            f"what is free on the disk of PostgreSQL cannot be seen from here by {Rule.DISK_SPACE}: watch it on its "
            f"machine, or set a bound for {Rule.DATABASE_SIZE} by --alert database_size=…"
        )
    return gaps


async def _queues(connection: Connection) -> list[QueueFact]:
    return [QueueFact(*row) for row in await connection.fetch(SQL["queue_facts"])]


async def _lanes(connection: Connection) -> list[LaneFact]:
    workers = [worker_of(row) for row in await connection.fetch(SQL["living_workers"])]
    return not_taken([lane_of(row, row[4]) for row in await connection.fetch(SQL["lane_facts"])], workers)


async def _facts(connection: Connection) -> AlertFacts:
    return AlertFacts(
        queues=await _queues(connection),
        lanes=await _lanes(connection),
        kinds=[KindFact(*row) for row in await connection.fetch(SQL["kind_facts"], LOOK_BACK)],
        schedules=[ScheduleFact(*row) for row in await connection.fetch(SQL["schedule_facts"])],
        snapshots=[SnapshotFact(*row) for row in await connection.fetch(SQL["snapshot_facts"])],
        tables=await _tables(connection),
        replicas=[ReplicaFact(*row) for row in await connection.fetch(SQL["replica_facts"])],
        disks=await _disks(connection),
        sizes=[SizeFact(*await one(connection, SQL["database_size"]))],
        unindexed=LogBacklog(*await one(connection, SQL["unindexed"], MOST_COUNTED)),
        clocks=[ClockFact(*row) for row in await connection.fetch(SQL["clock_facts"])],
    )


async def _disks(connection: Connection) -> list[DiskFact]:
    return await asyncio.to_thread(disks_of, *await one(connection, SQL["data_place"]))


def _window(row: Any) -> Window:
    return window_of(row, row["rules"], DIALECT)


async def _tell(connection: Connection, event: Event, tenant: str | None, detail: str) -> None:
    await connection.execute(SQL["tell_alert"], event, tenant, detail)


async def _tables(connection: Connection) -> list[TableFact]:
    return [TableFact(*row) for row in await connection.fetch(SQL["table_facts"], _FEW)]
