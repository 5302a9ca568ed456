"""Sessions of people who came with a key: a token that stands for the key for some hours, and ends with it.

A token is `<prefix>.<until>.<random>.<mac>`. The mac is made with the digest that is kept of the key, so no server
needs a secret or a memory of its own: whoever knows the digest can tell a token that was made from the key from one
that was not, and a key that is revoked takes its sessions along. The key cannot be learned from a token.
"""

import hashlib
import hmac
import re
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tidewheel.model.api_key import ApiKey, Known, digest_of, prefix_of

LIFETIME: Final = timedelta(hours=12)
_form_of = re.compile(r"([a-z2-7]{8})\.([0-9]{1,12})\.([A-Za-z0-9_-]{20,60})\.([0-9a-f]{64})").fullmatch


class SessionToken(msgspec.Struct, frozen=True):
    """What a browser keeps and brings along."""

    text: str

    @property
    def prefix(self) -> str:
        """Return the prefix of the key; for what is no token, one that no key has."""
        found = _form_of(self.text)
        return found[1] if found else prefix_of("")

    def key_of(self, known: Known | None) -> ApiKey | None:
        """Return the key that it stands for, if both are valid."""
        found = _form_of(self.text)
        if known is None or found is None:
            return None
        head, _, mac = self.text.rpartition(".")
        same = hmac.compare_digest(_mac_of(head, known.digest), mac)
        return known.key if same and known.now.timestamp() < int(found[2]) and known.key.valid(known.now) else None


def begin_session(key: str, now: datetime, entropy: str) -> SessionToken:
    """Return the token for whoever brought a key that was found to be good."""
    head = f"{prefix_of(key)}.{int((now + LIFETIME).timestamp())}.{entropy}"
    return SessionToken(f"{head}.{_mac_of(head, digest_of(key))}")


def _mac_of(head: str, digest: bytes) -> str:
    return hmac.new(digest, b"tidewheel session\0" + head.encode(), hashlib.sha256).hexdigest()
