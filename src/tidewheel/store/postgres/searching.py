"""Reading: one job, lists of jobs, attempts and counts."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString, NamedTuple
from uuid import UUID

from tidewheel.errors import Invalid, NotFound
from tidewheel.model.ids import make_id, time_of
from tidewheel.model.job import Attempt, Job
from tidewheel.model.job_phrases import Stretch
from tidewheel.model.job_words import JobWords, read_words
from tidewheel.model.states import REDRIVABLE, State
from tidewheel.store.base import MOST_FRESH, RUNNING_ONLY, Count, Counts, JobFilter
from tidewheel.store.pages import MOST_ATTEMPTS, NEWEST, PAGE_BYTES, Page
from tidewheel.store.postgres.connection import SQL, Connection
from tidewheel.store.postgres.parts import DIALECT, Part, gate_of, store_now, tenant_id
from tidewheel.store.postgres.tracking import Tracker, pattern_of
from tidewheel.store.records import JobRow, are_gated, attempt_of, job_of, size_of, with_gates, with_notes

SCAN = 20_000
"""How many rows of each table a page may read before it answers short."""
WORD_SCAN = 5_000
"""The same for a page whose rows are searched for words, which takes longer."""
FIRST_LOOK = 2_000
"""How many are looked at before phrases are: what is not rare is found among them."""
FIRST_ROWS = 16
"""How many jobs are read before it is known how large they are."""
MAX_PAGE = 1000
_WIDTH = len(JobRow._fields)
LAST_ID = UUID(int=2**128 - 1)
FIRST_ID = make_id(1, 0)
"""Above the ids of the tables' keels."""
_SKEW = timedelta(days=1)
_FEW = frozenset(REDRIVABLE)
"""They have partitions of their own."""


class Searching(Part):
    """See `store.base.SearchStore`."""

    async def get(self, job_id: UUID, *, tenant: str | None = None) -> Job:
        async def look(connection: Connection) -> list[Job]:
            job = await find_job(connection, job_id, tenant)
            return [] if job is None else await completed(connection, [job])

        found = await self._db.read(look)
        if not found:
            raise NotFound("job", job_id)
        return found[0]

    async def find(self, where: JobFilter, *, limit: int = 50, after: UUID | None = None) -> Page:
        check_page(limit)

        async def look(connection: Connection) -> Page:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                await connection.execute(SQL["plan_for_all"])
                return await _page(connection, where, limit, after)

        return await self._db.read(look)

    async def attempts(
        self, job_id: UUID, *, tenant: str | None = None, before: int = NEWEST, limit: int = MOST_ATTEMPTS
    ) -> list[Attempt]:
        check_page(limit)

        async def look(connection: Connection) -> list[Any] | None:
            if await find_job(connection, job_id, tenant) is None:
                return None
            rows: list[Any] = await connection.fetch(SQL["attempts"], job_id, time_of(job_id), before, limit)
            return rows

        rows = await self._db.read(look)
        if rows is None:
            raise NotFound("job", job_id)
        return [attempt_of(row, DIALECT) for row in rows]

    async def counts(self, *, tenant: str | None = None, fresh: bool = False) -> Counts:
        async def look(connection: Connection) -> Counts:
            rows = await connection.fetch(SQL["counts"], tenant, None, None, None, None)
            counted = Counts(await connection.fetchval(SQL["census_at"]), [_count(row) for row in rows])
            return await _fresh(connection, tenant) or counted if fresh and counted.active <= MOST_FRESH else counted

        return await self._db.read(look)


async def _fresh(connection: Connection, tenant: str | None) -> Counts | None:
    """Count anew what is active; None if that is too much."""
    number = None if tenant is None else await tenant_id(connection, tenant)
    name, own = ("fresh_counts", []) if number is None else ("fresh_counts_of_tenant", [number])
    near = await connection.fetch(SQL[name], MOST_FRESH + 1, *own)
    if sum(row["jobs"] for row in near) > MOST_FRESH:
        return None
    columns = [[row[column] for row in near] for column in ("lane", "state", "priority", "jobs")]
    rows = await connection.fetch(SQL["counts"], tenant, *columns)
    return Counts(await store_now(connection), [_count(row) for row in rows])


def check_page(limit: int) -> int:
    """Refuse pages that are empty or too long."""
    if not 1 <= limit <= MAX_PAGE:
        raise Invalid("limit", f"must be between 1 and {MAX_PAGE}, not {limit}")
    return limit


async def find_job(connection: Connection, job_id: UUID, tenant: str | None) -> Job | None:
    """Return a job from wherever it is; a job that ends between the looks is found by the second."""
    row = await connection.fetchrow(SQL["get_active"], job_id, tenant)
    if row is None:
        row = await connection.fetchrow(SQL["get_finished"], job_id, tenant, time_of(job_id))
    if row is None:
        # Or one that was sent round again between them.
        row = await connection.fetchrow(SQL["get_active"], job_id, tenant)
    return None if row is None else job_of(row[:_WIDTH], DIALECT)


async def _page(connection: Connection, where: JobFilter, limit: int, after: UUID | None) -> Page:
    number = None if where.tenant is None else await tenant_id(connection, where.tenant)
    if not await _may_be(connection, where, number):
        return Page([])
    sought = None if where.text is None else read_words(where.text)
    words = () if sought is None else sought.words
    below, floor = _bounds(where, after, sought)
    walk = _Walk(connection, where, _way(where, number), [pattern_of(word) for word in words] or None, limit)
    if walk.way.is_long and (where.label or where.kind or where.error or words):
        tracker = Tracker(connection, where, number, words)
        edge = await walk.through(Stretch(below, floor), FIRST_LOOK)
        if edge is not None and not walk.is_full:
            edge = await _track(walk, tracker, Stretch(edge, floor))
    else:
        edge = await walk.through(Stretch(below, floor), SCAN)
    return Page(await completed(connection, [job_of(row[:_WIDTH], DIALECT) for row in walk.rows]), edge)


async def _track(walk: "_Walk", tracker: Tracker, rest: Stretch) -> UUID | None:
    """Look where the phrases lead, and then at as much as a page without them would; return where to go on."""
    stretches, below = await tracker.stretches(*rest)
    for stretch in stretches:
        edge = await walk.through(_within(stretch, rest), SCAN)
        if edge is not None:
            return edge
    return None if below is None else await walk.through(Stretch(min(below, rest.below), rest.floor), SCAN)


def _within(stretch: Stretch, whole: Stretch) -> Stretch:
    return Stretch(min(stretch.below, whole.below), max(stretch.floor, whole.floor))


class _Walk:
    """Gathers one page."""

    def __init__(
        self, connection: Connection, where: JobFilter, way: "_Way", patterns: list[str] | None, limit: int
    ) -> None:
        self.way = way
        self.rows: list[Any] = []
        self.is_full = False
        self._connection = connection
        states = None if where.states is None else [state.value for state in where.states]
        label = None if where.label is None else list(where.label)
        self._filters = (states, where.kind, where.queue, where.schedule_id, label)
        self._last = (where.created_from, where.created_before, *way.listed_by, patterns)
        self._most = SCAN if patterns is None else min(SCAN, WORD_SCAN)
        self._limit = limit
        self._size = 0

    async def through(self, stretch: Stretch, most: int) -> UUID | None:
        """Look at jobs of a stretch, newest first, and return below which one the next page has to begin.

        None if all of them were looked at.
        """
        way, scan = self.way, min(most, self._most)
        room = self._limit - len(self.rows)
        values = (*stretch, *self._filters, *([scan] if way.is_long else []), room, *self._last)
        rows, is_full = await read_page(self._connection, SQL[f"list_{way.name}"], values, room)
        edge = None
        if way.is_long:
            # One table may have filled the page from beyond the place where the reading of the other stopped.
            lowest = rows[-1]["id"] if is_full else stretch.floor
            edge = await self._connection.fetchval(
                SQL[f"edge_{way.name}"], stretch.below, lowest, scan, *way.bounded_by
            )
        seen = [row for row in rows if edge is None or row["id"] >= edge]
        self.rows += seen
        self._size += sum(map(size_of, seen))
        self.is_full = (is_full and len(seen) == len(rows)) or self._size >= PAGE_BYTES
        return seen[-1]["id"] if self.is_full and seen else edge


async def read_page(
    connection: Connection, query: LiteralString, values: Sequence[Any], limit: int
) -> tuple[list[Any], bool]:
    """Return rows of jobs within a transaction, and whether they fill a page: there are enough, or they are large."""
    cursor = await connection.cursor(query, *values)
    rows: list[Any] = []
    size, wanted = 0, FIRST_ROWS
    while len(rows) < limit and size < PAGE_BYTES:
        wanted = min(wanted, limit - len(rows))
        found = await cursor.fetch(wanted)
        rows += found
        if len(found) < wanted:
            return rows, False
        size += sum(map(size_of, found))
        wanted = max(1, (PAGE_BYTES - size) * len(rows) // max(1, size))  # if the others are like these
    return rows, True


async def _may_be(connection: Connection, where: JobFilter, tenant: int | None) -> bool:
    """Tell whether there can be any, without a look at the jobs."""
    if where.tenant is not None and tenant is None:
        return False
    if where.kind is None and where.queue is None:
        return True
    known: bool = await connection.fetchval(SQL["has_lane"], tenant, where.kind, where.queue)
    return known


class _Way(NamedTuple):
    """Where to look for jobs: the name of the statements, and what these take besides filters and bounds."""

    name: str
    listed_by: Sequence[Any]
    bounded_by: Sequence[Any] = ()
    is_long: bool = True
    """Whether there may be more than one page should read."""


def _way(where: JobFilter, tenant: int | None) -> _Way:
    """Return the shortest way to what is wanted."""
    own, of_tenant = ([], "") if tenant is None else ([tenant], "_of_tenant")
    if where.error is not None or (where.states is not None and where.states <= _FEW):
        return _Way(f"failed{of_tenant}", [where.error, *own], own)
    if where.states == RUNNING_ONLY:
        return _Way("running", [tenant], is_long=False)
    tables = [where.active, where.finished, *own]
    return _Way(f"all{of_tenant}", tables, tables)


async def completed(connection: Connection, jobs: list[Job]) -> list[Job]:
    """Add what runs noted, and the gates that jobs lie behind; a job that never ran has no notes."""
    ran = [job.id for job in jobs if job.token]
    if ran:
        jobs = with_notes(jobs, await connection.fetch(SQL["notes_of"], ran), DIALECT)
    return with_gates(jobs, map(gate_of, await connection.fetch(SQL["gates"]))) if are_gated(jobs) else jobs


def _bounds(where: JobFilter, after: UUID | None, sought: JobWords | None) -> tuple[UUID, UUID]:
    """Return the range of ids to read: an id carries about the time at which its job was made."""
    below, floor = after or LAST_ID, FIRST_ID
    if where.created_before is not None:
        below = min(below, _id_at(where.created_before + _SKEW))
    if where.created_from is not None:
        floor = _id_at(where.created_from - _SKEW)
    if sought is not None and sought.job_id is not None:
        below, floor = min(below, UUID(int=min(sought.job_id.int + 1, LAST_ID.int))), max(floor, sought.job_id)
    return below, floor


def _id_at(instant: datetime) -> UUID:
    return make_id(int(instant.astimezone(UTC).timestamp() * 1000), 0)


def _count(row: Any) -> Count:
    return Count(row["tenant"], row["queue"], row["kind"], State(row["state"]), row["priority"], row["jobs"])
