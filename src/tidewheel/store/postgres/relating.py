"""The parents of new jobs: found under their locks, so that none of them ends unnoticed."""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from tidewheel.errors import IdTaken, Invalid
from tidewheel.model.dependency import reason_of, stand
from tidewheel.model.ids import time_of
from tidewheel.model.states import Cause, State
from tidewheel.model.submission import Prepared
from tidewheel.store.postgres.connection import SQL, Connection, Raced
from tidewheel.store.postgres.ending import Ending, finish

_LOOKS: Final = 3


class NewJob(NamedTuple):
    """A job on its way into the store."""

    id: UUID
    tenant: int
    job: Prepared
    field: str
    """What to call its parents in an error."""


class Relations(NamedTuple):
    """How it stands with the parents of new jobs."""

    waits: list[int]
    edges: list[tuple[UUID, UUID, bool]]
    awaited: set[UUID]
    """Active jobs, new or old, that someone waits for from now on."""
    skipped: dict[UUID, str]
    """New jobs that will never run, and why."""


async def relate(connection: Connection, new: Sequence[NewJob]) -> Relations | None:
    """Lock the parents of new jobs and see how they stand; None if nobody has any."""
    await _check_free(connection, [each.id for each in new if each.job.id is not None])
    if not any(each.job.after for each in new):
        return None
    tenants = {each.id: each.tenant for each in new if each.job.id is not None}
    asked = {parent for each in new for parent in each.job.after}
    active, finished = await _find(connection, asked - tenants.keys())
    tenants |= active | {parent: tenant for parent, (tenant, _) in finished.items()}
    _check_there(new, tenants)
    ended = {parent: state for parent, (_, state) in finished.items()}
    relations = _relations(new, ended)
    await _hold_finished(connection, {parent for parent, _, done in relations.edges if not done} & ended.keys())
    return relations


async def store(connection: Connection, relations: Relations) -> None:
    """Write who waits for whom, and end those that will never run. The jobs themselves are there."""
    if relations.edges:
        await connection.execute(SQL["add_edges"], *map(list, zip(*relations.edges, strict=True)))
    await connection.execute(SQL["await_active"], sorted(relations.awaited))
    endings = [Ending.waiting(child, Cause.PARENT_FAILED, why) for child, why in relations.skipped.items()]
    await finish(connection, [State.BLOCKED], endings)


async def _check_free(connection: Connection, given: list[UUID]) -> None:
    """Refuse ids that are taken; nobody else can take them until this transaction ends."""
    if given:
        await connection.execute(SQL["lock_ids"], given)
        for row in await connection.fetch(SQL["relatives"], given, [time_of(job_id) for job_id in given]):
            if row["state"] is not None:
                raise IdTaken(row["id"])


async def _find(connection: Connection, asked: Collection[UUID]) -> tuple[dict[UUID, int], dict[UUID, tuple[int, str]]]:
    """Find parents among the active jobs, which are locked, or else in history."""
    active: dict[UUID, int] = {}
    finished: dict[UUID, tuple[int, str]] = {}
    missing = sorted(asked)
    for _ in range(_LOOKS):  # one may be sent round again between the looks
        if missing:
            active |= {row[0]: row[1] for row in await connection.fetch(SQL["lock_parents"], missing)}
            missing = [parent for parent in missing if parent not in active]
        if missing:
            made = [time_of(parent) for parent in missing]
            rows = await connection.fetch(SQL["find_finished"], missing, made)
            finished |= {row[0]: (row[1], row[2]) for row in rows}
            missing = [parent for parent in missing if parent not in finished]
    return active, finished


def _check_there(new: Sequence[NewJob], tenants: dict[UUID, int]) -> None:
    for each in new:
        for parent in each.job.after:
            if tenants.get(parent) != each.tenant:
                raise Invalid(each.field, f"no job {parent}")


def _relations(new: Sequence[NewJob], ended: dict[UUID, str]) -> Relations:
    relations = Relations([], [], set(), {})
    for each in new:
        waits, failed = stand(each.job.after, each.job.on_parent_failure, ended)
        still = set(waits)
        relations.waits.append(len(waits))
        relations.edges.extend((parent, each.id, parent not in still) for parent in each.job.after)
        relations.awaited.update(still - ended.keys())
        if failed is not None:
            relations.skipped[each.id] = reason_of(failed, ended[failed])
    return relations


async def _hold_finished(connection: Connection, parents: Collection[UUID]) -> None:
    """Let finished jobs know that someone waits until they are redriven."""
    if parents:
        rows = await connection.fetch(SQL["await_finished"], list(parents), min(map(time_of, parents)))
        if len(rows) != len(parents):
            raise Raced("a parent was sent round again")
