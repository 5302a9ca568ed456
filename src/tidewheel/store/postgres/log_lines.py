"""Lines that runs wrote."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from tidewheel.errors import NotFound
from tidewheel.model.ids import time_of
from tidewheel.model.log import LogLine, prepare_lines
from tidewheel.store.postgres.connection import SQL, Connection
from tidewheel.store.postgres.parts import DIALECT, Part
from tidewheel.store.postgres.searching import find_job
from tidewheel.store.records import check_page, line_of


class LogLines(Part):
    """See `store.base.LogStore`."""

    async def append_logs(self, lines: Sequence[LogLine]) -> None:
        clean = prepare_lines(lines)
        if clean:
            columns = [
                [line.job_id for line in clean],
                [line.token for line in clean],
                [line.number for line in clean],
                [line.at for line in clean],
                [line.stream for line in clean],
                [line.level for line in clean],
                [line.text for line in clean],
            ]
            await self._db.write(lambda connection: connection.execute(SQL["append_logs"], *columns))

    async def logs(
        self, job_id: UUID, *, tenant: str | None = None, after: tuple[int, int] | None = None, limit: int = 1000
    ) -> list[LogLine]:
        token, number = check_page(after, limit)

        async def look(connection: Connection) -> list[Any] | None:
            if await find_job(connection, job_id, tenant) is None:
                return None
            rows: list[Any] = await connection.fetch(SQL["logs"], job_id, time_of(job_id), token, number, limit)
            return rows

        rows = await self._db.read(look)
        if rows is None:
            raise NotFound("job", job_id)
        return [line_of(row, DIALECT) for row in rows]
