"""Dependencies for readers and for the keeper: parents, children, and blocked jobs that nobody may forget."""

from collections.abc import Sequence
from typing import Any, Final, Literal
from uuid import UUID

from tidewheel.errors import Invalid, NotFound
from tidewheel.model.dependency import Relative, decide, reason_of
from tidewheel.model.ids import time_of
from tidewheel.model.states import FINAL, Cause, State
from tidewheel.store.postgres.connection import SQL, Connection
from tidewheel.store.postgres.ending import Ending, finish, tell_children
from tidewheel.store.postgres.parts import Part
from tidewheel.store.postgres.releasing import NOBODY, EndedParent, lock_blocked, tell_edges
from tidewheel.store.postgres.searching import MAX_PAGE, find_job

_MOST_EDGES: Final = 20_000
"""How many edges of blocked jobs one look may be about."""
_GONE: Final = "gone"
"""How a parent ended whose record was removed."""

Cursor = tuple[int, int, UUID]
_FIRST: Final[Cursor] = (1, -1, NOBODY)
"""Beyond the table's keel, which has lane 0."""


class Depending(Part):
    """See `store.base.SearchStore` and `store.keeping.UpkeepStore`."""

    _rechecked: Cursor = _FIRST

    async def parents_of(
        self, job_id: UUID, *, limit: int = 50, after: UUID | None = None, tenant: str | None = None
    ) -> list[Relative]:
        return await self._relatives("parents_page", job_id, limit, after, tenant)

    async def children_of(
        self, job_id: UUID, *, limit: int = 50, after: UUID | None = None, tenant: str | None = None
    ) -> list[Relative]:
        return await self._relatives("children_page", job_id, limit, after, tenant)

    async def unblock(self, *, limit: int = 1000) -> int:
        async def tell(connection: Connection) -> int:
            rows = await connection.fetch(SQL["take_ended_parents"], limit)
            parents = {row["parent"]: EndedParent(row["state"], row["beyond"]) for row in rows}
            return await tell_children(connection, parents, limit) or len(rows)

        told = await self._db.transaction(tell)
        if told:
            self._hints.send()
        return told

    async def recheck_blocked(self, *, limit: int = 1000) -> int:
        async def look(connection: Connection) -> tuple[Cursor, list[UUID]]:
            rows = _bounded(await connection.fetch(SQL["blocked_jobs"], *self._rechecked, limit))
            waits = {row["id"]: row["waits"] for row in rows}
            edges = await connection.fetch(SQL["edges_of_blocked"], list(waits)) if waits else []
            doubtful = [row["id"] for row in edges if row["ended"] or row["open"] != waits[row["id"]]]
            return (tuple(rows[-1])[:3] if rows else _FIRST), doubtful

        self._rechecked, doubtful = await self._db.read(look)
        return await self._db.transaction(lambda connection: _mend(connection, doubtful)) if doubtful else 0

    async def _relatives(
        self,
        page: Literal["parents_page", "children_page"],
        job_id: UUID,
        limit: int,
        after: UUID | None,
        tenant: str | None,
    ) -> list[Relative]:
        if not 1 <= limit <= MAX_PAGE:
            raise Invalid("limit", f"must be between 1 and {MAX_PAGE}, not {limit}")

        async def look(connection: Connection) -> list[Relative]:
            if await find_job(connection, job_id, tenant) is None:
                raise NotFound("job", job_id)
            ids = [row[0] for row in await connection.fetch(SQL[page], job_id, after or NOBODY, limit)]
            return await relatives_named(connection, ids)

        return await self._db.read(look)


async def relatives_named(connection: Connection, ids: Sequence[UUID]) -> list[Relative]:
    """Return jobs as others' relatives."""
    rows = await connection.fetch(SQL["relatives"], list(ids), [time_of(each) for each in ids])
    return [Relative(row[0], row[1], row[2] and State(row[2])) for row in rows]


def _bounded(rows: Sequence[Any]) -> list[Any]:
    """Take as many blocked jobs as have no more than so many edges together, but at least one."""
    taken: list[Any] = []
    edges = 0
    for row in rows:
        edges += row["waits"]
        if taken and edges > _MOST_EDGES:
            break
        taken.append(row)
    return taken


async def _mend(connection: Connection, doubtful: list[UUID]) -> int:
    """Look again under the locks of the children, and let their counters say what their edges say."""
    policies = await lock_blocked(connection, set(doubtful))
    edges = await connection.fetch(SQL["edges_of_blocked"], sorted(policies))
    ended = await _ends(connection, {parent for row in edges for parent in row["ended"] or ()})
    pairs = [(parent, row["id"]) for row in edges for parent in row["ended"] or ()]
    counted, skipped = decide(pairs, ended, policies)
    told = await tell_edges(connection, counted)
    waits = {row["id"]: row["open"] - told[row["id"]] for row in edges if row["id"] not in skipped}
    rows = await connection.fetch(SQL["set_waits"], list(waits), list(waits.values()))
    reasons = {child: reason_of(parent, ended[parent]) for child, parent in skipped.items()}
    endings = [Ending.waiting(child, Cause.PARENT_FAILED, why) for child, why in reasons.items()]
    return len(rows) + await finish(connection, [State.BLOCKED], endings)


async def _ends(connection: Connection, parents: set[UUID]) -> dict[UUID, str]:
    """Return how parents ended; those that are active again are left out."""
    named = sorted(parents)
    rows = await connection.fetch(SQL["relatives"], named, [time_of(parent) for parent in named])
    finished = {row["id"]: row["state"] or _GONE for row in rows}
    return {parent: state for parent, state in finished.items() if state == _GONE or State(state) in FINAL}
