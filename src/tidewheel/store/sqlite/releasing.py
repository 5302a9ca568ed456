"""Telling children that their parents have ended: who need not wait any more, and who will never run."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from tidewheel.model.dependency import Edge, decide, reason_of
from tidewheel.model.states import State
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import json_text

NOBODY: Final = UUID(int=0)


class Waiting(msgspec.Struct, array_like=True, frozen=True):
    """A waiting job as the store has it."""

    place: int
    token: int
    state: State
    lane: int
    priority: int
    limit_keys: tuple[str, ...] | None
    awaited: UUID | None
    """Its id, if others wait for it."""


class EndedParent(NamedTuple):
    """How a parent ended, and the last child that was told."""

    state: str
    beyond: UUID = NOBODY


class Skip(NamedTuple):
    """A child that is to end, and why."""

    job: Waiting
    reason: str


class Piece(NamedTuple):
    """What came of telling some children."""

    told: int
    skipped: list[Skip]
    left: dict[UUID, EndedParent]
    """Parents with children that were not told yet."""


_edges: Final = msgspec.json.Decoder(list[Edge]).decode
_children: Final = msgspec.json.Decoder(list[tuple[UUID, str, Waiting]]).decode


def tell(session: Session, parents: Mapping[UUID, EndedParent], limit: int, now: int) -> Piece:
    """Follow at most so many edges of ended parents; a child that becomes free is queued."""
    asked = json_text([(parent, ended.beyond) for parent, ended in parents.items()])
    direct = _edges(session.value("open_edges", parents=asked, limit=limit))
    edges = [edge for edge in direct if parents[edge[0]].state == State.SUCCEEDED]
    if len(edges) < len(direct):
        failed = json_text([edge for edge in direct if parents[edge[0]].state != State.SUCCEEDED])
        edges += _edges(session.value("doomed_edges", edges=failed, limit=limit))
    skipped = tell_edges(session, edges, {parent: ended.state for parent, ended in parents.items()}, now)
    return Piece(len(edges), skipped, _left(parents, direct, limit))


def tell_edges(session: Session, edges: Sequence[Edge], ends: Mapping[UUID, str], now: int) -> list[Skip]:
    """Follow edges that are open and whose parents have ended; return the children that are to end."""
    if not edges:
        return []
    children = blocked_children(session, {child for _, child in edges})
    counted, skipped = decide(edges, ends, {child: policy for child, (policy, _) in children.items()})
    mark_edges(session, [*counted, *((parent, child) for child, parent in skipped.items())])
    told = Counter(child for _, child in counted)
    queue(session, session.rows("count_down", told=json_text(list(told.items())), now=now))
    return [
        Skip(children[child][1], reason_of(parent, ends.get(parent, State.SKIPPED)))
        for child, parent in skipped.items()
    ]


def blocked_children(session: Session, children: Iterable[UUID]) -> dict[UUID, tuple[str, Waiting]]:
    """Return the policies and rows of those that are blocked."""
    found = _children(session.value("blocked_children", jobs=json_text(sorted(children))))
    return {child: (policy, row) for child, policy, row in found}


def mark_edges(session: Session, edges: Sequence[Edge]) -> None:
    """Note that children need not wait for these parents any more."""
    if edges:
        session.run("tell_edges", edges=json_text(edges))


def queue(session: Session, changed: Iterable[Any]) -> int:
    """Note which pairs got queued jobs, of (pair, run_at, state); return how many jobs there were."""
    number = 0
    for pair, run_at, state in changed:
        number += 1
        if state == State.QUEUED:
            session.lanes.mark(pair, run_at)
    return number


def note(session: Session, parents: Mapping[UUID, EndedParent]) -> None:
    """Leave the rest to the duty."""
    if parents:
        rows = [(parent, *ended) for parent, ended in parents.items()]
        session.run("note_ended_parents", parents=json_text(rows))


def _left(parents: Mapping[UUID, EndedParent], edges: Sequence[Edge], limit: int) -> dict[UUID, EndedParent]:
    """Tell which parents may have more children than were found: the last one, and those after it."""
    if len(edges) < limit:
        return {}
    last, beyond = edges[-1]
    order = list(parents)
    after = order[order.index(last) + 1 :]
    return {last: EndedParent(parents[last].state, beyond), **{parent: parents[parent] for parent in after}}
