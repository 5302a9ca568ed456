"""Cursors: where a list goes on. Opaque to clients, bound to the list that they came from, and without any secret.

What a cursor lets one see is decided by who asks, not by the cursor; its digest only tells apart what we made from what
someone made up, typed wrongly or took from another list.
"""

import base64
import binascii
import hashlib
from typing import Final
from uuid import UUID

from tidewheel.server.problems import Flaw, Refused

_DIGEST: Final = 8
_ID: Final = 16
_HALF: Final = 9
"""The bytes of one of two numbers, signed."""
_MOST: Final = 2**63
"""No store has numbers beyond these 64 bits."""


def seal(scope: str, place: bytes) -> str:
    """Return the cursor of a place in the list that `scope` names with all of its filters."""
    return base64.urlsafe_b64encode(_digest(scope, place) + place).rstrip(b"=").decode()


def unseal(scope: str, cursor: str, size: int | None = None) -> bytes:
    """Return the place that a cursor stands for, which has so many bytes in lists that have such. Raises Refused."""
    try:
        raw = base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
    except (ValueError, binascii.Error):
        raw = b""
    digest, place = raw[:_DIGEST], raw[_DIGEST:]
    if len(place) != (size or max(1, len(place))) or digest != _digest(scope, place):
        raise bad_cursor()
    return place


def bad_cursor() -> Refused:
    """Return the refusal of a cursor; anyone can make one with a right digest and a place that cannot be."""
    why = "is none that this list gave out"
    return Refused("bad-cursor", f"cursor: {why}", flaws=[Flaw(detail=why, parameter="cursor")])


def seal_id(scope: str, place: UUID | None) -> str | None:
    """Return the cursor of a list by ids, None at its end."""
    return None if place is None else seal(scope, place.bytes)


def unseal_id(scope: str, cursor: str | None) -> UUID | None:
    """Return the id after which a list goes on."""
    return None if cursor is None else UUID(bytes=unseal(scope, cursor, _ID))


def seal_pair(scope: str, place: tuple[int, int]) -> str:
    """Return the cursor of a list by two numbers."""
    return seal(scope, b"".join(number.to_bytes(_HALF, "big", signed=True) for number in place))


def unseal_pair(scope: str, cursor: str | None) -> tuple[int, int] | None:
    """Return the numbers after which a list goes on."""
    if cursor is None:
        return None
    place = unseal(scope, cursor, 2 * _HALF)
    first, second = (int.from_bytes(half, "big", signed=True) for half in (place[:_HALF], place[_HALF:]))
    if not (-_MOST <= first < _MOST and -_MOST <= second < _MOST):
        raise bad_cursor()
    return first, second


def _digest(scope: str, place: bytes) -> bytes:
    return hashlib.blake2b(scope.encode() + b"\0" + place, digest_size=_DIGEST, person=b"tide cursor").digest()
