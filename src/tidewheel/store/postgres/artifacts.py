"""Artifacts: who has which, and which are used no more."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Final
from uuid import UUID

from tidewheel.errors import NotFound
from tidewheel.model.artifact import KEEP_UNUSED, Artifact, ArtifactSpec, check_artifact
from tidewheel.model.ids import time_of
from tidewheel.store.access import check_keys_page
from tidewheel.store.artifact_rows import artifact_of, being_deleted
from tidewheel.store.postgres.connection import SQL, Connection, one
from tidewheel.store.postgres.parts import DIALECT, Part

_LAST: Final = UUID(int=2**128 - 1)


class Artifacts(Part):
    """See `store.artifacts.ArtifactStore`."""

    async def add_artifact(self, spec: ArtifactSpec) -> Artifact:
        check_artifact(spec)
        values = (spec.tenant, spec.digest, spec.size, spec.name, spec.created_by)

        async def add(connection: Connection) -> Artifact:
            await connection.execute(SQL["lock_artifact"], spec.digest)
            if await connection.fetchval(SQL["has_grave"], spec.digest):
                raise being_deleted(spec.digest)
            return artifact_of(await one(connection, SQL["add_artifact"], self._make_id(), *values), DIALECT)

        return await self._db.transaction(add)

    async def use_artifacts(self, digests: Sequence[str], *, tenant: str) -> set[str]:
        values = (tenant, list(digests))
        rows = await self._db.write(lambda connection: connection.fetch(SQL["use_artifacts"], *values))
        return {row["digest"] for row in rows}

    async def get_artifact(self, digest: str, *, tenant: str) -> Artifact:
        row = await self._db.read(lambda connection: connection.fetchrow(SQL["get_artifact"], tenant, digest))
        if row is None:
            raise NotFound("artifact", digest)
        return artifact_of(row, DIALECT)

    async def artifacts(self, *, tenant: str, limit: int = 50, after: UUID | None = None) -> list[Artifact]:
        values = (tenant, after or _LAST, check_keys_page(limit))
        rows = await self._db.read(lambda connection: connection.fetch(SQL["artifacts"], *values))
        return [artifact_of(row, DIALECT) for row in rows]

    async def bury_artifacts(self, *, keep: timedelta = KEEP_UNUSED, limit: int = 100) -> list[str]:
        unused = await self._db.read(lambda connection: connection.fetch(SQL["unused_artifacts"], keep, limit))
        if unused:
            await self._spare_named([row["tenant"] for row in unused], [row["digest"] for row in unused])
        for row in unused:
            await self._db.transaction(partial(_bury, row["id"], row["digest"], keep))
        graves = await self._db.read(lambda connection: connection.fetch(SQL["graves"], limit))
        return [row["digest"] for row in graves]

    async def _spare_named(self, tenants: list[str], digests: list[str]) -> None:
        found = await self._db.read(lambda connection: connection.fetch(SQL["named_artifacts"], tenants, digests))
        for tenant in {row["tenant"] for row in found}:
            await self.use_artifacts([row["digest"] for row in found if row["tenant"] == tenant], tenant=tenant)

    async def close_graves(self, digests: Sequence[str]) -> None:
        await self._db.write(lambda connection: connection.execute(SQL["close_graves"], list(digests)))

    async def known_jobs(self, job_ids: Sequence[UUID]) -> set[UUID]:
        values = (list(job_ids), [time_of(job_id) for job_id in job_ids])
        found = await self._db.read(lambda connection: connection.fetch(SQL["relatives"], *values))
        return {row["id"] for row in found if row["state"] is not None}

    async def signing_key(self) -> bytes:
        key: bytes = await self._db.read(lambda connection: connection.fetchval(SQL["signing_key"]))
        return key


async def _bury(artifact_id: UUID, digest: str, keep: timedelta, connection: Connection) -> None:
    await connection.execute(SQL["lock_artifact"], digest)
    if await connection.fetchval(SQL["bury_artifact"], artifact_id, keep) is not None:
        await connection.execute(SQL["dig_grave"], digest)
