"""Telling children that their parents have ended: who need not wait any more, and who will never run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from tidewheel.model.dependency import Edge, decide, reason_of
from tidewheel.model.states import State
from tidewheel.store.postgres.connection import SQL, Connection

NOBODY: Final = UUID(int=0)


class EndedParent(NamedTuple):
    """How a parent ended, and the last child that was told."""

    state: str
    beyond: UUID = NOBODY


class Piece(NamedTuple):
    """What came of telling some children."""

    told: int
    skipped: dict[UUID, str]
    """Children that are to end, and why."""
    left: dict[UUID, EndedParent]
    """Parents with children that were not told yet."""


async def tell(connection: Connection, parents: Mapping[UUID, EndedParent], limit: int) -> Piece:
    """Follow at most so many edges of ended parents; a child that becomes free is queued."""
    edges, left = await _find_edges(connection, parents, limit)
    if not edges:
        return Piece(0, {}, left)
    policies = await lock_blocked(connection, {child for _, child in edges})
    ends = {parent: ended.state for parent, ended in parents.items()}
    counted, skipped = decide(edges, ends, policies)
    await _count_down(connection, counted)
    await tell_edges(connection, [(parent, child) for child, parent in skipped.items()])
    reasons = {child: reason_of(parent, ends.get(parent, State.SKIPPED)) for child, parent in skipped.items()}
    return Piece(len(edges), reasons, left)


async def _find_edges(
    connection: Connection, parents: Mapping[UUID, EndedParent], limit: int
) -> tuple[list[Edge], dict[UUID, EndedParent]]:
    beyonds = [ended.beyond for ended in parents.values()]
    rows = await connection.fetch(SQL["open_edges"], list(parents), beyonds, limit)
    direct: list[Edge] = [(row[0], row[1]) for row in rows]
    failed = [edge for edge in direct if parents[edge[0]].state != State.SUCCEEDED]
    if not failed:
        return direct, _left(parents, direct, limit)
    rows = await connection.fetch(SQL["doomed_edges"], [e[0] for e in failed], [e[1] for e in failed], limit)
    good = [edge for edge in direct if parents[edge[0]].state == State.SUCCEEDED]
    return [*good, *((row[0], row[1]) for row in rows)], _left(parents, direct, limit)


def _left(parents: Mapping[UUID, EndedParent], edges: Sequence[Edge], limit: int) -> dict[UUID, EndedParent]:
    """Tell which parents may have more children than were found: the last one, and those after it."""
    if len(edges) < limit:
        return {}
    last, beyond = edges[-1]
    order = list(parents)
    after = order[order.index(last) + 1 :]
    return {last: EndedParent(parents[last].state, beyond), **{parent: parents[parent] for parent in after}}


async def lock_blocked(connection: Connection, children: set[UUID]) -> dict[UUID, str]:
    """Lock those of the children that are blocked, and return their policies."""
    rows = await connection.fetch(SQL["lock_children"], sorted(children))
    return {row[0]: row[1] for row in rows}


async def tell_edges(connection: Connection, edges: Sequence[Edge]) -> Counter[UUID]:
    """Mark edges of locked children, and return how many of each child were not marked before."""
    if not edges:
        return Counter()
    rows = await connection.fetch(SQL["tell_edges"], [edge[0] for edge in edges], [edge[1] for edge in edges])
    return Counter([row[0] for row in rows])


async def _count_down(connection: Connection, edges: Sequence[Edge]) -> None:
    """Mark edges of locked children, and let these wait for fewer parents."""
    if edges:
        await connection.execute(SQL["count_down"], [edge[0] for edge in edges], [edge[1] for edge in edges])


async def note(connection: Connection, parents: Mapping[UUID, EndedParent]) -> None:
    """Leave the rest to the duty."""
    if parents:
        states = [ended.state for ended in parents.values()]
        beyonds = [ended.beyond for ended in parents.values()]
        await connection.execute(SQL["note_ended_parents"], list(parents), states, beyonds)
