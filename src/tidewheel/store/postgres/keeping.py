"""Upkeep: expiry, dropping, the census, retention, and the day partitions of history."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final, LiteralString
from uuid import UUID

import asyncpg

from tidewheel.model.gate import why_dropped
from tidewheel.model.ids import make_id
from tidewheel.model.log import KEEP_LOGS
from tidewheel.model.states import FINAL, WAITING, Cause, State
from tidewheel.store.postgres.connection import SQL, Connection
from tidewheel.store.postgres.ending import Ending, finish
from tidewheel.store.postgres.parts import Part, gate_of
from tidewheel.store.postgres.searching import FIRST_ID

_OTHERS: Final = tuple(state for state in FINAL if state is not State.SUCCEEDED)
_PARTITIONS: Final = {"job_history_succeeded": (State.SUCCEEDED,), "job_history_other": _OTHERS, "attempt": FINAL}
"""Which states the day partitions of each table hold."""
_PIECES: Final = 20
"""How many pieces of old edges one call looks at."""


class Keeping(Part):
    """See `store.base.UpkeepStore`."""

    _retired: UUID = FIRST_ID

    async def expire(self, *, limit: int = 1000) -> int:
        return await self._end_waiting("lock_expired", Cause.EXPIRED, "its start deadline passed", limit)

    async def drop_gated(self, *, limit: int = 1000) -> int:
        async def drop(connection: Connection) -> int:
            rows = await connection.fetch(SQL["lock_dropped"], limit)
            reasons = await _reasons(connection) if rows else {}
            endings = [Ending.waiting(row["id"], Cause.DROPPED, reasons[row["lane"]]) for row in rows]
            return await finish(connection, WAITING, endings)

        return await self._after_ending(drop)

    async def take_census(self) -> None:
        async def count(connection: Connection) -> None:
            await _fold_tally(connection)
            for step in ("note_census", "clear_census", "take_census", "note_finish_rates"):
                await connection.execute(SQL[step])

        await self._db.transaction(count)

    async def retire(self, keep: Mapping[State, timedelta], *, logs: timedelta = KEEP_LOGS, limit: int = 10_000) -> int:
        gone = await self._drop_days("log", logs)
        await self._db.transaction(_fold_tally)
        for parent, states in _PARTITIONS.items():
            if all(state in keep for state in states):
                gone += await self._drop_days(parent, max(keep[state] for state in states))
        await self._db.write(partial(_execute, SQL["forget_days"]))
        for state in _OTHERS:
            # The oldest of them go with their days, if none is kept for ever.
            if state in keep and not all(other in keep and keep[other] <= keep[state] for other in _OTHERS):
                await self._retire_state(state, keep[state], limit)
        await self._db.write(lambda connection: connection.execute(SQL["retire_keys"], limit))
        if keep:
            await self._retire_edges(max(keep.values()), limit)
        for query in ("retire_workers", "retire_sweeps"):
            await self._db.write(partial(_execute, SQL[query]))
        while await self._db.write(lambda connection: connection.fetchval(SQL["retire_notes"], limit)) == limit:
            pass
        return gone

    async def prepare_days(self, *, ahead: int = 7) -> int:
        made: int = await self._db.write(lambda connection: connection.fetchval(SQL["prepare_days"], ahead))
        return made

    async def _end_waiting(self, query: str, cause: Cause, reason: str, limit: int) -> int:
        async def end(connection: Connection) -> int:
            rows = await connection.fetch(SQL[query], limit)
            return await finish(connection, WAITING, [Ending.waiting(row["id"], cause, reason) for row in rows])

        return await self._after_ending(end)

    async def _after_ending(self, end: Callable[[Connection], Awaitable[int]]) -> int:
        ended = await self._db.transaction(end)
        if ended:
            self._hints.send()  # they may have made room under limits
        return ended

    async def _retire_state(self, state: State, age: timedelta, limit: int) -> None:
        await self._db.write(lambda connection: connection.execute(SQL["retire_states"], state, age, limit))

    async def _retire_edges(self, age: timedelta, limit: int) -> None:
        """Remove the edges of children whose records are gone, going on where the last call stopped."""
        young = make_id(max(0, int((self._db.time() - age.total_seconds()) * 1000)), 0)
        for _ in range(_PIECES):
            bounds = (self._retired, young, limit)
            rows = await self._db.read(partial(_fetch, SQL["old_edges"], bounds))
            if not rows:
                self._retired = FIRST_ID
                break
            children = list(dict.fromkeys(row["child"] for row in rows))
            await self._db.write(partial(_forget_edges, children))
            self._retired = children[-1]

    async def _drop_days(self, parent: str, age: timedelta) -> int:
        """Take off the days that are too old and drop them; one that is in use is left for the next time."""

        async def drop(connection: Connection) -> int:
            for row in await connection.fetch(SQL["old_days"], parent, age):
                if not await _detach(connection, parent, row["part"], pending=row["pending"]):
                    break  # only one may be pending at a time
            dropped = 0
            for row in await connection.fetch(SQL["loose_days"]):
                dropped += await _try(connection, f'DROP TABLE tidewheel."{row["part"]}"')
            return dropped

        return await self._db.write(drop)


async def _reasons(connection: Connection) -> dict[int, str]:
    """Return for each lane what its jobs say if they are dropped."""
    gates = [gate_of(row) for row in await connection.fetch(SQL["gates"])]
    lanes = await connection.fetch(SQL["all_lanes"])
    return {row["id"]: why_dropped(gates, kind=row["kind"], queue=row["queue"], tenant=row["tenant"]) for row in lanes}


async def _execute(query: LiteralString, connection: Connection) -> None:
    await connection.execute(query)


async def _fetch(query: LiteralString, values: tuple[Any, ...], connection: Connection) -> list[Any]:
    return await connection.fetch(query, *values)


async def _forget_edges(children: list[UUID], connection: Connection) -> None:
    await connection.execute(SQL["retire_edges"], children)


async def _fold_tally(connection: Connection) -> None:
    await connection.execute(SQL["lock_census"])
    await connection.execute(SQL["fold_tally"])


async def _detach(connection: Connection, parent: str, part: str, *, pending: bool) -> bool:
    how = "FINALIZE" if pending else "CONCURRENTLY"
    return await _try(connection, f'ALTER TABLE tidewheel."{parent}" DETACH PARTITION tidewheel."{part}" {how}')


async def _try(connection: Connection, statement: str) -> bool:
    """Run a statement that must wait for nobody: a lock that is held for long would stop everyone behind it."""
    try:
        await connection.execute(statement, timeout=5)
    except (
        asyncpg.QueryCanceledError,
        asyncpg.LockNotAvailableError,
        asyncpg.UndefinedTableError,
        asyncpg.ObjectNotInPrerequisiteStateError,
        TimeoutError,
    ):
        return False
    return True
