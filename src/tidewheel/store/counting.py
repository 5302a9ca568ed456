"""What every store promises about numbers over time, and what both do to keep them.

The statement that ends jobs also leaves a note of how late they began and how long they ran: one row for each lane and
outcome of a batch. A duty folds the notes into rows of a minute, which are kept for two days, and into rows of an hour.
A chart of thirty days by the hour so reads no minutes. Whoever reads adds what is not folded yet. A fold is one
transaction, so every end is counted once in each.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple, Protocol

from tidewheel.model.histogram import Histogram
from tidewheel.model.states import State
from tidewheel.model.statistics import StatFilter, StatPoint

StatKey = tuple[datetime, int, str]
"""When it begins, which lane, and which outcome."""


class StatStore(Protocol):
    """For charts, and for the keeper."""

    async def statistics(self, where: StatFilter) -> list[StatPoint]:
        """Return the numbers of what ended, up to this moment. Raises Invalid, also if they were too many points.

        Of what ended more than two days ago only the hour is known: it counts for the step in which that begins. Steps
        of whole hours have whole hours, also the one in which `since` lies.
        """
        ...

    async def finished(self) -> dict[tuple[str, State], int]:
        """Return how many jobs of each queue have ever ended in each state; the numbers never fall."""
        ...

    async def missed(self) -> int:
        """Return how many occurrences of schedules were ever missed."""
        ...

    async def fold_statistics(self, *, limit: int = 1000) -> int:
        """Fold so many notes, and forget so many rows of minutes, at the most; return how many."""
        ...


class Numbers(NamedTuple):
    """What is added up."""

    jobs: int
    delays: Histogram
    runs: Histogram


def added_up(rows: Iterable[tuple[StatKey, Numbers]]) -> dict[StatKey, Numbers]:
    """Add up the numbers of each key, in the order of the keys."""
    sums: dict[StatKey, Numbers] = {}
    for key, numbers in rows:
        before = sums.get(key, Numbers(0, Counter(), Counter()))
        delays, runs = Counter(before.delays), Counter(before.runs)
        delays.update(numbers.delays)
        runs.update(numbers.runs)
        sums[key] = Numbers(before.jobs + numbers.jobs, delays, runs)
    return dict(sorted(sums.items()))
