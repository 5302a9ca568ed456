"""What could be seen at one moment: its time, and the snapshot of the transactions that were over."""

import re
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from tidewheel.errors import Invalid
from tidewheel.model.checks import FIRST_INSTANT, LAST_INSTANT
from tidewheel.model.ids import EPOCH
from tidewheel.model.log_query import Sight

MOST_UNDER_WAY: Final = 100
"""How many transactions a sight names that were under way."""
LATEST: Final = timedelta(days=1)
"""How much later than it was stored a line may become visible and is still news."""
_FORM: Final = re.compile(r"([0-9]{1,17})\.([0-9]{1,19}):([0-9]{1,19}):((?:[0-9]{1,19}(?:,[0-9]{1,19})*)?)", re.ASCII)


class Seen(NamedTuple):
    """A sight that was read."""

    at: datetime
    snapshot: str
    """As PostgreSQL writes a `pg_snapshot`."""

    @property
    def since(self) -> datetime:
        """Return from when on something may have been stored that could not be seen."""
        return self.at - LATEST


def sight_of(micros: int, snapshot: str) -> Sight:
    """Return a sight as a text."""
    return f"{micros}.{snapshot}"


def read_sight(field: str, sight: Sight) -> Seen:
    """Read what a search gave out. Raises Invalid for anything else, which PostgreSQL would not take either."""
    found = _FORM.fullmatch(sight)
    if found is not None:
        first, end = int(found[2]), int(found[3])
        under_way = [int(one) for one in found[4].split(",")] if found[4] else []
        at = EPOCH + timedelta(microseconds=int(found[1]))
        in_order = under_way == sorted(set(under_way)) and all(first <= one < end for one in under_way)
        if 0 < first <= end < 1 << 63 and in_order and FIRST_INSTANT <= at < LAST_INSTANT:
            return Seen(at, sight.partition(".")[2])
    raise Invalid(field, f"is no sight that a search of this database gave: {sight[:40]!r}")
