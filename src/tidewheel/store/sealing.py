"""How stored secrets are encrypted: AES-256-GCM, by keys that no database ever sees.

Whose secret it is and how it is called is part of what is sealed: a row that someone moves to another tenant or name
opens no more. The first key of a ring seals, and each of them opens what it sealed, so that keys can be changed while
all goes on. A key is known by an id, a part of its digest, which says nothing about it.
"""

import base64
import binascii
import hashlib
import importlib.util
import os
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from tidewheel.errors import Invalid, SecretsLocked
from tidewheel.settings import SETTINGS

KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_PURPOSE: Final = "tidewheel/secret/1"
_VARIABLE: Final = SETTINGS["secrets_key"].variable
_NO_KEY: Final = f"no key is configured for stored secrets: set {_VARIABLE} or {_VARIABLE}_FILE"


class Sealed(NamedTuple):
    """A secret as it is stored."""

    key_id: str
    data: bytes


class Keyring:
    """The keys for stored secrets; there may be none. `repr` shows none of them."""

    def __init__(self, keys: Sequence[bytes] = ()) -> None:
        self._keys = {_id_of(key): key for key in keys}

    @classmethod
    def read(cls, text: str | None) -> "Keyring":
        """Return the keys that a setting names, apart by white space or commas. Raises Invalid, which shows none."""
        keys = [_key_of(word) for word in (text or "").replace(",", " ").split()]
        if keys and importlib.util.find_spec("cryptography") is None:
            raise Invalid("secrets_key", "stored secrets need an extra: pip install 'tidewheel[secrets]'")
        return cls(keys)

    @property
    def first(self) -> str:
        """The id of the key that seals. Raises SecretsLocked if there is none."""
        for key_id in self._keys:
            return key_id
        raise SecretsLocked(_NO_KEY)

    def seal(self, tenant: str, name: str, text: str) -> Sealed:
        """Encrypt a secret by the first key. Raises SecretsLocked if there is none."""
        key_id, nonce = self.first, os.urandom(_NONCE_BYTES)
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - an extra

        data = AESGCM(self._keys[key_id]).encrypt(nonce, text.encode(), _bound_to(tenant, name))
        return Sealed(key_id, nonce + data)

    def unseal(self, tenant: str, name: str, sealed: Sealed) -> str:
        """Return what was sealed. Raises SecretsLocked if no key opens it, or it is not what was stored."""
        key = self._keys.get(sealed.key_id)
        if key is None:
            why = f"it is encrypted by the key {sealed.key_id}, which is not configured" if self._keys else _NO_KEY
            raise SecretsLocked(f"the stored secret {name!r} cannot be opened: {why}")
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - as above

        nonce, data = sealed.data[:_NONCE_BYTES], sealed.data[_NONCE_BYTES:]
        try:
            return AESGCM(key).decrypt(nonce, data, _bound_to(tenant, name)).decode()
        except (InvalidTag, ValueError):
            why = "it is damaged, or was stored under another name: set it anew"
            raise SecretsLocked(f"the stored secret {name!r} cannot be opened: {why}") from None


NO_KEYS: Final = Keyring()


def _key_of(word: str) -> bytes:
    try:
        key = base64.b64decode(word.translate(str.maketrans("-_", "+/")), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise Invalid("secrets_key", f"each key must be {KEY_BYTES} bytes in base64, as of `openssl rand -base64 32`")
    return key


def _id_of(key: bytes) -> str:
    return hashlib.sha256(_PURPOSE.encode() + key).hexdigest()[:12]


def _bound_to(tenant: str, name: str) -> bytes:
    """Return what a secret is bound to, which is written so that no two pairs look the same."""
    return msgspec.json.encode([_PURPOSE, tenant, name])
