"""What both stores do alike with stored secrets: build them from rows, open them, and encrypt them anew."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from tidewheel.errors import Conflict, Invalid, SecretsLocked
from tidewheel.model.access import Action, Actor
from tidewheel.model.audit import Change, change_by
from tidewheel.model.secret import find_secrets
from tidewheel.model.stored_secret import MOST_SECRETS, Rotation, StoredSecret
from tidewheel.store.records import Dialect
from tidewheel.store.sealing import Keyring, Sealed
from tidewheel.store.secrets import PIECE


class Stale(NamedTuple):
    """A secret that is encrypted by another key than the first."""

    tenant: str
    name: str
    sealed: Sealed


class Resealed(NamedTuple):
    """The same, encrypted anew."""

    was: Stale
    sealed: Sealed


class Shelf(Protocol):
    """What of a store is asked to encrypt its secrets anew."""

    async def stale_secrets(self, key_id: str, tenant: str | None, after: tuple[str, str]) -> list[Stale]:
        """Return some that are encrypted by another key, by tenant and name, beginning after one of them."""
        ...

    async def reseal(self, secrets: Sequence[Resealed]) -> int:
        """Store them, but for those that were changed meanwhile; return how many."""
        ...


def stored_secret_of(row: Any, dialect: Dialect) -> StoredSecret:
    """Build a secret from its columns, among which its text is not."""
    name, tenant, version, changed_at, changed_by, key_id = row
    at = dialect.instant(changed_at)
    return StoredSecret(
        name=name, tenant=tenant, version=version, changed_at=at, changed_by=changed_by, sealed_by=key_id
    )


def stale_of(row: Any) -> Stale:
    """Build one from its columns."""
    tenant, name, key_id, sealed = row
    return Stale(tenant, name, Sealed(key_id, bytes(sealed)))


def check_room(others: int) -> None:
    """Refuse one more of what a tenant has enough of."""
    if others >= MOST_SECRETS:
        raise Conflict(f"there are {others} secrets already, the most that a tenant may have")


def named_in(args: str, names: Sequence[str]) -> list[str]:
    """Return those names that the arguments of a job have as secrets."""
    try:
        found = find_secrets(msgspec.json.decode(args))
    except Invalid:
        return []
    return [name for name in found if name in names]


def unsealed(keyring: Keyring, tenant: str, rows: Iterable[Any]) -> dict[str, str]:
    """Return the texts of secrets. Raises SecretsLocked for the first that no key opens."""
    return {name: keyring.unseal(tenant, name, Sealed(key_id, bytes(data))) for name, key_id, data in rows}


async def rotate(shelf: Shelf, keyring: Keyring, tenant: str | None) -> Rotation:
    """Encrypt by the first key what is encrypted by another, piece by piece."""
    rotated, locked, after = 0, 0, ("", "")
    while stale := await shelf.stale_secrets(keyring.first, tenant, after):
        opened = [Resealed(one, sealed) for one in stale if (sealed := _resealed(keyring, one)) is not None]
        rotated += await shelf.reseal(opened)
        locked += len(stale) - len(opened)
        after = (stale[-1].tenant, stale[-1].name)
        if len(stale) < PIECE:
            break
    return Rotation(rotated=rotated, locked=locked)


def _resealed(keyring: Keyring, stale: Stale) -> Sealed | None:
    try:
        text = keyring.unseal(stale.tenant, stale.name, stale.sealed)
    except SecretsLocked:
        return None
    return keyring.seal(stale.tenant, stale.name, text)


# What is written down


def secret_set(by: Actor, secret: StoredSecret) -> Change:
    """Tell that a secret was given a text, and nothing of it."""
    told = {"did": "set", "version": secret.version}
    return change_by(by, Action.SECRETS_WRITE, secret.name, tenant=secret.tenant, **told)


def secret_removed(by: Actor, name: str, tenant: str) -> Change:
    """Tell that a secret was removed."""
    return change_by(by, Action.SECRETS_WRITE, name, tenant=tenant, did="remove")


def secrets_rotated(by: Actor, tenant: str | None, rotation: Rotation) -> Change:
    """Tell that secrets were encrypted anew."""
    told = {"did": "rotate", "rotated": rotation.rotated, "locked": rotation.locked}
    return change_by(by, Action.SECRETS_WRITE, "", tenant=tenant, **told)
