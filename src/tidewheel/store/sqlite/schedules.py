"""Schedules: made, changed, paused, declared by code, and gone."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import apsw
import msgspec

from tidewheel.errors import Invalid, NameTaken, NotFound, StaleVersion
from tidewheel.model.schedule import Declared, Occurrence, PastOccurrence, Schedule, ScheduleSpec
from tidewheel.model.states import Cause
from tidewheel.store.schedule_rows import definition_text, occurrence_of, past_of, readable, schedule_of
from tidewheel.store.scheduling import shard_of
from tidewheel.store.sqlite.connection import rows
from tidewheel.store.sqlite.ending import end_waiting
from tidewheel.store.sqlite.limiting import bounds, drop_limit, set_limit
from tidewheel.store.sqlite.recording import settle_due
from tidewheel.store.sqlite.releasing import Waiting
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import DIALECT, instant, json_text, micros, some
from tidewheel.triggers.planning import check_fires, fire_after, fire_after_change, first_fire

_LAST: Final = (1 << 63) - 1

waiting_of: Final = msgspec.json.Decoder(Waiting).decode


def create(session: Session, spec: ScheduleSpec, app: str | None = None) -> Schedule:
    """See `store.scheduling.ScheduleStore.create_schedule`."""
    now = session.now
    schedule_id = session.make_id()
    tenant = session.lanes.tenant(session.connection, spec.tenant)
    added = session.rows(
        "add_schedule",
        id=schedule_id.bytes,
        tenant=tenant,
        name=spec.name,
        shard=shard_of(schedule_id),
        definition=definition_text(spec),
        next_fire_at=micros(first_fire(spec, instant(now))),
        declared_by=app,
        now=now,
    )
    if not added:
        raise NameTaken(spec.name)
    schedule = get(session.connection, schedule_id, None)
    if schedule.most_alive is not None:  # nothing can run under a key that is new: no need to count
        session.run("set_limit", tenant=tenant, key=schedule.limit_key, **bounds(schedule.most_alive, None))
    return schedule


def change(session: Session, schedule_id: UUID, spec: ScheduleSpec, version: int, tenant: str | None) -> Schedule:
    """See `store.scheduling.ScheduleStore.change_schedule`."""
    schedule = at_version(session, schedule_id, version, tenant)
    if spec.tenant != schedule.tenant:
        raise Invalid("tenant", f"must stay {schedule.tenant!r}")
    return _redefine(session, schedule, spec)


def set_paused(session: Session, schedule_id: UUID, tenant: str | None, *, paused: bool) -> Schedule:
    """See `store.scheduling.ScheduleStore.pause_schedule` and `resume_schedule`."""
    schedule = get(session.connection, schedule_id, tenant)
    if schedule.paused == paused:
        return schedule
    now = session.now
    schedule = settle_due(session, schedule, now)
    fired = schedule.fired - _take_back(session, schedule, "the schedule was paused", now)
    next_fire_at = None if paused else fire_after(schedule, instant(now), fired)
    return _write(session, msgspec.structs.replace(schedule, paused=paused, fired=fired, next_fire_at=next_fire_at))


def delete(session: Session, schedule_id: UUID, version: int | None, tenant: str | None) -> None:
    """See `store.scheduling.ScheduleStore.delete_schedule`."""
    schedule = get(session.connection, schedule_id, tenant)
    check_version(schedule, version)
    jobs = [waiting_of(row[0]) for row in session.rows("waiting_of_schedule", schedule=schedule_id.bytes)]
    end_waiting(session, jobs, Cause.CANCELLED, "its schedule was deleted", session.now)
    session.run("leave_undecided", schedule=schedule_id.bytes, shard=shard_of(schedule_id))
    session.run("remove_schedule", id=schedule_id.bytes, version=schedule.version)
    _limit(session, schedule, None)


def declare(session: Session, app: str, specs: Sequence[ScheduleSpec]) -> Declared:
    """See `store.scheduling.ScheduleStore.declare_schedules`."""
    known = {(found.tenant, found.name): found for found in declared(session.connection, app)}
    became: dict[str, list[str]] = {field: [] for field in Declared.__struct_fields__}
    for spec in specs:
        schedule = known.pop((spec.tenant, spec.name), None)
        became[_declare(session, app, spec, schedule)].append(spec.name)
    for schedule in known.values():
        session.run("orphan_schedule", id=schedule.id.bytes, now=session.now)
        became["orphaned"].append(schedule.name)
    return Declared(**{field: tuple(names) for field, names in became.items()})


def _declare(session: Session, app: str, spec: ScheduleSpec, schedule: Schedule | None) -> str:
    if schedule is None:
        try:
            create(session, spec, app)
        except (NameTaken, Invalid):
            return "refused"
        return "created"
    if definition_text(schedule) == definition_text(spec) and schedule.orphaned_at is None:
        return "unchanged"
    _redefine(session, schedule, spec, may_end=True)
    return "changed"


def get(connection: apsw.Connection, schedule_id: UUID, tenant: str | None) -> Schedule:
    """See `store.scheduling.ScheduleStore.get_schedule`."""
    return _one(rows(connection, "get_schedule", {"id": schedule_id.bytes, "tenant": tenant}), schedule_id)


def find(connection: apsw.Connection, name: str, tenant: str) -> Schedule:
    """See `store.scheduling.ScheduleStore.find_schedule`."""
    return _one(rows(connection, "find_schedule", {"name": name, "tenant": tenant}), name)


def listed(connection: apsw.Connection, tenant: str | None, limit: int, after: UUID | None) -> list[Schedule]:
    """See `store.scheduling.ScheduleStore.schedules`."""
    begin = b"" if after is None else after.bytes
    schedules: list[Schedule] = []
    while len(schedules) < limit:
        wanted = limit - len(schedules)
        page = rows(connection, "list_schedules", {"tenant": tenant, "limit": wanted, "after": begin})
        schedules += readable(page, DIALECT)[0]
        if len(page) < wanted:
            break
        begin = page[-1][0]
    return schedules


def declared(connection: apsw.Connection, app: str) -> list[Schedule]:
    """Return the schedules that the code of an app has declared, as far as they can be read."""
    return readable(rows(connection, "schedules_declared", {"app": app}), DIALECT)[0]


def occurrences(
    connection: apsw.Connection, schedule_id: UUID, tenant: str | None, limit: int, before: datetime | None
) -> list[Occurrence]:
    """See `store.scheduling.ScheduleStore.occurrences`."""
    get(connection, schedule_id, tenant)
    end = some(micros, before) or _LAST
    found = rows(connection, "list_occurrences", {"schedule": schedule_id.bytes, "before": end, "limit": limit})
    return [occurrence_of(row, DIALECT) for row in found]


def coming(connection: apsw.Connection, tenant: str, limit: int) -> list[Schedule]:
    """See `store.scheduling.ScheduleStore.coming_schedules`."""
    return readable(rows(connection, "coming_schedules", {"tenant": tenant, "limit": limit}), DIALECT)[0]


def past(
    connection: apsw.Connection, ids: Sequence[UUID], each: int, tenant: str | None, now: int
) -> list[PastOccurrence]:
    """See `store.scheduling.ScheduleStore.past_occurrences`."""
    values = {"ids": json_text([schedule_id.hex for schedule_id in ids]), "each": each, "tenant": tenant, "now": now}
    return [past_of(row, DIALECT) for row in rows(connection, "past_occurrences", values)]


def at_version(session: Session, schedule_id: UUID, version: int, tenant: str | None) -> Schedule:
    """Return a schedule if it is at that version."""
    return check_version(get(session.connection, schedule_id, tenant), version)


def check_version(schedule: Schedule, version: int | None) -> Schedule:
    """Refuse to change what the caller has not seen."""
    if version is not None and schedule.version != version:
        raise StaleVersion(schedule.name, version, schedule.version)
    return schedule


def _redefine(session: Session, schedule: Schedule, spec: ScheduleSpec, *, may_end: bool = False) -> Schedule:
    """Give a schedule another definition: record what is due by the old one, and take back what it wrote ahead."""
    now = session.now
    schedule = settle_due(session, schedule, now)
    fired = schedule.fired - _take_back(session, schedule, "the schedule was changed", now)
    next_fire_at = fire_after_change(schedule, spec, instant(now), fired)
    if not may_end:
        check_fires(next_fire_at, spec, instant(now), fired)
    fields: dict[str, Any] = {field: getattr(spec, field) for field in ScheduleSpec.__struct_fields__}
    fields |= {"fired": fired, "next_fire_at": None if schedule.paused else next_fire_at, "orphaned_at": None}
    changed = msgspec.structs.replace(schedule, **fields)
    if changed.most_alive != schedule.most_alive:
        _limit(session, changed, changed.most_alive)
    return _write(session, changed)


def _write(session: Session, schedule: Schedule) -> Schedule:
    written = session.rows(
        "write_schedule",
        id=schedule.id.bytes,
        name=schedule.name,
        definition=definition_text(schedule),
        paused=int(schedule.paused),
        next_fire_at=some(micros, schedule.next_fire_at),
        fired=schedule.fired,
        orphaned_at=some(micros, schedule.orphaned_at),
        version=schedule.version,
        now=session.now,
    )
    if not written:
        raise NameTaken(schedule.name)  # the version cannot have moved: there is one writer
    return get(session.connection, schedule.id, None)


def _take_back(session: Session, schedule: Schedule, reason: str, now: int) -> int:
    """Cancel what was written ahead and is not due; return how many occurrences that were."""
    found = session.rows("written_ahead", schedule=schedule.id.bytes, now=now)
    end_waiting(session, [waiting_of(row) for row, _ in found], Cause.CANCELLED, reason, now)
    session.run("take_back", schedule=schedule.id.bytes, times=json_text([due_at for _, due_at in found]))
    return len(found)


def _limit(session: Session, schedule: Schedule, most: int | None) -> None:
    if most is not None:
        set_limit(session, schedule.limit_key, most, None, schedule.tenant)
        return
    tenant = session.lanes.tenant(session.connection, schedule.tenant)
    drop_limit(session, (tenant, schedule.limit_key))


def _one(found: Sequence[Any], key: object) -> Schedule:
    if not found:
        raise NotFound("schedule", key)
    return schedule_of(found[0], DIALECT)
