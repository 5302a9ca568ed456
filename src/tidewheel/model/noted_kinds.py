"""Which kinds a process knows to be noted for which moment: only the first job of a kind in a second pays for it.

What is remembered must have been committed, or be forgotten when it is undone: else later jobs of that moment would be
missing from the index. It stays true: a kind is never erased, and a period is forgotten only when it is older than any
id that a new job may have.
"""

from collections.abc import Iterable
from typing import Final

from tidewheel.model.job_phrases import Said

MOST_KINDS: Final = 10_000
"""How many kinds are remembered, of all tenants."""


class NotedKinds:
    """Remembers the latest moment of each kind of each tenant."""

    def __init__(self) -> None:
        self._latest: dict[tuple[int, str], int] = {}

    def unknown(self, said: Iterable[Said]) -> list[Said]:
        """Return what is still to be noted."""
        return [one for one in said if self._latest.get((one.tenant, one.phrase)) != one.moment]

    def remember(self, said: Iterable[Said]) -> None:
        """Keep what was noted."""
        for tenant, phrase, moment in said:
            if len(self._latest) >= MOST_KINDS:
                self._latest.clear()
            self._latest[tenant, phrase] = moment

    def forget(self) -> None:
        """Drop all, for something that was noted may have been undone."""
        self._latest.clear()
