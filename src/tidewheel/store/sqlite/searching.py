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
from tidewheel.model.job_words import JobWords, read_words
from tidewheel.model.states import FINAL, State
from tidewheel.store.base import MOST_FRESH, RUNNING_ONLY, Count, Counts, JobFilter
from tidewheel.store.pages import PAGE_BYTES, Page
from tidewheel.store.records import JobRow, are_gated, attempt_of, job_of, size_of, with_gates, with_notes
from tidewheel.store.sqlite.connection import SQL, rows, value
from tidewheel.store.sqlite.lanes import gate_of
from tidewheel.store.sqlite.tracking import Tracker
from tidewheel.store.sqlite.values import DIALECT, id_of, instant, json_text, micros, some

SCAN: Final = 5_000
"""How many jobs one page looks at before it is given up as short."""
FIRST_LOOK: Final = 2_000
"""How many are looked at before phrases are: what is not rare is found among them."""
MAX_PAGE: Final = 1000
_WIDTH: Final = len(JobRow._fields)
_LAST: Final = b"\xff" * 16
_FIRST: Final = b""
_ZERO: Final = bytes(16)
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
    sought = None if where.text is None else read_words(where.text)
    values = _values(where, sought, limit, after)
    if where.tenant is not None:
        values["tenant"] = value(connection, "tenant_of", {"tenant": where.tenant})
    if not _may_be(connection, where, values):
        return Page([])
    walk = _Walk(connection, where, values)
    words = () if sought is None else sought.words
    if walk.is_long and (where.label or where.kind or where.error or words):
        edge = walk.through(values["after"], values["floor"], FIRST_LOOK)
        if edge is not None and not walk.is_full:
            edge = _track(walk, Tracker(connection, where, values["tenant"], words), edge, values["floor"])
    else:
        edge = walk.through(values["after"], values["floor"], SCAN)
    return Page(_completed(connection, walk.jobs), some(DIALECT.uuid, edge))


def _track(walk: "_Walk", tracker: Tracker, below: bytes, floor: bytes) -> bytes | None:
    """Look where the phrases lead, and then at as much as a page without them would; return where to go on."""
    stretches, rest = tracker.stretches(id_of(below), id_of(floor or _ZERO))
    for stretch in stretches:
        edge = walk.through(min(stretch.below.bytes, below), max(stretch.floor.bytes, floor), SCAN)
        if edge is not None:
            return edge
    return None if rest is None else walk.through(min(rest.bytes, below), floor, SCAN)


class _Walk:
    """Gathers one page."""

    def __init__(self, connection: apsw.Connection, where: JobFilter, values: dict[str, Any]) -> None:
        self.jobs: list[Job] = []
        self.is_full = False
        self._size = 0
        self._connection = connection
        self._values = values
        self._few = _FEW if where.states is None else where.states & _FEW
        self._is_few = where.error is not None or self._few == where.states
        self.is_long = self._is_few or where.states != RUNNING_ONLY
        self._of_tenant = "" if where.tenant is None else "_of_tenant"

    def through(self, below: bytes, floor: bytes, most: int) -> bytes | None:
        """Look at jobs between two ids, newest first, and return below which one the next page has to begin.

        None if all of them were looked at.
        """
        room = self._values["limit"] - len(self.jobs)
        values = {**self._values, "after": below, "floor": floor, "scan": min(most, SCAN), "limit": room}
        if self._is_few:
            found, edge = self._look_at_few(values)
        else:
            found, edge = self._look(values)
        self.jobs += found
        return edge

    def _look(self, values: dict[str, Any]) -> tuple[list[Job], bytes | None]:
        name, edge = "find_running", None
        if self.is_long:
            name, edge = f"find{self._of_tenant}", value(self._connection, f"edge{self._of_tenant}", values)
            values["floor"] = max(values["floor"], edge or _FIRST)
        found, self.is_full, self._size = read_page(self._connection, name, values, self._size)
        return found, found[-1].id.bytes if self.is_full else edge

    def _look_at_few(self, values: dict[str, Any]) -> tuple[list[Job], bytes | None]:
        """Find states that are few by their own index, and merge."""
        found: list[Job] = []
        sizes = [self._size]
        edges = (value(self._connection, "edge_few", {**values, "state": state}) for state in self._few)
        edge = max((one or _FIRST for one in edges), default=_FIRST)
        values["floor"] = max(values["floor"], edge)
        for state in self._few:
            sought = {**values, "state": state.value}
            some_jobs, is_full, size = read_page(self._connection, "find_few", sought, self._size)
            sizes.append(size)
            found += some_jobs
            if is_full:  # what lies beyond is on another page, of whatever state it is
                edge = values["floor"] = max(values["floor"], some_jobs[-1].id.bytes)
                self.is_full = True
        self._size = max(sizes)
        found = sorted((job for job in found if job.id.bytes >= edge), key=lambda job: job.id, reverse=True)
        if len(found) >= values["limit"]:
            self.is_full = True
            found = found[: values["limit"]]
            return found, found[-1].id.bytes
        return found, edge or None


def read_page(
    connection: apsw.Connection, name: str, values: dict[str, Any], size: int = 0
) -> tuple[list[Job], bool, int]:
    """Return jobs, whether they fill a page (there are enough, or they are large), and its size with what it had."""
    jobs: list[Job] = []
    for row in connection.execute(SQL[name], values):
        jobs.append(job_in(row))
        size += size_of(row)
        if size >= PAGE_BYTES:
            return jobs, True, size
    return jobs, len(jobs) == values["limit"], size


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


def _completed(connection: apsw.Connection, jobs: list[Job]) -> list[Job]:
    """Add what runs noted, and the gates that jobs lie behind; a job that never ran has no notes."""
    ran = [job.id for job in jobs if job.token]
    if ran:
        jobs = with_notes(jobs, rows(connection, "notes_of", {"jobs": json_text(ran)}), DIALECT)
    return with_gates(jobs, map(gate_of, rows(connection, "gates", {}))) if are_gated(jobs) else jobs


def _values(where: JobFilter, sought: JobWords | None, limit: int, after: UUID | None) -> dict[str, Any]:
    label, text = where.label or (None, None)
    if label is not None:
        check_name("label", label)
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
