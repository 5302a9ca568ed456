"""Upkeep: expiry, dropping, the census, retention, and the day partitions of history."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, time, timedelta
from functools import cached_property, partial
from typing import Any, Final, LiteralString
from uuid import UUID

import asyncpg

from tidewheel.model.gate import why_dropped
from tidewheel.model.ids import make_id
from tidewheel.model.log import KEEP_LOGS
from tidewheel.model.retention import (
    NO_KINDS,
    Keep,
    KindKeep,
    Rule,
    check_age,
    log_ages,
    longest,
    rules_of,
    why_too_old,
)
from tidewheel.model.states import FINAL, WAITING, Cause, State
from tidewheel.model.submission import MAX_ID_SKEW
from tidewheel.store.postgres.connection import SQL, Connection, one
from tidewheel.store.postgres.ending import Ending, finish
from tidewheel.store.postgres.log_retention import LogRetention, own_ages
from tidewheel.store.postgres.parts import Part, gate_of
from tidewheel.store.postgres.phrases import retire_phrases
from tidewheel.store.postgres.searching import FIRST_ID

_OTHERS: Final = tuple(state for state in FINAL if state is not State.SUCCEEDED)
_PARTITIONS: Final = {"job_history_succeeded": (State.SUCCEEDED,), "job_history_other": _OTHERS, "attempt": FINAL}
"""Which states the day partitions of each table hold."""
_PIECES: Final = 20
"""How many pieces of old edges one call looks at."""


class Keeping(Part):
    """See `store.keeping.UpkeepStore`."""

    _retired: UUID = FIRST_ID
    _aged: UUID = FIRST_ID

    @cached_property
    def _log_retention(self) -> LogRetention:
        return LogRetention()

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
        await self._db.write(partial(_execute, SQL["take_census"]))

    async def expire_old(self, max_age: timedelta, *, limit: int = 1000) -> int:
        check_age("max_age", max_age)
        self._db.learn_time((await self._db.read(lambda connection: one(connection, SQL["meta"])))["now"])
        young = self._made_before(max_age - MAX_ID_SKEW)
        ended = 0
        for _ in range(_PIECES):
            rows = await self._db.read(partial(_fetch, SQL["next_by_id"], (self._aged, young, max_age, limit)))
            old = sorted(row["id"] for row in rows if row["old"])
            if old:
                ended += await self._end_waiting("lock_old", Cause.EXPIRED, why_too_old(max_age), old, max_age)
            self._aged = rows[-1]["id"] if len(rows) == limit else FIRST_ID
            if len(rows) < limit:
                break
        return ended

    async def retire(
        self, keep: Keep, *, kinds: KindKeep = NO_KINDS, logs: timedelta = KEEP_LOGS, limit: int = 10_000
    ) -> int:
        rules = rules_of(keep, kinds)
        ages = log_ages(logs, await self._db.read(own_ages))
        gone = await self._drop_days("log", ages.longest)
        gone += await self._drop_days("log_segment", ages.longest)
        await self._log_retention.retire(self._db, ages.shorter, limit)
        await self._db.write(partial(_execute, SQL["fold_tally"]))
        for parent, states in _PARTITIONS.items():
            age = longest(rules, states)
            if age is not None:
                gone += await self._drop_days(parent, age)
        await self._db.write(partial(_execute, SQL["forget_days"]))
        for rule in rules:
            # The oldest go with their days, unless something in these is kept for longer.
            together = longest(rules, (State.SUCCEEDED,) if rule.state is State.SUCCEEDED else _OTHERS)
            if together is None or rule.age < together:
                await self._retire_by(rule, limit)
        await self._db.write(lambda connection: connection.execute(SQL["retire_keys"], limit))
        if rules:
            await self._retire_edges(max(rule.age for rule in rules), limit)
        await retire_phrases(self._db, limit)
        for query in ("retire_workers", "retire_keepers", "retire_sweeps"):
            await self._db.write(partial(_execute, SQL[query]))
        while await self._db.write(lambda connection: connection.fetchval(SQL["retire_notes"], limit)) == limit:
            pass
        return gone

    async def begin_epoch(self) -> int:
        epoch: int = await self._db.write(lambda connection: connection.fetchval(SQL["begin_epoch"]))
        return epoch

    async def prepare_days(self, *, ahead: int = 7) -> int:
        made: int = await self._db.write(lambda connection: connection.fetchval(SQL["prepare_days"], ahead))
        return made

    async def _end_waiting(self, query: str, cause: Cause, reason: str, *values: Any) -> int:
        async def end(connection: Connection) -> int:
            rows = await connection.fetch(SQL[query], *values)
            return await finish(connection, WAITING, [Ending.waiting(row["id"], cause, reason) for row in rows])

        return await self._after_ending(end)

    async def _after_ending(self, end: Callable[[Connection], Awaitable[int]]) -> int:
        ended = await self._db.transaction(end)
        if ended:
            self._hints.send()  # they may have made room under limits
        return ended

    async def _retire_by(self, rule: Rule, limit: int) -> None:
        """Remove a bounded number of the jobs that a rule lets go, the oldest days first."""
        values = (rule.state, rule.age, rule.kind, list(rule.but))
        for row in await self._db.read(partial(_fetch, SQL["days_to_retire"], values)):
            day = datetime.combine(row["day"], time(), UTC)
            gone = await self._db.write(partial(_fetchval, SQL["retire_jobs"], (rule.state, day, row["lanes"], limit)))
            limit -= gone
            if limit < 1:
                break

    def _made_before(self, age: timedelta) -> UUID:
        return make_id(max(0, int((self._db.time() - age.total_seconds()) * 1000)), 0)

    async def _retire_edges(self, age: timedelta, limit: int) -> None:
        """Remove the edges of children whose records are gone, going on where the last call stopped."""
        young = self._made_before(age)
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


async def _fetchval(query: LiteralString, values: tuple[Any, ...], connection: Connection) -> Any:
    return await connection.fetchval(query, *values)


async def _forget_edges(children: list[UUID], connection: Connection) -> None:
    await connection.execute(SQL["retire_edges"], children)


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
