"""Numbers over time."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from tidewheel.model.histogram import count, from_text, to_text
from tidewheel.model.states import State
from tidewheel.model.statistics import (
    DROP_MINUTES,
    HOUR,
    KEEP_STATISTICS,
    MINUTE,
    StatFilter,
    StatPoint,
    StatRow,
    Sums,
    begin_of,
    check_stat_filter,
    spans_of,
)
from tidewheel.store.counting import Numbers, StatKey, added_up
from tidewheel.store.postgres.connection import SQL, Connection
from tidewheel.store.postgres.parts import Part, store_now

_COUNTED: Final = ("lane", "state", "jobs")
_AT_ONCE: Final = 5000


class Statistics(Part):
    """See `store.counting.StatStore`."""

    async def statistics(self, where: StatFilter) -> list[StatPoint]:
        checked = check_stat_filter(where)

        async def look(connection: Connection) -> list[StatPoint]:
            # One moment for all: a note is folded in between otherwise.
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                return await _added_up(connection, checked)

        return await self._db.read(look)

    async def finished(self) -> dict[tuple[str, State], int]:
        found = await self._db.read(lambda connection: connection.fetch(SQL["finished"]))
        return {(row["queue"], State(row["state"])): row["jobs"] for row in found}

    async def missed(self) -> int:
        return await self._db.read(lambda connection: connection.fetchval(SQL["missed"])) or 0

    async def fold_statistics(self, *, limit: int = 1000) -> int:
        async def fold(connection: Connection) -> int:
            await connection.execute(SQL["lock_statistics"])
            ended = await connection.fetch(SQL["take_ended"], limit)
            await connection.execute(SQL["add_finished"], *([row[name] for row in ended] for name in _COUNTED))
            for hour, step in ((False, MINUTE), (True, HOUR)):
                await _add(connection, ((_key(row, step), _counted(row)) for row in ended), hour=hour)
            forgotten: int = await connection.fetchval(SQL["forget_minutes"], DROP_MINUTES, limit)
            await connection.execute(SQL["retire_statistics"], KEEP_STATISTICS)
            return len(ended) + forgotten

        return await self._db.transaction(fold)


async def _added_up(connection: Connection, where: StatFilter) -> list[StatPoint]:
    """Read some rows after the other: what would be too much is refused before all of it is here."""
    sums, scope = Sums(where.step), (where.tenant, where.kind, where.queue)
    spans = spans_of(where, await store_now(connection))
    fresh = await connection.cursor(SQL["unfolded"], spans.hours_since, where.before, *scope)
    while rows := await fresh.fetch(_AT_ONCE):
        sums.add(StatRow._make((*row[:5], count(row["delays"] or ()), count(row["runs"] or ()))) for row in rows)
    for hour, since, before in ((True, *spans[:2]), (False, *spans[2:])):
        if since < before:
            folded = await connection.cursor(SQL["statistics"], hour, since, before, *scope)
            while rows := await folded.fetch(_AT_ONCE):
                sums.add(StatRow._make((*row[:5], from_text(row["delays"]), from_text(row["runs"]))) for row in rows)
    return sums.points()


async def _add(connection: Connection, rows: Iterable[tuple[StatKey, Numbers]], *, hour: bool) -> None:
    new = added_up(rows)
    if not new:
        return
    found = await connection.fetch(SQL["folded"], hour, *_columns(new))
    before = ((_key(row, HOUR if hour else MINUTE), _stored(row)) for row in found)
    sums = added_up([*new.items(), *before])
    numbers = list(sums.values())
    values = (
        [one.jobs for one in numbers],
        [to_text(one.delays) for one in numbers],
        [to_text(one.runs) for one in numbers],
    )
    await connection.execute(SQL["keep_statistics"], hour, *_columns(sums), *values)


def _columns(sums: Mapping[StatKey, Numbers]) -> list[list[Any]]:
    return [[key[part] for key in sums] for part in range(3)]


def _key(row: Any, step: timedelta) -> StatKey:
    at: datetime = row["at"]
    return begin_of(at, step), row["lane"], row["state"]


def _counted(row: Any) -> Numbers:
    return Numbers(row["jobs"], count(row["delays"] or ()), count(row["runs"] or ()))


def _stored(row: Any) -> Numbers:
    return Numbers(row["jobs"], from_text(row["delays"]), from_text(row["runs"]))
