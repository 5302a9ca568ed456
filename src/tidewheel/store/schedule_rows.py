"""Builds schedules and occurrences from rows; both stores select the same columns in the same order."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from tidewheel.errors import Unavailable
from tidewheel.model.job import JobSpec
from tidewheel.model.overlap import Overlap
from tidewheel.model.schedule import (
    Fate,
    Occurrence,
    PastOccurrence,
    Schedule,
    ScheduleSpec,
    job_of,
    trigger_fingerprint,
)
from tidewheel.model.states import State
from tidewheel.model.submission import Prepared, prepare
from tidewheel.store.records import Dialect
from tidewheel.store.scheduling import Unreadable
from tidewheel.triggers.planning import recurrence_of, trigger_of


class _OverlapPart(msgspec.Struct):
    overlap: Overlap = Overlap.SKIP
    max_concurrency: int | None = None


_definition: Final = msgspec.json.Decoder(ScheduleSpec).decode
_overlap_part: Final = msgspec.json.Decoder(_OverlapPart).decode
_encode: Final = msgspec.json.Encoder(order="sorted").encode


def definition_text(spec: ScheduleSpec) -> str:
    """Return a definition as it is stored; equal ones have equal texts."""
    own = spec.definition if isinstance(spec, Schedule) else spec
    return _encode(own).decode()


def schedule_of(row: Any, dialect: Dialect) -> Schedule:
    """Build a schedule from the columns of its statements. Raises Unavailable for what this version cannot read."""
    number, definition, paused, version, fired, next_at, app, orphaned, created, updated = row[:10]
    try:
        spec = _definition(definition)
    except msgspec.MsgspecError as error:
        raise Unavailable(f"schedule {dialect.uuid(number)} cannot be read by this version: {error}") from error
    return Schedule(
        **{field: getattr(spec, field) for field in ScheduleSpec.__struct_fields__},
        id=dialect.uuid(number),
        paused=bool(paused),
        version=version,
        fired=fired,
        next_fire_at=None if next_at is None else dialect.instant(next_at),
        declared_by=app,
        orphaned_at=None if orphaned is None else dialect.instant(orphaned),
        created_at=dialect.instant(created),
        updated_at=dialect.instant(updated),
    )


def readable(rows: Iterable[Any], dialect: Dialect) -> tuple[list[Schedule], list[Unreadable]]:
    """Build schedules, and tell of those that a newer version has written in words unknown to this one."""
    schedules: list[Schedule] = []
    unreadable: list[Unreadable] = []
    for row in rows:
        try:
            schedules.append(schedule_of(row, dialect))
        except Unavailable as error:
            unreadable.append(Unreadable(dialect.uuid(row[0]), row[3], str(error)))
    return schedules, unreadable


class OverlapBound(NamedTuple):
    """What is to be known of a schedule to decide about its overlaps."""

    schedule_id: UUID
    overlap: Overlap
    max_concurrency: int | None


def overlap_of(row: Any, dialect: Dialect) -> OverlapBound:
    """Read that part of a definition alone; by a policy that this version does not know, a job waits for its turn."""
    schedule_id = dialect.uuid(row[0])
    try:
        part = _overlap_part(row[1])
    except msgspec.MsgspecError:
        return OverlapBound(schedule_id, Overlap.QUEUE, None)
    return OverlapBound(schedule_id, part.overlap, part.max_concurrency)


def left_to_backfill(schedule: Schedule, times: Iterable[datetime], made: Mapping[datetime, bool]) -> list[datetime]:
    """Return which times of the past are still to run, by what is recorded and whether that was made.

    A schedule that has only so many occurrences has no others than those that were counted.
    """
    counted = trigger_of(schedule).max_occurrences is not None
    return [at for at in times if not made.get(at, counted)]


def occurrence_of(row: Any, dialect: Dialect) -> Occurrence:
    """Build an occurrence from (schedule_id, fire_at, source, outcome, reason, job_id)."""
    schedule_id, fire_at, source, outcome, reason, job_id = row[:6]
    return Occurrence(
        schedule_id=dialect.uuid(schedule_id),
        fire_at=dialect.instant(fire_at),
        source=source,
        outcome=Fate(outcome),
        reason=reason,
        job_id=None if job_id is None else dialect.uuid(job_id),
    )


def past_of(row: Any, dialect: Dialect) -> PastOccurrence:
    """Build one of the past from the same, the state of its job, and when the first run of that began."""
    state, started_at = row[6:8]
    return PastOccurrence(
        occurrence_of(row, dialect),
        None if state is None else State(state),
        None if started_at is None else dialect.instant(started_at),
    )


def planned_job(schedule: Schedule, job_id: UUID, run_at: datetime) -> JobSpec:
    """Return the job of a planned occurrence."""
    return job_of(schedule, job_id, run_at, recurrence_of(schedule))


def triggered_job(schedule: Schedule, job_id: UUID, run_at: datetime, key: str | None) -> Prepared:
    """Return the job of a manual occurrence, which may come with an idempotency key; checked."""
    job = prepare(msgspec.structs.replace(planned_job(schedule, job_id, run_at), idempotency_key=key))
    return job if key is None else msgspec.structs.replace(job, fingerprint=trigger_fingerprint(schedule.id))


def backfill_job(schedule: Schedule, job_id: UUID, fire_at: datetime, run_at: datetime) -> JobSpec:
    """Return the job of an occurrence of the past: it says which, and does not count among the live ones."""
    return msgspec.structs.replace(
        planned_job(schedule, job_id, run_at),
        labels={**schedule.labels, "fire_at": fire_at.isoformat()},
        limit_keys=schedule.limit_keys,
    )
