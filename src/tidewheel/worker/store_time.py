"""What the store's clock says, as far as a worker can tell between two claims."""

from datetime import UTC, datetime

from tidewheel.clock import Clock
from tidewheel.model.job import Claimed


class StoreTime:
    """Counts on from the time that the last claim told, whatever this machine's own clock says."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead = 0.0

    def learn(self, claimed: Claimed) -> None:
        """Take the time that a claim told."""
        if claimed.now is not None:
            self._ahead = claimed.now.timestamp() - self._clock.monotonic()

    def seconds(self, monotonic: float) -> float:
        """Return the time at an instant of the own clock, in seconds since the epoch."""
        return monotonic + self._ahead

    def instant(self, monotonic: float) -> datetime:
        """Return the same as an instant."""
        return datetime.fromtimestamp(self.seconds(monotonic), UTC)
