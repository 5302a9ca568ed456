"""Artifacts: who has which, and which are used no more."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final, TypeVar
from uuid import UUID

import apsw

from tidewheel.errors import NotFound
from tidewheel.model.artifact import KEEP_UNUSED, Artifact, ArtifactSpec, check_artifact
from tidewheel.store.access import check_keys_page
from tidewheel.store.artifact_rows import artifact_of, being_deleted
from tidewheel.store.sqlite.connection import rows, value
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import DIALECT, id_of, json_text, span

T = TypeVar("T")
_LAST: Final = b"\xff" * 16


class Artifacts:
    """See `store.artifacts.ArtifactStore`."""

    def _write(self, work: Callable[[Session], T]) -> "asyncio.Future[T]":
        raise NotImplementedError

    async def _read(self, look: Callable[[apsw.Connection], T]) -> T:
        raise NotImplementedError

    async def add_artifact(self, spec: ArtifactSpec) -> Artifact:
        check_artifact(spec)
        return await self._write(lambda session: _add(session, spec))

    async def use_artifacts(self, digests: Sequence[str], *, tenant: str) -> set[str]:
        return await self._write(lambda session: _use(session, digests, tenant))

    async def get_artifact(self, digest: str, *, tenant: str) -> Artifact:
        values = {"tenant": tenant, "digest": digest}
        found = await self._read(lambda connection: rows(connection, "get_artifact", values))
        if not found:
            raise NotFound("artifact", digest)
        return artifact_of(found[0], DIALECT)

    async def artifacts(self, *, tenant: str, limit: int = 50, after: UUID | None = None) -> list[Artifact]:
        begin = _LAST if after is None else after.bytes
        values = {"tenant": tenant, "after": begin, "limit": check_keys_page(limit)}
        found = await self._read(lambda connection: rows(connection, "artifacts", values))
        return [artifact_of(row, DIALECT) for row in found]

    async def bury_artifacts(self, *, keep: timedelta = KEEP_UNUSED, limit: int = 100) -> list[str]:
        return await self._write(lambda session: _bury(session, keep, limit))

    async def close_graves(self, digests: Sequence[str]) -> None:
        await self._write(lambda session: session.run("close_graves", digests=json_text(list(digests))))

    async def known_jobs(self, job_ids: Sequence[UUID]) -> set[UUID]:
        named = {"jobs": json_text(list(job_ids))}
        return {id_of(row[0]) for row in await self._read(lambda connection: rows(connection, "find_jobs", named))}

    async def signing_key(self) -> bytes:
        key: bytes = await self._read(lambda connection: value(connection, "signing_key", {}))
        return key


def _add(session: Session, spec: ArtifactSpec) -> Artifact:
    if session.value("has_grave", digest=spec.digest):
        raise being_deleted(spec.digest)
    [row] = session.rows(
        "add_artifact",
        id=session.make_id().bytes,
        tenant=spec.tenant,
        digest=spec.digest,
        size=spec.size,
        name=spec.name,
        by=spec.created_by,
        now=session.now,
    )
    return artifact_of(row, DIALECT)


def _use(session: Session, digests: Sequence[str], tenant: str) -> set[str]:
    found = session.rows("use_artifacts", tenant=tenant, digests=json_text(list(digests)), now=session.now)
    return {digest for (digest,) in found}


def _bury(session: Session, keep: timedelta, limit: int) -> list[str]:
    now = session.now
    for artifact_id, tenant, digest in session.rows("unused_artifacts", until=now - span(keep), limit=limit):
        if session.value("is_artifact_named", tenant=tenant, digest=digest):
            _use(session, [digest], tenant)
        else:
            session.run("bury_artifact", id=artifact_id)
            session.run("dig_grave", digest=digest, now=now)
    return [digest for (digest,) in session.rows("graves", limit=limit)]
