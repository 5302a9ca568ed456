"""Alerts and maintenance windows."""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import apsw

from tidewheel.clock import Clock
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
    ScheduleFact,
    SizeFact,
    TableFact,
    Window,
    WindowSpec,
    check_window_spec,
    muted_by,
    not_taken,
    turn,
)
from tidewheel.model.notification import Event
from tidewheel.store.access import check_keys_page
from tidewheel.store.alert_rows import alert_of, detail_text, finding_detail, lane_of, window_of
from tidewheel.store.sqlite.connection import rows, value
from tidewheel.store.sqlite.log_lines import unindexed
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import DIALECT, decode_keys, instant, json_text, micros, some, span, timedelta_of
from tidewheel.store.sqlite.working import workers

T = TypeVar("T")


class Alerting:
    """See `store.alerting`."""

    _clock: Clock
    _path: Path

    def _write(self, work: Callable[[Session], T]) -> "asyncio.Future[T]":
        raise NotImplementedError

    async def _read(self, look: Callable[[apsw.Connection], T]) -> T:
        raise NotImplementedError

    async def alert_facts(self) -> AlertFacts:
        now = micros(self._clock.now())
        return await self._read(lambda connection: _facts(connection, now, self._path))

    async def alert_gaps(self) -> list[str]:
        return []

    async def queue_waits(self) -> list[QueueFact]:
        now = micros(self._clock.now())
        return await self._read(lambda connection: _queues(connection, now))

    async def table_facts(self) -> list[TableFact]:
        return []

    async def keep_alerts(self, findings: Sequence[Finding]) -> int:
        return await self._write(lambda session: _keep(session, findings))

    async def alerts(
        self, *, tenant: str | None = None, state: AlertState | None = None, limit: int = 100
    ) -> list[Alert]:
        values = {"tenant": tenant, "state": state, "limit": check_keys_page(limit)}
        found = await self._read(lambda connection: rows(connection, "alerts", values))
        return [alert_of(row, DIALECT) for row in found]

    async def acknowledge(self, alert_id: UUID, by: str, *, tenant: str | None = None) -> Alert:
        def note(session: Session) -> list[Any]:
            return session.rows("acknowledge", id=alert_id.bytes, by=by, tenant=tenant, now=session.now)

        found = await self._write(note)
        if not found:
            raise NotFound("alert", alert_id)
        return alert_of(found[0], DIALECT)

    async def add_window(self, spec: WindowSpec) -> Window:
        check_window_spec(spec)

        def add(session: Session) -> list[Any]:
            return session.rows(
                "add_window",
                id=session.make_id().bytes,
                begins=micros(spec.start),
                ends=micros(spec.end),
                rules=json_text(sorted(spec.rules)),
                reason=spec.reason,
                author=spec.author,
            )

        [row] = await self._write(add)
        return _window(row)

    async def windows(self) -> list[Window]:
        now = micros(self._clock.now())
        return [_window(row) for row in await self._read(lambda connection: rows(connection, "windows", {"now": now}))]

    async def remove_window(self, window_id: UUID) -> None:
        if not await self._write(lambda session: session.rows("remove_window", id=window_id.bytes)):
            raise NotFound("maintenance window", window_id)

    async def retire_alerts(self, *, keep: timedelta = KEEP_RESOLVED, limit: int = 1000) -> int:
        def retire(session: Session) -> int:
            until = session.now - span(keep)
            session.run("retire_windows", until=until)
            session.run("retire_alerts", until=until, limit=limit)
            return session.connection.changes()

        return await self._write(retire)


def _queues(connection: apsw.Connection, now: int) -> list[QueueFact]:
    found = rows(connection, "queue_facts", {"now": now})
    return [QueueFact(queue, timedelta_of(waits), workers) for queue, waits, workers in found]


def _lanes(connection: apsw.Connection, now: int) -> list[LaneFact]:
    living = [worker for worker in workers(connection, alive=True) if worker.lease_until > instant(now)]
    found = rows(connection, "lane_facts", {"now": now})
    return not_taken([lane_of(row, timedelta_of(row[4])) for row in found], living)


def _facts(connection: apsw.Connection, now: int, path: Path) -> AlertFacts:
    kinds = rows(connection, "kind_facts", {"since": now - span(LOOK_BACK)})
    schedules = rows(connection, "schedule_facts", {"now": now})
    return AlertFacts(
        queues=_queues(connection, now),
        lanes=_lanes(connection, now),
        kinds=[KindFact(*row) for row in kinds],
        schedules=[
            ScheduleFact(row[0], row[1], some(timedelta_of, row[2]), some(instant, row[3]), some(timedelta_of, row[4]))
            for row in schedules
        ],
        disks=[DiskFact(path.name, shutil.disk_usage(path.parent).free)],
        sizes=[SizeFact(path.name, value(connection, "database_size", {}))],
        unindexed=unindexed(connection, now),
        clocks=[ClockFact(name, timedelta_of(ahead)) for name, ahead in rows(connection, "clock_facts", {"now": now})],
    )


def _window(row: Any) -> Window:
    return window_of(row, decode_keys(row[3]), DIALECT)


def _keep(session: Session, findings: Sequence[Finding]) -> int:
    now = session.now
    muted = muted_by([_window(row) for row in session.rows("windows", now=now)], instant(now))
    turns = turn([key for (key,) in session.rows("firing")], findings, muted)
    for finding in turns.firing:
        alert_id = session.make_id()
        session.rows("fire", id=alert_id.bytes, key=finding.key, now=now, **finding._asdict())
        _tell(session, Event.FIRING, finding.tenant, finding_detail(alert_id, finding), now)
    for key in turns.resolved:
        for alert_id, rule, subject, told, tenant in session.rows("resolve", key=key, now=now):
            _tell(session, Event.RESOLVED, tenant, detail_text(UUID(bytes=alert_id), rule, subject, told), now)
    return len(turns.firing) + len(turns.resolved)


def _tell(session: Session, event: Event, tenant: str | None, detail: str, now: int) -> None:
    session.run("tell_alert", event=event, tenant=tenant, detail=detail, now=now)
