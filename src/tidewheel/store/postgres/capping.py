"""Caps: what a submit may bring into a queue, decided after it was written and before anyone sees it.

Who brings jobs into a queue with a cap does so under the lock of the cap, one after the other.
"""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from tidewheel.errors import NotFound, QueueFull, Unavailable
from tidewheel.model.cap import QueueCap, bound_of, check_cap, reason_of, victims
from tidewheel.model.checks import check_name
from tidewheel.model.states import WAITING, Cause
from tidewheel.store.postgres.connection import SQL, Connection
from tidewheel.store.postgres.ending import Ending, finish
from tidewheel.store.postgres.parts import Part, intern_tenant, tenant_id

_ROUNDS: Final = 5
"""How often it is counted again because some of those that were to be dropped had gone otherwise."""


class Capping(Part):
    """See `store.capping.CapStore`."""

    async def set_cap(self, cap: QueueCap) -> None:
        check_cap(cap)

        async def put(connection: Connection) -> None:
            number = await intern_tenant(connection, cap.tenant)
            await connection.execute(SQL["set_cap"], number, cap.queue, cap.most, cap.overflow)

        await self._db.transaction(put)

    async def remove_cap(self, queue: str, *, tenant: str = "default") -> None:
        check_name("tenant", tenant)

        async def remove(connection: Connection) -> bool:
            number = await tenant_id(connection, tenant)
            return await connection.fetchval(SQL["remove_cap"], number, queue) is not None

        if not await self._db.transaction(remove):
            raise NotFound("cap of queue", queue)

    async def caps(self, *, tenant: str | None = None) -> list[QueueCap]:
        rows = await self._db.read(lambda connection: connection.fetch(SQL["caps"], tenant))
        return [QueueCap(*row) for row in rows]


async def lock_caps(connection: Connection, lanes: Sequence[int]) -> list[tuple[QueueCap, int]]:
    """Lock the caps that hold for some lanes, and return each with the number of its tenant."""
    rows: list[Any] = await connection.fetch(SQL["lock_caps"], sorted(set(lanes)))
    return [(QueueCap(*row[:4]), row[4]) for row in rows]


async def check_room(connection: Connection, cap: QueueCap, tenant: int, new: int) -> None:
    """Refuse new jobs under a locked cap that rejects what is too much, before anything of them is written."""
    if cap.overflow == "reject" and new:
        bound = bound_of(cap, new)
        if await connection.fetchval(SQL["count_waiting"], tenant, cap.queue, bound) + new > cap.most:
            raise QueueFull(cap.queue, cap.most)


async def enforce(connection: Connection, cap: QueueCap, tenant: int, new: Sequence[UUID]) -> None:
    """See that no more wait under a locked cap than it allows, after some were added: others are dropped for them."""
    if cap.overflow == "reject" or not new:
        return
    for _ in range(_ROUNDS):
        waiting = await connection.fetchval(SQL["count_waiting"], tenant, cap.queue, bound_of(cap, len(new)))
        excess = waiting - cap.most
        if excess <= 0:
            return
        query = SQL["last_in_line" if cap.overflow == "replace" else "first_in_line"]
        line = [row[0] for row in await connection.fetch(query, tenant, cap.queue, excess + len(new))]
        chosen = victims(cap, line, [job_id for job_id in new if job_id in line], excess)
        # Whoever is being started meanwhile waits no more, and is counted no more in the next round.
        held = await connection.fetch(SQL["lock_waiting"], sorted(chosen))
        reason = reason_of(cap)
        await finish(connection, WAITING, [Ending.waiting(row[0], Cause.DROPPED, reason) for row in held])
        if len(held) == len(chosen):
            return
    raise Unavailable(f"what waits in queue {cap.queue} changed all the time")
