"""Keys: how one looks, how it is kept, and when it is valid.

A key is `tide_<prefix>_<secret><sum>`: a prefix of eight letters and digits that may be shown and tells keys apart, 256
random bits, and a checksum of all before it. The checksum lets people and tools tell a key that was cut off or mistyped
from one that is not known; whoever stands at a door answers both alike. Kept is the SHA-256 of the whole text: of 256
random bits nothing can be guessed, so nothing slower is needed.
"""

import hashlib
import hmac
import math
import re
import zlib
from base64 import b32encode
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from tidewheel.errors import Forbidden, Invalid
from tidewheel.model.access import Actor, Role, parse_role
from tidewheel.model.checks import check_duration, check_key, check_name
from tidewheel.model.request_rate import check_rate

MARK: Final = "tide_"
PREFIX_LENGTH: Final = 8
ENTROPY: Final = 5 + 32
"""Random bytes that a key is made of: those of its prefix, and those of its secret."""
MAX_LIFETIME: Final = timedelta(days=3650)
USED_EVERY: Final = timedelta(minutes=1)
"""How often it is written down at most that a key was used."""
NO_PREFIX: Final = "-" * PREFIX_LENGTH
"""Looked up in place of the prefix of what is no key, so that it takes as long; no key has it."""

_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SECRET_LENGTH: Final = math.ceil(256 / math.log2(62))
_SUM_LENGTH: Final = math.ceil(32 / math.log2(62))
_LENGTH: Final = len(MARK) + PREFIX_LENGTH + 1 + _SECRET_LENGTH + _SUM_LENGTH
_form_of = re.compile(r"tide_([a-z2-7]{8})_[0-9A-Za-z]{49}").fullmatch
_NO_DIGEST: Final = bytes(32)


class KeySpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What someone wants a key to be."""

    name: str
    role: Role
    tenant: str | None = None
    """None for all tenants."""
    lifetime: timedelta | None = None
    """How long it is valid; None for until it is revoked."""
    rate: float | None = None
    """Requests a second; None for the server's default."""
    burst: int | None = None
    """Requests at once after a pause; None for the server's default."""


class ApiKey(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A key as everyone may see it who may see keys: without its secret."""

    id: UUID
    prefix: str
    name: str
    role: Role
    tenant: str | None = None
    created_at: datetime
    created_by: str = ""
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    """To the minute."""
    revoked_at: datetime | None = None
    rate: float | None = None
    burst: int | None = None

    def valid(self, now: datetime) -> bool:
        """Tell whether it opens anything."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    @property
    def actor(self) -> Actor:
        """Return who comes with it."""
        return Actor(role=self.role, tenant=self.tenant, key_id=self.id, name=self.name)


class Proof(NamedTuple):
    """What is kept of a key to recognise it."""

    prefix: str
    digest: bytes


class NewKey:
    """A key that was just made. Its text is shown once, to whoever asked for it, and never printed by accident."""

    __slots__ = ("proof", "text")

    def __init__(self, text: str, proof: Proof) -> None:
        self.text = text
        self.proof = proof

    def __repr__(self) -> str:
        return f"NewKey({self.proof.prefix}…)"


class Known(msgspec.Struct, frozen=True):
    """What a store knows of a prefix, and what time it is there."""

    key: ApiKey
    digest: bytes
    now: datetime


# Making and recognising


def make_key(entropy: bytes) -> NewKey:
    """Return a key made of so many random bytes."""
    if len(entropy) != ENTROPY:
        raise ValueError(f"a key is made of {ENTROPY} bytes, not {len(entropy)}")
    prefix = b32encode(entropy[:5]).decode().lower()
    body = f"{MARK}{prefix}_{_base62(int.from_bytes(entropy[5:]), _SECRET_LENGTH)}"
    text = body + _sum_of(body)
    return NewKey(text, Proof(prefix, digest_of(text)))


def digest_of(text: str) -> bytes:
    """Return what is kept of the text of a key."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


def prefix_of(text: str) -> str:
    """Return the prefix to look a key up by; for what is no key, one that no key has."""
    return NO_PREFIX if flaw_of(text) else text[len(MARK) : len(MARK) + PREFIX_LENGTH]


def flaw_of(text: str) -> str | None:
    """Tell people what is wrong with the text of a key, without looking whether there is such; None if nothing is."""
    if not text.startswith(MARK):
        return f"is no key: keys begin with {MARK}"
    if len(text) < _LENGTH:
        return f"was cut off: a key has {_LENGTH} characters, this has {len(text)}"
    if not _form_of(text) or not hmac.compare_digest(_sum_of(text[:-_SUM_LENGTH]), text[-_SUM_LENGTH:]):
        return "was changed or mistyped: its checksum does not fit"
    return None


def recognise(digest: bytes, known: Known | None) -> ApiKey | None:
    """Return the key if its digest is the one that is known and it is valid.

    The same steps are taken whatever is wrong, so that the time tells nothing.
    """
    same = hmac.compare_digest(digest, _NO_DIGEST if known is None else known.digest)
    return known.key if known is not None and same and known.key.valid(known.now) else None


def _sum_of(body: str) -> str:
    return _base62(zlib.crc32(body.encode()), _SUM_LENGTH)


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))


# What may be asked for


def check_key_spec(spec: KeySpec, by: Actor) -> None:
    """Refuse keys that cannot be, and those that would open more than their maker may."""
    check_key("name", spec.name)
    parse_role(spec.role)
    if spec.tenant is not None:
        check_name("tenant", spec.tenant)
    if by.tenant not in (None, spec.tenant):
        raise Forbidden("other tenants", by.role)
    if spec.lifetime is not None:
        check_duration("lifetime", spec.lifetime, timedelta(seconds=1), MAX_LIFETIME)
    check_rate(spec.rate, spec.burst)


def check_prefix(prefix: str) -> str:
    """Return a prefix as it was shown; Invalid if it cannot be one, above all if it is a whole key."""
    plain = prefix.removeprefix(MARK)
    if len(plain) != PREFIX_LENGTH or not plain.isascii() or not plain.isalnum():
        raise Invalid("key", "must be named by its prefix, such as abcd2345; never show the whole of it")
    return plain
