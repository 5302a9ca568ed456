"""Retention of lines of tenants with an age of their own; the days of all go as a whole."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from tidewheel.store.postgres.connection import SQL, Connection, Database


class LogRetention:
    """Remembers which days were looked through for whom, so that each is looked through once."""

    def __init__(self) -> None:
        self._ages: Mapping[int | None, timedelta] = {}
        self._done: set[tuple[int | None, str]] = set()

    async def retire(self, database: Database, ages: Mapping[int | None, timedelta], limit: int) -> None:
        """Remove the lines of tenants that are older than these ages, in pieces of so many jobs."""
        if ages != self._ages:
            self._ages, self._done = ages, set()
        left: set[tuple[int | None, str]] = set()
        for tenant, age in ages.items():
            for part in await _days(database, age):
                if (tenant, part) not in self._done:
                    await _clear(database, tenant, part, limit)
                left.add((tenant, part))
        self._done = left


async def own_ages(connection: Connection) -> dict[int, timedelta]:
    """Return the ages that tenants have."""
    return {row["id"]: row["keep_logs"] for row in await connection.fetch(SQL["log_ages"])}


async def _days(database: Database, age: timedelta) -> list[str]:
    rows = await database.read(lambda connection: connection.fetch(SQL["old_days"], "log", age))
    return [row["part"] for row in rows]


async def _clear(database: Database, tenant: int | None, part: str, limit: int) -> None:
    day = datetime.strptime(part[-8:], "%Y%m%d").replace(tzinfo=UTC)
    values = (day, tenant, limit)
    while await database.write(lambda connection: connection.fetchval(SQL["retire_lines"], *values)):
        pass
