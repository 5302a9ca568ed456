"""What jobs are found by: noted when it is said, and forgotten with the last job of its time."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final
from uuid import UUID

from tidewheel.model.job_phrases import (
    Said,
    bounds_of_moment,
    bounds_of_period,
    moment_of,
    oldest_young_period,
    said_by_one_alone,
)
from tidewheel.store.postgres.connection import SQL, Connection, Database

_PIECES: Final = 20
"""How many pieces of old phrases one call removes."""


def arrays_of(said: Sequence[Said]) -> tuple[list[int], list[str], list[int]]:
    """Return the arrays of `note_phrases`."""
    return [one.tenant for one in said], [one.phrase for one in said], [one.moment for one in said]


async def note_phrases(connection: Connection, said: Sequence[Said]) -> None:
    """Note what jobs are found by, in the transaction in which it is said."""
    if said:
        await connection.execute(SQL["note_phrases"], *arrays_of(said))


async def retire_phrases(database: Database, limit: int) -> None:
    """Forget the phrases of periods of which no job is left, in pieces."""
    young = oldest_young_period(database.time())
    pieces = _PIECES
    for row in await database.read(lambda connection: connection.fetch(SQL["periods_of_phrases"], young)):
        period: int = row["period"]
        while pieces and not await database.read(partial(_any_job_of, period)):
            pieces -= 1
            if await database.write(partial(_forget, period, limit)) < limit:
                break


async def own_phrases(connection: Connection, job_id: UUID) -> list[Said]:
    """Return what a job is found by and no other that was made in the same moment."""
    rows = await connection.fetch(SQL["found_by"], *bounds_of_moment(moment_of(job_id)), job_id)
    return said_by_one_alone(job_id, map(tuple, rows))


async def erase_phrases(connection: Connection, said: Sequence[Said]) -> None:
    """Forget what nobody but an erased job was found by. Kinds stay: processes remember that these are noted."""
    for tenant, phrase, moment in said:
        if await connection.fetchval(SQL["is_kind"], tenant, phrase):
            continue
        for step in ("erase_moment", "erase_phrase"):
            await connection.execute(SQL[step], tenant, phrase, moment)


async def _any_job_of(period: int, connection: Connection) -> Any:
    return await connection.fetchval(SQL["any_job_between"], *bounds_of_period(period))


async def _forget(period: int, limit: int, connection: Connection) -> int:
    gone: int = await connection.fetchval(SQL["forget_phrases"], period, limit)
    return gone
