"""What a keeper remembers of the chores that it did, for whoever watches it."""

import msgspec


class ChoreRecord(msgspec.Struct):
    """Numbers of one chore since the keeper started."""

    runs: int = 0
    done: int = 0
    """How much there was to do, over all runs."""
    errors: int = 0
    last_seconds: float = 0.0
    """How long the last run took."""
    total_seconds: float = 0.0

    def add(self, seconds: float, done: int | None) -> None:
        """Note a run; None stands for one that failed."""
        self.runs += 1
        self.done += done or 0
        self.errors += done is None
        self.last_seconds = seconds
        self.total_seconds += seconds
