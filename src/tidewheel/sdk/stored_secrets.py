"""The secrets that are stored for an app's jobs. Each call has an async form and a synchronous twin."""

from typing import Final

from tidewheel.model.access import Actor, Role
from tidewheel.model.stored_secret import StoredSecret
from tidewheel.sdk.desk import Desk

_BY: Final = Actor(role=Role.ADMIN, name="sdk")
"""Who whoever reaches the database is; at a server it is whoever has the key."""


class StoredSecrets:
    """Texts that jobs may name by `secret(…)`, of the tenant of the app. What is stored here is read back by nobody."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def aset(self, name: str, text: str) -> StoredSecret:
        """Give a secret its text. Raises Invalid, and SecretsLocked if there is no key to encrypt it by."""
        tenant = self._desk.tenant
        return await self._desk.use(lambda store: store.set_secret(name, text, tenant=tenant, by=_BY))

    async def alist(self) -> list[StoredSecret]:
        """Return the secrets by name, without their texts."""
        return await self._desk.use(lambda store: store.stored_secrets(tenant=self._desk.tenant))

    async def aremove(self, name: str) -> None:
        """Remove a secret. Raises NotFound."""
        await self._desk.use(lambda store: store.remove_secret(name, tenant=self._desk.tenant, by=_BY))

    # The synchronous twins

    def set(self, name: str, text: str) -> StoredSecret:
        """Give a secret its text. Raises Invalid, and SecretsLocked if there is no key to encrypt it by."""
        return self._desk.run(self.aset(name, text))

    def remove(self, name: str) -> None:
        """Remove a secret. Raises NotFound."""
        self._desk.run(self.aremove(name))

    def list(self) -> list[StoredSecret]:
        """Return the secrets by name, without their texts."""
        return self._desk.run(self.alist())
