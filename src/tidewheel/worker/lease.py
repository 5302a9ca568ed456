"""The lease of a worker, counted by its holder: how often to beat, and when to stop trusting what was granted."""

from datetime import timedelta
from typing import Final

from tidewheel.model.liveness import holder_deadline

BEATS_IN_TTL: Final = 6
FENCE_SHARE: Final = 0.1
LEAST_FENCE: Final = 0.5
"""How much of the lease, and how many seconds at least, are kept for ending all runs before the kernel does."""


class Lease:
    """What one beat granted. All times are of the monotonic clock that counts suspended time too."""

    def __init__(self, ttl: timedelta, sent_at: float) -> None:
        self._ttl = ttl
        self.until = holder_deadline(sent_at, ttl)

    @property
    def pause(self) -> float:
        """Seconds between two beats."""
        return self._ttl.total_seconds() / BEATS_IN_TTL

    @property
    def fence_at(self) -> float:
        """When to end all runs by ourselves, if no beat was answered by then."""
        return self.until - max(FENCE_SHARE * self._ttl.total_seconds(), LEAST_FENCE)

    def renew(self, sent_at: float, now: float) -> bool:
        """Take an answer to a beat that was sent then; one that comes after the lease has passed is worth nothing."""
        if now >= self.until:
            return False
        self.until = max(self.until, holder_deadline(sent_at, self._ttl))
        return True
