"""What every store promises about stored secrets.

The rules of `store.base` hold here, too. What reaches the database is encrypted before (`store.sealing`); a store gives
a text to nobody but the worker of a run whose job names it. Who changed what is written down in the same transaction.
"""

from collections.abc import Sequence
from typing import Final, Protocol
from uuid import UUID

from tidewheel.model.access import Actor
from tidewheel.model.job import DEFAULT_TENANT
from tidewheel.model.stored_secret import Rotation, StoredSecret

PIECE: Final = 50
"""How many are encrypted anew in one transaction."""


class SecretStore(Protocol):
    """For whoever looks after secrets, and for workers."""

    async def set_secret(self, name: str, text: str, *, tenant: str = DEFAULT_TENANT, by: Actor) -> StoredSecret:
        """Give a secret its text, whether it had one or not. Raises Invalid, Conflict and SecretsLocked.

        A tenant has at most 200.
        """
        ...

    async def stored_secrets(self, *, tenant: str = DEFAULT_TENANT) -> list[StoredSecret]:
        """Return the secrets of a tenant by name, without their texts."""
        ...

    async def remove_secret(self, name: str, *, tenant: str = DEFAULT_TENANT, by: Actor) -> None:
        """Remove a secret. Raises NotFound."""
        ...

    async def rotate_secrets(self, *, tenant: str | None = None, by: Actor) -> Rotation:
        """Encrypt by the first key what is encrypted by another. Raises SecretsLocked if there is none.

        One that is given another text meanwhile keeps that. May be repeated, and goes on where it was interrupted.
        """
        ...

    async def secrets_of_run(self, worker_id: UUID, job_id: UUID, token: int, names: Sequence[str]) -> dict[str, str]:
        """Return the texts of those secrets that are named and stored, for a run that goes on at this worker.

        Only what the job itself names in its arguments, of its own tenant, is there for it. Raises NotFound if there is
        no such run any more, and SecretsLocked if one of them is stored and no key opens it.
        """
        ...
