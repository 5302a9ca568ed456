"""The audit log, and erasure, which leaves nothing else behind."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from tidewheel.errors import NotFinished, NotFound
from tidewheel.model.access import Actor
from tidewheel.model.audit import KEEP_AUDIT, AuditFilter, AuditPage, Change, prepare_changes
from tidewheel.model.ids import time_of
from tidewheel.model.job import Job
from tidewheel.store.access import check_keys_page
from tidewheel.store.access_rows import SCAN, entry_of, job_erased
from tidewheel.store.postgres.connection import SQL, Connection
from tidewheel.store.postgres.parts import DIALECT, Part
from tidewheel.store.postgres.phrases import erase_phrases, own_phrases
from tidewheel.store.postgres.searching import find_job

_OF_JOB: Final = ("erase_attempts", "erase_notes", "erase_logs", "erase_happenings", "erase_deliveries")
_LAST: Final = UUID(int=2**128 - 1)


class Auditing(Part):
    """See `store.access.AuditStore` and `ErasureStore`."""

    async def audit(self, changes: Sequence[Change]) -> None:
        prepare_changes(changes)
        if changes:
            await self._db.write(lambda connection: self._audit(connection, changes))

    async def audited(self, where: AuditFilter, *, limit: int = 100, after: UUID | None = None) -> AuditPage:
        check_keys_page(limit)
        scope, own = ("all", []) if where.tenant is None else ("tenant", [where.tenant])
        begin = after or _LAST
        filters = (where.action, where.subject, where.key_id, where.since, where.before)

        async def look(connection: Connection) -> AuditPage:
            rows = await connection.fetch(SQL[f"audited_{scope}"], begin, *filters, SCAN, limit, *own)
            entries = [entry_of(row, DIALECT) for row in rows]
            if len(entries) == limit:
                return AuditPage(entries, entries[-1].id)
            return AuditPage(entries, await connection.fetchval(SQL[f"audit_edge_{scope}"], begin, SCAN, *own))

        return await self._db.read(look)

    async def retire_audit(self, *, keep: timedelta = KEEP_AUDIT, limit: int = 10_000) -> int:
        gone: int = await self._db.write(lambda connection: connection.fetchval(SQL["retire_audit"], keep, limit))
        return gone

    async def erase(self, job_id: UUID, *, by: Actor) -> Job:
        async def erase(connection: Connection) -> Job:
            said = await own_phrases(connection, job_id)
            tenant = await connection.fetchval(SQL["erase_job"], job_id, time_of(job_id), by.tenant)
            if tenant is not None:
                await erase_phrases(connection, said)
                for step in _OF_JOB:
                    await connection.execute(SQL[step], job_id)
                await connection.execute(SQL["lock_segments"])
                await connection.execute(SQL["unindex_logs"], job_id)
                await self._audit(connection, [job_erased(by, job_id, tenant)])
            job = await find_job(connection, job_id, by.tenant)
            if job is None:
                raise NotFound("job", job_id)
            if tenant is None:
                raise NotFinished(job_id, job.state)
            return job

        return await self._db.transaction(erase)

    async def _audit(self, connection: Connection, changes: Sequence[Change]) -> None:
        rows = prepare_changes(changes)
        columns = [
            [self._make_id() for _ in rows],
            [row.actor for row in rows],
            [row.role for row in rows],
            [row.key_id for row in rows],
            [row.tenant for row in rows],
            [row.action for row in rows],
            [row.subject for row in rows],
            [row.detail for row in rows],
        ]
        await connection.execute(SQL["add_audit"], *columns)
