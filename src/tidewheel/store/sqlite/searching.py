"""Searching: single jobs, lists over active and finished ones, attempts and numbers."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import apsw

from tidewheel.errors import Invalid, NotFound
from tidewheel.model.checks import check_name
from tidewheel.model.ids import make_id
from tidewheel.model.job import Attempt, Job
from tidewheel.model.job_words import read_words
from tidewheel.model.states import FINAL, State
from tidewheel.store.base import MOST_FRESH, RUNNING_ONLY, Count, Counts, JobFilter
from tidewheel.store.pages import PAGE_BYTES, Page
from tidewheel.store.records import JobRow, are_gated, attempt_of, job_of, size_of, with_gates, with_notes
from tidewheel.store.sqlite.connection import SQL, rows, value
from tidewheel.store.sqlite.lanes import gate_of
from tidewheel.store.sqlite.values import DIALECT, instant, json_text, micros, some

SCAN: Final = 5_000
"""How many jobs one page looks at before it is given up as short."""
MAX_PAGE: Final = 1000
_WIDTH: Final = len(JobRow._fields)
_LAST: Final = b"\xff" * 16
_FIRST: Final = b""
_SKEW: Final = timedelta(days=1)
_FEW: Final = frozenset(FINAL) - {State.SUCCEEDED}


def get(connection: apsw.Connection, job_id: UUID, tenant: str | None) -> Job:
    """See `store.base.SearchStore.get`."""
    found = rows(connection, "get", {"id": job_id.bytes, "tenant": tenant})
    if not found:
        raise NotFound("job", job_id)
    return _completed(connection, [job_in(found[0])])[0]


def attempts(connection: apsw.Connection, job_id: UUID, tenant: str | None, values: dict[str, Any]) -> list[Attempt]:
    """See `store.base.SearchStore.attempts`."""
    get(connection, job_id, tenant)
    return [attempt_of(row, DIALECT) for row in rows(connection, "attempts", values)]


def check_page(limit: int) -> int:
    """Refuse pages that are empty or too long."""
    if not 1 <= limit <= MAX_PAGE:
        raise Invalid("limit", f"must be between 1 and {MAX_PAGE}, not {limit}")
    return limit


def find(connection: apsw.Connection, where: JobFilter, limit: int, after: UUID | None) -> Page:
    """See `store.base.SearchStore.find`."""
    values = _values(where, limit, after)
    if where.tenant is not None:
        values["tenant"] = value(connection, "tenant_of", {"tenant": where.tenant})
    if not _may_be(connection, where, values):
        return Page([])
    few = _FEW if where.states is None else where.states & _FEW
    if where.error is not None or few == where.states:
        return _find_few(connection, few, values)
    if where.states == RUNNING_ONLY:
        found, is_full = read_page(connection, "find_running", values)
        jobs = _completed(connection, found)
        return Page(jobs, jobs[-1].id if is_full else None)
    of_tenant = "" if where.tenant is None else "_of_tenant"
    edge = value(connection, f"edge{of_tenant}", values)
    values["floor"] = max(values["floor"], edge or _FIRST)
    found, is_full = read_page(connection, f"find{of_tenant}", values)
    jobs = _completed(connection, found)
    return Page(jobs, jobs[-1].id if is_full else some(DIALECT.uuid, edge))


def read_page(connection: apsw.Connection, name: str, values: dict[str, Any]) -> tuple[list[Job], bool]:
    """Return jobs, and whether they fill a page: there are enough, or they are large."""
    jobs: list[Job] = []
    size = 0
    for row in connection.execute(SQL[name], values):
        jobs.append(job_in(row))
        size += size_of(row)
        if size >= PAGE_BYTES:
            return jobs, True
    return jobs, len(jobs) == values["limit"]


def _may_be(connection: apsw.Connection, where: JobFilter, values: dict[str, Any]) -> bool:
    """Tell whether there can be any, without a look at the jobs."""
    if where.tenant is not None and values["tenant"] is None:
        return False
    return (where.kind is None and where.queue is None) or bool(value(connection, "has_lane", values))


def counts(connection: apsw.Connection, tenant: str | None) -> Counts:
    """See `store.base.SearchStore.counts`."""
    ((_, _, census_at, _),) = rows(connection, "meta", {})
    found = rows(connection, "counts", {"tenant": tenant, "fresh": None})
    return Counts(instant(census_at), [_count(row) for row in found])


def fresh_counts(connection: apsw.Connection, tenant: str | None, now: int) -> Counts:
    """Count anew what is active, unless that is too much."""
    counted = counts(connection, tenant)
    if counted.active > MOST_FRESH:
        return counted
    of_tenant = "" if tenant is None else "_of_tenant"
    fresh = rows(connection, f"fresh_counts{of_tenant}", {"tenant": tenant, "most": MOST_FRESH + 1})
    if sum(row[-1] for row in fresh) > MOST_FRESH:
        return counted
    found = rows(connection, "counts", {"tenant": tenant, "fresh": json_text(fresh)})
    return Counts(instant(now), [_count(row) for row in found])


def _find_few(connection: apsw.Connection, states: frozenset[State], values: dict[str, Any]) -> Page:
    """Find states that are few by their own index, and merge."""
    found: list[Job] = []
    edge = max(
        (value(connection, "edge_few", {**values, "state": state}) or _FIRST for state in states), default=_FIRST
    )
    values["floor"] = max(values["floor"], edge)
    for state in states:
        some_jobs, is_full = read_page(connection, "find_few", {**values, "state": state.value})
        found += some_jobs
        if is_full:  # what lies beyond is on another page, of whatever state it is
            edge = values["floor"] = max(values["floor"], some_jobs[-1].id.bytes)
    found = [job for job in found if job.id.bytes >= edge]
    found.sort(key=lambda job: job.id, reverse=True)
    jobs = _completed(connection, found[: values["limit"]])
    if len(jobs) == values["limit"]:
        return Page(jobs, jobs[-1].id)
    return Page(jobs, some(DIALECT.uuid, edge or None))


def _completed(connection: apsw.Connection, jobs: list[Job]) -> list[Job]:
    """Add what runs noted, and the gates that jobs lie behind; a job that never ran has no notes."""
    ran = [job.id for job in jobs if job.token]
    if ran:
        jobs = with_notes(jobs, rows(connection, "notes_of", {"jobs": json_text(ran)}), DIALECT)
    return with_gates(jobs, map(gate_of, rows(connection, "gates", {}))) if are_gated(jobs) else jobs


def _values(where: JobFilter, limit: int, after: UUID | None) -> dict[str, Any]:
    label, text = where.label or (None, None)
    if label is not None:
        check_name("label", label)
    sought = None if where.text is None else read_words(where.text)
    below = _LAST if after is None else after.bytes
    floor = _FIRST if where.created_from is None else _id_at(where.created_from - _SKEW)
    if where.created_before is not None:
        below = min(below, _id_at(where.created_before + _SKEW))
    if sought is not None and sought.job_id is not None:
        below, floor = min(below, _after(sought.job_id)), max(floor, sought.job_id.bytes)
    return {
        "tenant": None,
        "after": below,
        "floor": floor,
        "scan": SCAN,
        "active": where.active,
        "finished": where.finished,
        "states": None if where.states is None else json_text(sorted(where.states)),
        "kind": where.kind,
        "queue": where.queue,
        "schedule": None if where.schedule_id is None else where.schedule_id.bytes,
        "label": label,
        "text": text,
        "since": some(micros, where.created_from),
        "before": some(micros, where.created_before),
        "error": where.error,
        "words": json_text(sought.words) if sought is not None and sought.words else None,
        "limit": limit,
    }


def _count(row: Sequence[Any]) -> Count:
    tenant, queue, kind, state, priority, jobs = row
    return Count(tenant, queue, kind, State(state), priority, jobs)


def _id_at(instant: datetime) -> bytes:
    """Return the first id of an instant; ids carry about the time at which their jobs were made."""
    return make_id(max(0, micros(instant) // 1000), 0).bytes


def _after(job_id: UUID) -> bytes:
    """Return the first id beyond one."""
    return job_id.bytes + b"\0"


def job_in(row: Sequence[Any]) -> Job:
    """Return the job in a row of one of the views."""
    return job_of(row[:_WIDTH], DIALECT)
