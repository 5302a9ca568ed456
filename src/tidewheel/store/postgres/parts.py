"""What the parts of the store share: the database, the statements, and the lanes they know."""

import random
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from tidewheel.model.gate import Gate, GateMode, flag_of
from tidewheel.model.ids import IdMaker
from tidewheel.model.noted_kinds import NotedKinds
from tidewheel.model.submission import LaneKey
from tidewheel.store.postgres.connection import SQL, Connection, Database
from tidewheel.store.postgres.hints import Hints
from tidewheel.store.records import Dialect

DIALECT = Dialect(uuid=lambda value: value, instant=lambda value: value, keys=tuple, ids=tuple)

_MOST_INVOLVED: Final = 100_000


class Part:
    """A part of the store; `PostgresStore` is the sum of them."""

    def __init__(self, database: Database, lanes: "LaneBook", make_id: IdMaker) -> None:
        self._db = database
        self._hints = Hints(database.dial, database.clock)
        self._lanes = lanes
        self._make_id = make_id
        self._kinds = NotedKinds()
        self._involved: set[tuple[UUID, int]] = set()
        """Runs that were claimed here whose ends concern others; a hint, so that they are dealt with at once."""

    def _remember_involved(self, rows: Iterable[Any]) -> None:
        """Note runs with limit keys or children."""
        if len(self._involved) > _MOST_INVOLVED:
            self._involved.clear()  # most of these were never settled here
        self._involved.update((row["id"], row["token"]) for row in rows)


class LaneBook:
    """Interns lanes. They are never removed, so what was seen once stays true."""

    def __init__(self) -> None:
        self._known: dict[LaneKey, tuple[int, int]] = {}

    async def ids(self, connection: Connection, keys: list[LaneKey]) -> list[tuple[int, int]]:
        """Return the (lane, tenant) numbers of lanes, adding those that are new.

        New lanes are added within the caller's transaction and only remembered by `remember`, after its commit.
        """
        known = self._known
        try:
            return [known[key] for key in keys]
        except KeyError:
            found = {key: known.get(key) or await _intern(connection, key) for key in dict.fromkeys(keys)}
            return [found[key] for key in keys]

    def knows(self, keys: list[LaneKey]) -> bool:
        """Tell whether all of these lanes need no look at the store."""
        return all(key in self._known for key in keys)

    def remember(self, keys: list[LaneKey], ids: list[tuple[int, int]]) -> None:
        """Keep what a committed transaction interned."""
        self._known.update(zip(keys, ids, strict=True))


async def tenant_id(connection: Connection, name: str) -> int | None:
    """Return the number of a tenant, if it is known."""
    number: int | None = await connection.fetchval(SQL["tenant_id"], name)
    return number


async def intern_tenant(connection: Connection, name: str) -> int:
    """Return the number of a tenant, adding it if it is new."""
    number = await tenant_id(connection, name)
    if number is None:
        await connection.execute(SQL["intern_tenant"], name)
        number = await tenant_id(connection, name)
    if number is None:
        raise AssertionError(f"tenant {name} vanished")
    return number


async def _intern(connection: Connection, key: LaneKey) -> tuple[int, int]:
    tenant = await intern_tenant(connection, key.tenant)
    values = (tenant, key.queue, key.kind, key.needs, key.keyed, key.retried, key.overdue)
    lane = await connection.fetchval(SQL["find_lane"], *values)
    if lane is None:
        await connection.execute(SQL["lock_lanes"])
        lane = await connection.fetchval(SQL["find_lane"], *values)
    if lane is None:
        gates = [gate_of(row) for row in await connection.fetch(SQL["gates"])]
        flag = flag_of(gates, kind=key.kind, queue=key.queue, tenant=key.tenant)
        lane = await connection.fetchval(SQL["add_lane"], *values, flag)
        await connection.execute(SQL["note_lanes"])
    return lane, tenant


def gate_of(row: Any) -> Gate:
    """Build a gate from its row."""
    return Gate(
        id=row["id"],
        mode=GateMode(row["mode"]),
        kind=row["kind"],
        queue=row["queue"],
        tenant=row["tenant"],
        reason=row["reason"],
        author=row["author"],
        created_at=row["created_at"],
        rate=row["rate"],
        ready_at=None if row["rate"] is None else row["ready_at"],
        expires_at=row["expires_at"],
        stop_running=row["stop_running"],
    )


def id_maker(database: Database) -> IdMaker:
    """Return a maker of ids that carry the database's time, whatever the clock of this host says."""
    return IdMaker(lambda: int(database.time() * 1000), random.SystemRandom())


async def store_now(connection: Connection) -> datetime:
    """Return the time that decides; a piece of work asks once, for it goes on from statement to statement."""
    now: datetime = await connection.fetchval(SQL["store_now"])
    return now
