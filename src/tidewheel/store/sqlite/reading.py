"""What readers ask of the store: jobs, their attempts, relatives and lines, and numbers."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar
from uuid import UUID

import apsw

from tidewheel.clock import Clock
from tidewheel.model.dependency import Relative
from tidewheel.model.job import Attempt, Job
from tidewheel.model.log import LogLine
from tidewheel.model.log_query import LogBacklog, LogFilter, LogKey, LogPage, Sight
from tidewheel.store.base import Counts, JobFilter
from tidewheel.store.log_searching import Walk
from tidewheel.store.pages import MOST_ATTEMPTS, NEWEST, Page
from tidewheel.store.records import check_last_page, check_page
from tidewheel.store.sqlite import depending, log_lines, searching
from tidewheel.store.sqlite.values import micros

T = TypeVar("T")


class Reading:
    """A part of the store; see `store.base.SearchStore`, `store.telling.LogStore` and `store.log_searching`."""

    _clock: Clock

    async def _read(self, look: Callable[[apsw.Connection], T]) -> T:
        raise NotImplementedError

    async def get(self, job_id: UUID, *, tenant: str | None = None) -> Job:
        return await self._read(lambda connection: searching.get(connection, job_id, tenant))

    async def find(self, where: JobFilter, *, limit: int = 50, after: UUID | None = None) -> Page:
        searching.check_page(limit)
        return await self._read(lambda connection: searching.find(connection, where, limit, after))

    async def attempts(
        self, job_id: UUID, *, tenant: str | None = None, before: int = NEWEST, limit: int = MOST_ATTEMPTS
    ) -> list[Attempt]:
        values = {"id": job_id.bytes, "before": before, "limit": searching.check_page(limit)}
        return await self._read(lambda connection: searching.attempts(connection, job_id, tenant, values))

    async def parents_of(
        self, job_id: UUID, *, limit: int = 50, after: UUID | None = None, tenant: str | None = None
    ) -> list[Relative]:
        look = partial(depending.relatives, page="parents_page", job_id=job_id, after=after, tenant=tenant)
        return await self._read(partial(look, limit=searching.check_page(limit)))

    async def children_of(
        self, job_id: UUID, *, limit: int = 50, after: UUID | None = None, tenant: str | None = None
    ) -> list[Relative]:
        look = partial(depending.relatives, page="children_page", job_id=job_id, after=after, tenant=tenant)
        return await self._read(partial(look, limit=searching.check_page(limit)))

    async def counts(self, *, tenant: str | None = None, fresh: bool = False) -> Counts:
        if not fresh:
            return await self._read(lambda connection: searching.counts(connection, tenant))
        now = micros(self._clock.now())
        return await self._read(lambda connection: searching.fresh_counts(connection, tenant, now))

    async def logs(
        self, job_id: UUID, *, tenant: str | None = None, after: tuple[int, int] | None = None, limit: int = 1000
    ) -> list[LogLine]:
        begin = check_page(after, limit)
        return await self._read(lambda connection: log_lines.logs(connection, job_id, tenant, begin, limit))

    async def last_logs(
        self, job_id: UUID, *, tenant: str | None = None, before: tuple[int, int] | None = None, limit: int = 1000
    ) -> list[LogLine]:
        end = check_last_page(before, limit)
        return await self._read(lambda connection: log_lines.last_logs(connection, job_id, tenant, end, limit))

    async def search_logs(
        self,
        where: LogFilter,
        *,
        limit: int = 50,
        after: LogKey | None = None,
        newest_first: bool = True,
        unseen_at: Sight | None = None,
        seen_at: Sight | None = None,
    ) -> LogPage:
        walk = Walk(where, limit, after, newest_first=newest_first, only_news=unseen_at is not None)
        unseen = None if unseen_at is None else log_lines.read_sight("unseen_at", unseen_at)
        seen = None if seen_at is None else log_lines.read_sight("seen_at", seen_at)
        return await self._read(lambda connection: log_lines.search(connection, walk, unseen, seen))

    async def unindexed_logs(self) -> LogBacklog:
        now = micros(self._clock.now())
        return await self._read(lambda connection: log_lines.unindexed(connection, now))
