"""Ids are UUIDv7: they sort by the time they were made, and within one process by the order."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from uuid import UUID

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)

_LAST_MS = (datetime(9999, 12, 31, tzinfo=UTC) - EPOCH) // MILLISECOND
_VERSION = 7 << 76
_VARIANT = 2 << 62
_RAND_A_MASK = (1 << 12) - 1
_RAND_B_MASK = (1 << 62) - 1


def make_id(milliseconds: int, random_bits: int) -> UUID:
    """Return the UUIDv7 of an instant; `random_bits` are 74 bits that sort ids of one millisecond."""
    rand_a = (random_bits >> 62) & _RAND_A_MASK
    return UUID(int=(milliseconds << 80) | _VERSION | (rand_a << 64) | _VARIANT | (random_bits & _RAND_B_MASK))


def time_of(job_id: UUID) -> datetime:
    """Return the instant at which an id was made, to the millisecond; for one that is not ours, any instant."""
    return EPOCH + min(job_id.int >> 80, _LAST_MS) * MILLISECOND


class IdMaker:
    """Makes ids that rise strictly, also within a millisecond and when the clock steps back. For one thread."""

    def __init__(self, now_ms: Callable[[], int], random: Random) -> None:
        self._now_ms = now_ms
        self._random = random
        self._last_ms = 0
        self._last_bits = 0

    def __call__(self) -> UUID:
        """Return the next id."""
        now = self._now_ms()
        if now > self._last_ms:
            # The top bit stays clear, so that a millisecond has room for 2**73 ids above its first.
            self._last_ms, self._last_bits = now, self._random.getrandbits(73)
        else:
            self._last_bits += 1 + self._random.getrandbits(32)
        return make_id(self._last_ms, self._last_bits)
