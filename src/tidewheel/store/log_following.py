"""Following lines as they become visible, by any store that can be searched."""

from datetime import timedelta
from typing import Final

from tidewheel.model.checks import LAST_INSTANT
from tidewheel.model.log_query import FoundLine, LogFilter, LogKey, Sight
from tidewheel.store.log_searching import LogSearchStore
from tidewheel.store.pages import fills_page

PAGE: Final = 500
_SECOND: Final = timedelta(seconds=1)


class Follower:
    """Gives each line once, those that become visible late as well."""

    def __init__(
        self,
        store: LogSearchStore,
        where: LogFilter,
        *,
        told: Sight | None = None,
        telling: Sight | None = None,
        after: LogKey | None = None,
    ) -> None:
        self._store = store
        self._where = where
        self._told = told
        """All that could be seen then was told of."""
        self._telling = telling
        """What could be seen then is being told of, up to `_after`; None before the first page of it."""
        self._after = after

    async def news(self) -> list[FoundLine]:
        """Return lines that were not told of yet, in the order in which they were stored; not all if they are many.

        What becomes visible later comes later, whenever it was stored.
        """
        lines: list[FoundLine] = []
        while not fills_page([found.line for found in lines], PAGE):
            page = await self._store.search_logs(
                self._where,
                limit=PAGE,
                after=self._after,
                newest_first=False,
                unseen_at=self._told,
                seen_at=self._telling,
            )
            lines += page.lines
            self._telling, self._after = self._telling or page.sight, page.next
            if page.next is None:
                self._told, self._telling = self._telling, None
                break
        return lines


async def follow(store: LogSearchStore, where: LogFilter, *, after: LogKey | None = None) -> Follower:
    """Follow lines from now on, or all beyond a place."""
    sight = await _sight_now(store, where.tenant)
    if after is None:
        return Follower(store, where, told=sight)
    return Follower(store, where, telling=sight, after=after)


async def _sight_now(store: LogSearchStore, tenant: str | None) -> Sight:
    """Return what can be seen by now. The page of a time that has not come says so, and costs nothing else."""
    page = await store.search_logs(LogFilter(tenant=tenant, since=LAST_INSTANT - _SECOND), limit=1)
    return page.sight
