"""Lines that runs wrote."""

from collections.abc import Sequence
from uuid import UUID

import apsw

from tidewheel.model.log import LogLine
from tidewheel.store.records import line_of
from tidewheel.store.sqlite.connection import rows
from tidewheel.store.sqlite.searching import get
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import DIALECT, json_text, micros


def append_logs(session: Session, lines: Sequence[LogLine]) -> None:
    """See `store.base.LogStore.append_logs`."""
    stored = [
        (line.job_id, line.token, line.number, micros(line.at), line.stream, line.level, line.text) for line in lines
    ]
    session.run("append_logs", lines=json_text(stored), now=session.now)


def logs(
    connection: apsw.Connection, job_id: UUID, tenant: str | None, after: tuple[int, int], limit: int
) -> list[LogLine]:
    """See `store.base.LogStore.logs`."""
    get(connection, job_id, tenant)
    values = {"id": job_id.bytes, "token": after[0], "number": after[1], "limit": limit}
    return [line_of(row, DIALECT) for row in rows(connection, "logs", values)]
