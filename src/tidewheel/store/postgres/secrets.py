"""Stored secrets."""

from collections.abc import Sequence
from uuid import UUID

from tidewheel.errors import NotFound
from tidewheel.model.access import Actor
from tidewheel.model.job import DEFAULT_TENANT
from tidewheel.model.stored_secret import Rotation, StoredSecret, check_secret
from tidewheel.store.postgres.auditing import Auditing
from tidewheel.store.postgres.connection import SQL, Connection, one
from tidewheel.store.postgres.parts import DIALECT
from tidewheel.store.sealing import Keyring
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


class Secrets(Auditing):
    """See `store.secrets.SecretStore`."""

    keyring: Keyring

    async def set_secret(self, name: str, text: str, *, tenant: str = DEFAULT_TENANT, by: Actor) -> StoredSecret:
        check_secret(tenant, name, text)
        sealed = self.keyring.seal(tenant, name, text)

        async def put(connection: Connection) -> StoredSecret:
            await connection.execute(SQL["lock_secrets"], tenant)
            check_room(await connection.fetchval(SQL["count_other_secrets"], tenant, name))
            row = await one(connection, SQL["set_secret"], tenant, name, by.name, sealed.key_id, sealed.data)
            secret = stored_secret_of(row, DIALECT)
            await self._audit(connection, [secret_set(by, secret)])
            return secret

        return await self._db.transaction(put)

    async def stored_secrets(self, *, tenant: str = DEFAULT_TENANT) -> list[StoredSecret]:
        rows = await self._db.read(lambda connection: connection.fetch(SQL["stored_secrets"], tenant))
        return [stored_secret_of(row, DIALECT) for row in rows]

    async def remove_secret(self, name: str, *, tenant: str = DEFAULT_TENANT, by: Actor) -> None:
        async def remove(connection: Connection) -> None:
            if await connection.fetchval(SQL["remove_secret"], tenant, name) is None:
                raise NotFound("secret", name)
            await self._audit(connection, [secret_removed(by, name, tenant)])

        await self._db.transaction(remove)

    async def rotate_secrets(self, *, tenant: str | None = None, by: Actor) -> Rotation:
        rotation = await rotate(self, self.keyring, tenant)
        await self.audit([secrets_rotated(by, tenant, rotation)])
        return rotation

    async def stale_secrets(self, key_id: str, tenant: str | None, after: tuple[str, str]) -> list[Stale]:
        """See `store.secret_rows.Shelf`."""
        values = (key_id, tenant, *after, PIECE)
        rows = await self._db.read(lambda connection: connection.fetch(SQL["secrets_of_other_keys"], *values))
        return [stale_of(row) for row in rows]

    async def reseal(self, secrets: Sequence[Resealed]) -> int:
        """See `store.secret_rows.Shelf`."""

        async def put(connection: Connection) -> int:
            return sum([await _reseal(connection, secret) for secret in secrets])

        return await self._db.transaction(put)

    async def secrets_of_run(self, worker_id: UUID, job_id: UUID, token: int, names: Sequence[str]) -> dict[str, str]:
        async def look(connection: Connection) -> dict[str, str]:
            run = await connection.fetchrow(SQL["args_of_run"], job_id, token, worker_id)
            if run is None:
                raise NotFound("run of job", job_id)
            wanted = named_in(run["args"], names)
            rows = await connection.fetch(SQL["sealed_secrets"], run["name"], wanted)
            return unsealed(self.keyring, run["name"], rows)

        return await self._db.read(look)


async def _reseal(connection: Connection, secret: Resealed) -> bool:
    was, sealed = secret
    guard = (was.tenant, was.name, was.sealed.data)
    return await connection.fetchval(SQL["reseal_secret"], *guard, *sealed) is not None
