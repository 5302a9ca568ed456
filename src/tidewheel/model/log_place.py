"""The place of a line among all lines as bytes, for cursors and for programs that go on after it."""

from datetime import timedelta
from typing import Final
from uuid import UUID

from tidewheel.model.ids import EPOCH
from tidewheel.model.log_query import LogKey

_MICROSECOND: Final = timedelta(microseconds=1)
_SIZES: Final = (8, 16, 9, 9)
PLACE_SIZE: Final = sum(_SIZES)


def place_of(key: LogKey) -> bytes:
    """Return the bytes that stand for a key."""
    micros = (key.stored_at - EPOCH) // _MICROSECOND
    first, _, third, fourth = _SIZES
    numbers = ((micros, first), (key.token, third), (key.number, fourth))
    at, token, number = (value.to_bytes(size, "big", signed=True) for value, size in numbers)
    return at + key.job_id.bytes + token + number


def key_of(place: bytes) -> LogKey:
    """Return the key that such bytes stand for."""
    micros, job_id, token, number = place[:8], place[8:24], place[24:33], place[33:]
    at = EPOCH + int.from_bytes(micros, "big", signed=True) * _MICROSECOND
    return LogKey(at, UUID(bytes=job_id), *(int.from_bytes(one, "big", signed=True) for one in (token, number)))


def key_in(text: str) -> LogKey | None:
    """Return the key that a text in hexadecimal digits stands for, None if it stands for none."""
    try:
        place = bytes.fromhex(text)
        return key_of(place) if len(place) == PLACE_SIZE else None
    except (ValueError, OverflowError):
        return None
