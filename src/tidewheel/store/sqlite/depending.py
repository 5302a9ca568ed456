"""Dependencies for readers and for the keeper: parents, children, and blocked jobs that nobody may forget."""

from collections.abc import Sequence
from typing import Any, Final, Literal
from uuid import UUID

import apsw

from tidewheel.model.dependency import Relative, decide, reason_of
from tidewheel.model.states import FINAL, State
from tidewheel.store.sqlite.connection import rows, value
from tidewheel.store.sqlite.ending import skip, tell_children
from tidewheel.store.sqlite.releasing import NOBODY, EndedParent, Skip, blocked_children, mark_edges, queue
from tidewheel.store.sqlite.searching import get
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import decode_ids, id_of, json_text

_MOST_EDGES: Final = 20_000
"""How many edges of blocked jobs one look may be about."""
_GONE: Final = "gone"
"""How a parent ended whose record was removed."""

Cursor = tuple[int, int, bytes]
FIRST: Final[Cursor] = (0, -1, b"")


def relatives(
    connection: apsw.Connection, page: Literal["parents_page", "children_page"], job_id: UUID, **bounds: Any
) -> list[Relative]:
    """See `store.base.SearchStore.parents_of` and `children_of`."""
    get(connection, job_id, bounds["tenant"])
    after: UUID = bounds["after"] or NOBODY
    ids = decode_ids(value(connection, page, {"job": job_id.bytes, "after": after.bytes, "limit": bounds["limit"]}))
    return relatives_named(connection, ids)


def relatives_named(connection: apsw.Connection, ids: Sequence[UUID]) -> list[Relative]:
    """Return jobs as others' relatives."""
    kinds = {row[0]: row[3] for row in rows(connection, "lanes", {})}
    found = {
        id_of(job): (kinds[lane], State(state))
        for job, _, lane, state in rows(connection, "find_jobs", {"jobs": json_text(ids)})
    }
    return [Relative(job, *found.get(job, (None, None))) for job in ids]


def unblock(session: Session, limit: int, named: Sequence[UUID] | None = None) -> int:
    """See `store.keeping.UpkeepStore.unblock`; with jobs named, only for those."""
    names = None if named is None else json_text(named)
    taken = session.rows("take_ended_parents", named=names, limit=limit)
    parents = {id_of(parent): EndedParent(state, id_of(beyond)) for parent, state, beyond in taken}
    return tell_children(session, parents, session.now, limit) or len(taken)


def find_doubtful(connection: apsw.Connection, cursor: Cursor, limit: int) -> tuple[Cursor, list[UUID]]:
    """Look at the next blocked jobs; return how far that went, and those whose edges do not fit their counters."""
    lane, priority, job_id = cursor
    found = rows(connection, "blocked_jobs", {"lane": lane, "priority": priority, "id": job_id, "limit": limit})
    blocked = _bounded(found)
    waits = {id_of(row[2]): row[3] for row in blocked}
    edges = _edges_of(rows(connection, "edges_of_blocked", {"jobs": json_text(list(waits))}))
    doubtful = [child for child, (number, ended) in edges.items() if ended or number != waits[child]]
    return (tuple(blocked[-1][:3]) if blocked else FIRST), doubtful


def mend(session: Session, doubtful: Sequence[UUID]) -> int:
    """Look again, and let the counters of blocked jobs say what their edges say; return how many were wrong."""
    now = session.now
    children = blocked_children(session, doubtful)
    edges = _edges_of(session.rows("edges_of_blocked", jobs=json_text(list(children))))
    pairs = [(parent, child) for child, (_, parents) in edges.items() for parent in parents]
    ended = _ends(session, {parent for parent, _ in pairs})
    counted, skipped = decide(pairs, ended, {child: policy for child, (policy, _) in children.items()})
    mark_edges(session, counted)
    others = json_text([child for child in children if child not in skipped])
    mended = queue(session, session.rows("recount_waits", jobs=others, now=now))
    skip(session, [Skip(children[c][1], reason_of(p, ended[p])) for c, p in skipped.items()], now)
    return mended + len(skipped)


def _ends(session: Session, parents: set[UUID]) -> dict[UUID, str]:
    """Return how parents ended; those that are active again are left out."""
    found = {id_of(row[0]): row[3] for row in session.rows("find_jobs", jobs=json_text(sorted(parents)))}
    ends = {parent: found.get(parent, _GONE) for parent in parents}
    return {parent: end for parent, end in ends.items() if end == _GONE or State(end) in FINAL}


def _edges_of(found: Sequence[Any]) -> dict[UUID, tuple[int, tuple[UUID, ...]]]:
    return {id_of(child): (number, decode_ids(ended)) for child, number, ended in found}


def _bounded(found: Sequence[Any]) -> list[Any]:
    """Take as many blocked jobs as have no more than so many edges together, but at least one."""
    taken: list[Any] = []
    edges = 0
    for row in found:
        edges += row[3]
        if taken and edges > _MOST_EDGES:
            break
        taken.append(row)
    return taken
