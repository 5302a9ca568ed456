"""Secrets that are stored: what can be told of them, which is all but what they are."""

from datetime import datetime
from typing import Final

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_name
from tidewheel.model.secret import check_secret_name, flaw_of_text

MOST_SECRETS: Final = 200
"""How many a tenant may have."""


class StoredSecret(msgspec.Struct, frozen=True, kw_only=True):
    """A secret, as people see it."""

    name: str
    tenant: str
    version: int
    """Rises with each text that it is given."""
    changed_at: datetime
    changed_by: str
    """Who gave it its text."""
    sealed_by: str
    """The id of the key that it is encrypted by."""


class SecretList(msgspec.Struct, frozen=True, kw_only=True):
    """The secrets of a tenant, by name."""

    secrets: list[StoredSecret]


class Rotation(msgspec.Struct, frozen=True, kw_only=True):
    """What became of secrets that were to be encrypted anew."""

    rotated: int
    """How many are encrypted by the first key now, and were not before."""
    locked: int
    """How many no key opens; they stay as they are."""


def check_secret(tenant: str, name: str, text: str) -> None:
    """Refuse what cannot be stored as a secret; what is said shows nothing of its text."""
    check_name("tenant", tenant)
    check_secret_name(name, "name")
    check_secret_text(text)


def check_secret_text(text: object) -> None:
    """Refuse what cannot be the text of a secret, without showing any of it."""
    if flaw := flaw_of_text(text):
        raise Invalid("value", flaw)
