"""The place of a line among all lines as bytes, for cursors and for programs that go on after it."""

from datetime import timedelta
from typing import Final
from uuid import UUID

from tidewheel.model.ids import EPOCH
from tidewheel.model.log_query import LogKey

_MICROSECOND: Final = timedelta(microseconds=1)
_SIZES: Final = (8, 16, 9, 9)
_MOST: Final = 2**63
"""No store has numbers beyond these 64 bits."""
PLACE_SIZE: Final = sum(_SIZES)


def place_of(key: LogKey) -> bytes:
    """Return the bytes that stand for a key."""
    micros = (key.stored_at - EPOCH) // _MICROSECOND
    first, _, third, fourth = _SIZES
    numbers = ((micros, first), (key.token, third), (key.number, fourth))
    at, token, number = (value.to_bytes(size, "big", signed=True) for value, size in numbers)
    return at + key.job_id.bytes + token + number


def key_of(place: bytes) -> LogKey | None:
    """Return the key that such bytes stand for, None if no line can have it."""
    if len(place) != PLACE_SIZE:
        return None
    micros, token, number = (int.from_bytes(one, "big", signed=True) for one in (place[:8], place[24:33], place[33:]))
    try:
        at = EPOCH + micros * _MICROSECOND
    except OverflowError:
        return None
    within = all(-_MOST <= one < _MOST for one in (token, number))
    return LogKey(at, UUID(bytes=place[8:24]), token, number) if within else None


def key_in(text: str) -> LogKey | None:
    """Return the key that a text in hexadecimal digits stands for, None if it stands for none."""
    try:
        return key_of(bytes.fromhex(text))
    except ValueError:
        return None
