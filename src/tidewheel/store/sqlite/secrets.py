"""Stored secrets."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar
from uuid import UUID

import apsw

from tidewheel.errors import NotFound
from tidewheel.model.access import Actor
from tidewheel.model.job import DEFAULT_TENANT
from tidewheel.model.stored_secret import Rotation, StoredSecret, check_secret
from tidewheel.store.sealing import Keyring, Sealed
from tidewheel.store.secret_rows import (
    Resealed,
    Stale,
    check_room,
    named_in,
    rotate,
    secret_removed,
    secret_set,
    secrets_rotated,
    stale_of,
    stored_secret_of,
    unsealed,
)
from tidewheel.store.secrets import PIECE
from tidewheel.store.sqlite.auditing import audit
from tidewheel.store.sqlite.connection import rows
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import DIALECT, json_text

T = TypeVar("T")


class Secrets:
    """See `store.secrets.SecretStore`."""

    keyring: Keyring

    def _write(self, work: Callable[[Session], T]) -> "asyncio.Future[T]":
        raise NotImplementedError

    async def _read(self, look: Callable[[apsw.Connection], T]) -> T:
        raise NotImplementedError

    async def set_secret(self, name: str, text: str, *, tenant: str = DEFAULT_TENANT, by: Actor) -> StoredSecret:
        check_secret(tenant, name, text)
        sealed = self.keyring.seal(tenant, name, text)
        return await self._write(lambda session: _set(session, (tenant, name), sealed, by))

    async def stored_secrets(self, *, tenant: str = DEFAULT_TENANT) -> list[StoredSecret]:
        found = await self._read(lambda connection: rows(connection, "stored_secrets", {"tenant": tenant}))
        return [stored_secret_of(row, DIALECT) for row in found]

    async def remove_secret(self, name: str, *, tenant: str = DEFAULT_TENANT, by: Actor) -> None:
        await self._write(lambda session: _remove(session, name, tenant, by))

    async def rotate_secrets(self, *, tenant: str | None = None, by: Actor) -> Rotation:
        rotation = await rotate(self, self.keyring, tenant)
        await self._write(lambda session: audit(session, [secrets_rotated(by, tenant, rotation)]))
        return rotation

    async def stale_secrets(self, key_id: str, tenant: str | None, after: tuple[str, str]) -> list[Stale]:
        """See `store.secret_rows.Shelf`."""
        values = {"key_id": key_id, "tenant": tenant, "after_tenant": after[0], "after_name": after[1], "limit": PIECE}
        found = await self._read(lambda connection: rows(connection, "secrets_of_other_keys", values))
        return [stale_of(row) for row in found]

    async def reseal(self, secrets: Sequence[Resealed]) -> int:
        """See `store.secret_rows.Shelf`."""
        return await self._write(lambda session: sum(_reseal(session, one) for one in secrets))

    async def secrets_of_run(self, worker_id: UUID, job_id: UUID, token: int, names: Sequence[str]) -> dict[str, str]:
        run = {"id": job_id.bytes, "token": token, "worker": worker_id.bytes}
        tenant, found = await self._read(lambda connection: _of_run(connection, run, job_id, names))
        return unsealed(self.keyring, tenant, found)


def _set(session: Session, whose: tuple[str, str], sealed: Sealed, by: Actor) -> StoredSecret:
    tenant, name = whose
    check_room(session.value("count_other_secrets", tenant=tenant, name=name))
    values = {"key_id": sealed.key_id, "sealed": sealed.data, "by": by.name, "now": session.now}
    [row] = session.rows("set_secret", tenant=tenant, name=name, **values)
    secret = stored_secret_of(row, DIALECT)
    audit(session, [secret_set(by, secret)])
    return secret


def _remove(session: Session, name: str, tenant: str, by: Actor) -> None:
    if not session.rows("remove_secret", tenant=tenant, name=name):
        raise NotFound("secret", name)
    audit(session, [secret_removed(by, name, tenant)])


def _reseal(session: Session, secret: Resealed) -> bool:
    was, sealed = secret
    guard = {"tenant": was.tenant, "name": was.name, "was_sealed": was.sealed.data}
    return bool(session.rows("reseal_secret", key_id=sealed.key_id, sealed=sealed.data, **guard))


def _of_run(
    connection: apsw.Connection, run: dict[str, object], job_id: UUID, names: Sequence[str]
) -> tuple[str, list[tuple[str, str, bytes]]]:
    for tenant, args in rows(connection, "args_of_run", run):
        values = {"tenant": tenant, "names": json_text(named_in(args, names))}
        return tenant, rows(connection, "sealed_secrets", values)
    raise NotFound("run of job", job_id)
