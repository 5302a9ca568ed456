"""Addresses that open one thing for a while, without a key: what they allow is written in them, and signed.

All servers of a store sign with the same secret, so any of them honours what another handed out.
"""

import base64
import binascii
import hashlib
import hmac
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import msgspec

from tidewheel.server.problems import Refused

_MOST: Final = 4000


class Upload(msgspec.Struct, frozen=True, kw_only=True, tag="upload"):
    """One artifact may be brought."""

    tenant: str
    digest: str
    size: int
    name: str
    by: str
    until: int
    """The last second since 1970 at which this holds."""
    place: str | None = None
    """Under which name it arrives, if it is brought elsewhere than here."""


class Bringing(msgspec.Struct, frozen=True, kw_only=True, tag="bringing"):
    """One thing that a run leaves behind may be brought, as long as the run goes on."""

    job_id: UUID
    token: int
    name: str | None
    """Of a file; a result has none."""
    size: int
    until: int
    place: str | None = None
    """As for an artifact."""


class Download(msgspec.Struct, frozen=True, kw_only=True, tag="download"):
    """One object may be fetched."""

    location: str
    name: str
    tenant: str
    """In whose name."""
    until: int


Grant = Upload | Bringing | Download
_decode: Final = msgspec.json.Decoder(Grant).decode


def seal(grant: Grant, key: bytes) -> str:
    """Return the text that stands for a grant in an address."""
    said = msgspec.json.encode(grant)
    return f"{_text(said)}.{_text(_digest(said, key))}"


def unseal(text: str, key: bytes, now: datetime) -> Grant:
    """Return the grant that a text stands for. Raises Refused if we did not sign it or its time has passed."""
    said, _, digest = text[:_MOST].partition(".")
    try:
        raw = _bytes(said)
        good = hmac.compare_digest(_bytes(digest), _digest(raw, key))
        grant: Grant | None = _decode(raw) if good else None
    except (ValueError, binascii.Error, msgspec.MsgspecError):
        grant = None
    if grant is None or grant.until < now.timestamp():
        raise Refused("forbidden", "this address was not signed here, or its time has passed: ask for another")
    return grant


def expires_at(grant: Grant) -> datetime:
    """Return until when a grant holds."""
    return datetime.fromtimestamp(grant.until, UTC)


def _digest(said: bytes, key: bytes) -> bytes:
    return hmac.new(key, b"tidewheel grant\0" + said, hashlib.sha256).digest()


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
