"""The calls of the client that are about stored secrets."""

from urllib.parse import quote

from tidewheel.model.stored_secret import SecretList, StoredSecret, check_secret_text
from tidewheel.store.remote.transport import Transport, read


class SecretCalls:
    """A part of `AsyncClient`."""

    _transport: Transport

    async def set_secret(self, name: str, text: str) -> StoredSecret:
        """Give a secret of the tenant one works in its text. Raises Invalid, Conflict and SecretsLocked."""
        check_secret_text(text)  # bytes would arrive in base64
        return read(await self._transport.write("PUT", _path(name), {"value": text}, safe=True), StoredSecret)

    async def secrets(self) -> list[StoredSecret]:
        """Return the secrets that are stored, by name, without their texts."""
        return (await self._transport.get("/v1/secrets", SecretList)).secrets

    async def remove_secret(self, name: str) -> None:
        """Remove a secret. Raises NotFound."""
        await self._transport.write("DELETE", _path(name), safe=False)


def _path(name: str) -> str:
    return f"/v1/secrets/{quote(name, safe='')}"
