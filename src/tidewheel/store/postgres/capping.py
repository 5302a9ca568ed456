"""Caps: what a submit may bring into a queue or with a key, decided after it was written and before anyone sees it.

Who brings jobs under a cap does so under its lock, one after the other: that of the row for a queue, and one by the
name for a key.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from tidewheel.errors import NotFound, Unavailable
from tidewheel.model.cap import AnyCap, KeyCap, QueueCap, bound_of, check_cap, full, reason_of, victims
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


class LockedCap(NamedTuple):
    """A cap under whose lock this is, with the number of its tenant."""

    cap: AnyCap
    tenant: int

    async def waiting(self, connection: Connection, bound: int) -> int:
        """Count who waits under it, up to a bound."""
        query, name = (
            ("count_waiting", self.cap.queue) if isinstance(self.cap, QueueCap) else ("count_capped", self.cap.key)
        )
        number: int = await connection.fetchval(SQL[query], self.tenant, name, bound)
        return number

    async def line(self, connection: Connection, number: int) -> list[UUID]:
        """Return the first in line, or the last if these make way."""
        last = self.cap.overflow == "replace"
        if isinstance(self.cap, QueueCap):
            query, name = "last_in_line" if last else "first_in_line", self.cap.queue
        else:
            query, name = "last_capped" if last else "first_capped", self.cap.key
        return [row[0] for row in await connection.fetch(SQL[query], self.tenant, name, number)]


async def lock_caps(connection: Connection, lanes: Sequence[int]) -> list[LockedCap]:
    """Lock the caps of the queues of some lanes."""
    rows: list[Any] = await connection.fetch(SQL["lock_caps"], sorted(set(lanes)))
    return [LockedCap(QueueCap(*row[:4]), row[4]) for row in rows]


async def lock_key_caps(connection: Connection, slots: Collection[tuple[int, str]]) -> list[LockedCap]:
    """Lock the caps of some keys, each with the number of its tenant; after those of queues."""
    if not slots:
        return []
    rows: list[Any] = await connection.fetch(SQL["cap_rules_of"], *_names(slots))
    caps = [LockedCap(KeyCap(*row[:4]), row[4]) for row in rows]
    if caps:
        await connection.execute(SQL["lock_cap_keys"], *_names([(row[4], row[1]) for row in rows]))
    return caps


async def check_room(connection: Connection, locked: LockedCap, new: int) -> None:
    """Refuse new jobs under a cap that rejects what is too much, before anything of them is written."""
    cap = locked.cap
    if cap.overflow == "reject" and new and await locked.waiting(connection, bound_of(cap, new)) + new > cap.most:
        raise full(cap)


async def enforce(connection: Connection, locked: LockedCap, new: Sequence[UUID]) -> None:
    """See that no more wait under a cap than it allows, after some were added: others are dropped for them."""
    cap = locked.cap
    if cap.overflow == "reject" or not new:
        return
    for _ in range(_ROUNDS):
        excess = await locked.waiting(connection, bound_of(cap, len(new))) - cap.most
        if excess <= 0:
            return
        line = await locked.line(connection, excess + len(new))
        chosen = victims(cap, line, [job_id for job_id in new if job_id in line], excess)
        # Whoever is being started meanwhile waits no more, and is counted no more in the next round.
        held = await connection.fetch(SQL["lock_waiting"], sorted(chosen))
        reason = reason_of(cap)
        await finish(connection, WAITING, [Ending.waiting(row[0], Cause.DROPPED, reason) for row in held])
        if len(held) == len(chosen):
            return
    what = f"in queue {cap.queue}" if isinstance(cap, QueueCap) else f"with key {cap.key}"
    raise Unavailable(f"what waits {what} changed all the time")


def _names(slots: Collection[tuple[int, str]]) -> tuple[list[int], list[str]]:
    return [tenant for tenant, _ in slots], [key for _, key in slots]
