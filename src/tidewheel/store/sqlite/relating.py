"""The parents of new jobs: they are all there, and of those that have ended it is told at once."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from tidewheel.errors import IdTaken, Invalid
from tidewheel.model.states import FINAL
from tidewheel.store.sqlite.ending import skip
from tidewheel.store.sqlite.releasing import tell_edges
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import id_of, json_text


class Child(NamedTuple):
    """A new job with parents, blocked as if it had to wait for all of them."""

    id: UUID
    tenant: int
    after: tuple[UUID, ...]
    field: str
    """What to call its parents in an error."""


def relate(session: Session, children: Sequence[Child], now: int) -> None:
    """Write who waits for whom, and follow the edges whose parents have ended."""
    edges = [(parent, child.id) for child in children for parent in child.after]
    parents = dict.fromkeys(parent for parent, _ in edges)
    named = json_text(list(parents))
    found = {id_of(job): (tenant, state) for job, tenant, _, state in session.rows("find_jobs", jobs=named)}
    for child in children:
        for parent in child.after:
            if found.get(parent, (None,))[0] != child.tenant:
                raise Invalid(child.field, f"no job {parent}")
    session.run("add_edges", edges=json_text(edges))
    session.run("await_active", jobs=named)
    session.run("await_finished", jobs=named)
    ended = {parent: state for parent, (_, state) in found.items() if state in FINAL}
    skip(session, tell_edges(session, [edge for edge in edges if edge[0] in ended], ended, now), now)


def check_free(session: Session, given: Sequence[UUID]) -> None:
    """Refuse ids that are taken."""
    if given and (taken := session.rows("find_jobs", jobs=json_text(given))):
        raise IdTaken(id_of(taken[0][0]))
