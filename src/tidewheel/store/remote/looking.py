"""Reasons, numbers, lines of many runs and erasure over HTTP."""

from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.access import Actor
from tidewheel.model.job import Job
from tidewheel.model.log import LogLine, LogStream
from tidewheel.model.log_place import key_in, place_of
from tidewheel.model.log_query import FoundLine, LogFilter, LogKey, LogPage, LogSearch, Sight
from tidewheel.model.priority import parse_priority
from tidewheel.model.states import State
from tidewheel.store.base import Count, Counts
from tidewheel.store.explaining import Explanation
from tidewheel.store.log_searching import MAX_PAGE
from tidewheel.store.remote.documents import JobDocument
from tidewheel.store.remote.transport import Transport, tenant_header

MOST_SHOWN: Final = 200
"""How many lines a server shows on one page."""
NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""Of when the numbers are before the first census."""


class CountDocument(msgspec.Struct, frozen=True):
    """How many jobs of one lane are in one state."""

    tenant: str
    queue: str
    kind: str
    state: State
    priority: str | None
    jobs: int

    def record(self) -> Count:
        priority = None if self.priority is None else parse_priority(self.priority)
        return Count(self.tenant, self.queue, self.kind, self.state, priority, self.jobs)


class CountList(msgspec.Struct, frozen=True):
    """Numbers of jobs."""

    as_of: datetime | None
    counts: list[CountDocument]


class FoundDocument(msgspec.Struct, frozen=True):
    """A line that was found."""

    job_id: UUID
    tenant: str
    queue: str
    kind: str
    token: int
    number: int
    at: datetime
    stored_at: datetime
    stream: LogStream
    level: str | None
    text: str

    def record(self) -> FoundLine:
        line = LogLine(self.job_id, self.token, self.number, self.at, self.stream, self.level, self.text)
        return FoundLine(line, self.stored_at, self.tenant, self.queue, self.kind)


class FoundPage(msgspec.Struct, frozen=True):
    """Lines that were found."""

    lines: list[FoundDocument]
    next_after: str | None
    sight: str


class Looking:
    """See `store.explaining.ExplainStore`, `store.log_searching.LogSearchStore` and `store.access.ErasureStore`."""

    _transport: Transport

    async def why(self, job_id: UUID, *, tenant: str | None = None) -> Explanation:
        return await self._transport.get(f"/v1/jobs/{job_id}/why", Explanation, headers=tenant_header(tenant))

    async def counts(self, *, tenant: str | None = None, fresh: bool = False) -> Counts:
        query = {"full": "true", "fresh": str(fresh).lower()}
        found = await self._transport.get("/v1/queues", CountList, query, headers=tenant_header(tenant))
        return Counts(found.as_of or NEVER, [count.record() for count in found.counts])

    async def erase(self, job_id: UUID, *, by: Actor) -> Job:
        """Erase a job; the server writes down whose key it was, and not who is named here."""
        path, headers = f"/v1/jobs/{job_id}/erase", tenant_header(by.tenant)
        return (await self._transport.post(path, None, JobDocument, safe=True, headers=headers)).record()

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
        if not 1 <= limit <= MAX_PAGE:
            raise Invalid("limit", f"must be between 1 and {MAX_PAGE}, not {limit}")
        query = _query(where) | {"limit": min(limit, MOST_SHOWN), "oldest_first": str(not newest_first).lower()}
        query |= {"unseen_at": unseen_at, "seen_at": seen_at, "after": after and place_of(after).hex()}
        page = await self._transport.get("/v1/logs", FoundPage, query, headers=tenant_header(where.tenant))
        place = None if page.next_after is None else key_in(page.next_after)
        return LogPage([line.record() for line in page.lines], place, page.sight)


def _query(where: LogFilter) -> dict[str, Any]:
    LogSearch(where)  # says what is wrong with it
    return {
        "q": where.text,
        "kind": where.kind,
        "queue": where.queue,
        "job_id": where.job_id,
        "level": where.level,
        "stream": where.stream,
        "stored_after": None if where.since is None else where.since.isoformat(),
        "stored_before": None if where.before is None else where.before.isoformat(),
    }
