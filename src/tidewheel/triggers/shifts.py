"""How far an occurrence is moved from its nominal instant, so that ten thousand of them do not fire at once.

Nothing is random: every node computes the same shift from the same key, by a hash. Spread depends on the key alone,
which keeps the distance between the occurrences of one schedule; jitter depends on the key and the occurrence.
"""

from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Final

from tidewheel.triggers.bounds import EPOCH

STEP: Final = timedelta(milliseconds=1)
BITS: Final = 64


def share_of(room: timedelta, purpose: bytes, text: str) -> timedelta:
    """Return a duration in [0, room) that the text decides, in whole milliseconds."""
    digest = blake2b(text.encode(), digest_size=BITS // 8, person=purpose).digest()
    return (int.from_bytes(digest) * (room // STEP) >> BITS) * STEP


def spread_of(key: str, most: timedelta) -> timedelta:
    """Return the shift that all occurrences under the key share."""
    return share_of(most, b"tide-spread", key)


def jitter_of(key: str, nominal: datetime, most: timedelta) -> timedelta:
    """Return the shift of one occurrence."""
    return share_of(most, b"tide-jitter", f"{(nominal - EPOCH) // timedelta(microseconds=1)} {key}")
