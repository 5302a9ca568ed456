"""Stored secrets over HTTP. They are encrypted at the server, and who changes them is whoever has the key."""

from collections.abc import Sequence
from urllib.parse import quote
from uuid import UUID

from tidewheel.model.access import Actor
from tidewheel.model.job import DEFAULT_TENANT
from tidewheel.model.stored_secret import Rotation, SecretList, StoredSecret, check_secret
from tidewheel.model.worker_protocol import RunSecrets
from tidewheel.store.remote.transport import Transport, read, tenant_header


class Secrets:
    """See `store.secrets.SecretStore`."""

    _transport: Transport

    async def set_secret(self, name: str, text: str, *, tenant: str = DEFAULT_TENANT, by: Actor) -> StoredSecret:
        del by
        check_secret(tenant, name, text)
        path, headers = f"/v1/secrets/{name}", tenant_header(tenant)
        return read(await self._transport.write("PUT", path, {"value": text}, safe=True, headers=headers), StoredSecret)

    async def stored_secrets(self, *, tenant: str = DEFAULT_TENANT) -> list[StoredSecret]:
        return (await self._transport.get("/v1/secrets", SecretList, headers=tenant_header(tenant))).secrets

    async def remove_secret(self, name: str, *, tenant: str = DEFAULT_TENANT, by: Actor) -> None:
        del by
        path = f"/v1/secrets/{quote(name, safe='')}"
        await self._transport.write("DELETE", path, safe=False, headers=tenant_header(tenant))

    async def rotate_secrets(self, *, tenant: str | None = None, by: Actor) -> Rotation:
        del by
        headers = tenant_header(tenant)
        return await self._transport.post("/v1/secret-rotations", None, Rotation, safe=True, headers=headers)

    async def secrets_of_run(self, worker_id: UUID, job_id: UUID, token: int, names: Sequence[str]) -> dict[str, str]:
        path, body = f"/v1/workers/{worker_id}/secrets", {"job_id": job_id, "token": token, "names": names}
        return (await self._transport.post(path, body, RunSecrets, safe=True)).secrets
