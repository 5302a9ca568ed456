"""Following lines as they are stored, by any store that can be searched."""

from datetime import timedelta
from typing import Final
from uuid import UUID

from tidewheel.model.checks import FIRST_INSTANT
from tidewheel.model.log_query import FoundLine, LogFilter, LogKey
from tidewheel.store.log_searching import LogSearchStore
from tidewheel.store.pages import fills_page

LATE: Final = timedelta(seconds=1)
"""How much later than others a line may become visible that was stored before them."""
PAGE: Final = 500
_LEAST: Final = (UUID(int=0), -1, -1)


class Follower:
    """Gives each line once, those that become visible late as well."""

    def __init__(self, store: LogSearchStore, where: LogFilter, begin: LogKey | None) -> None:
        self._store = store
        self._where = where
        self._begin = begin
        self._newest = begin
        self._seen: set[LogKey] = set()

    async def news(self) -> list[FoundLine]:
        """Return lines that were not told of yet, in the order in which they were stored; not all if they are many."""
        last = await newest_line(self._store, self._where.tenant)
        after, lines = self._window(), list[FoundLine]()
        while not fills_page([found.line for found in lines], PAGE):
            page = await self._store.search_logs(self._where, limit=PAGE, after=after, newest_first=False)
            lines += [found for found in page.lines if self._is_new(found.key)]
            if page.next is None:
                self._advance(last)  # or lines that nobody wants would be looked at again and again
                break
            after = page.next
        for found in lines:
            self._seen.add(found.key)
            self._advance(found.key)
        window = self._window()
        if window is not None:
            self._seen = {key for key in self._seen if key > window}
        return lines

    def _advance(self, key: LogKey | None) -> None:
        if key is not None:
            self._newest = key if self._newest is None else max(self._newest, key)

    def _is_new(self, key: LogKey) -> bool:
        return key not in self._seen and (self._begin is None or key > self._begin)

    def _window(self) -> LogKey | None:
        if self._newest is None:
            return None
        return LogKey(max(self._newest.stored_at, FIRST_INSTANT) - LATE, *_LEAST)  # before that nothing was stored


async def newest_line(store: LogSearchStore, tenant: str | None) -> LogKey | None:
    """Return the place of the last line that there is, whatever it says."""
    page = await store.search_logs(LogFilter(tenant=tenant), limit=1)
    while not page.lines and page.next is not None:  # a short page: so far there were lines of other tenants only
        page = await store.search_logs(LogFilter(tenant=tenant), limit=1, after=page.next)
    return page.lines[0].key if page.lines else None
