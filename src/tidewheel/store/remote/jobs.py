"""Jobs over HTTP: submitting, steering and looking."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from tidewheel.errors import Conflict, Invalid, NotFound
from tidewheel.model.checks import check_text
from tidewheel.model.dependency import Relative
from tidewheel.model.job import Attempt, Job, JobSpec, Submitted
from tidewheel.model.log import LogLine
from tidewheel.model.submission import MOST_ARGS_BYTES, prepare_all
from tidewheel.store.base import JobFilter
from tidewheel.store.pages import MOST_ATTEMPTS, NEWEST, Page, fills_page, one_page
from tidewheel.store.records import check_last_page, check_page
from tidewheel.store.remote.documents import (
    AcceptedBatch,
    AcceptedJob,
    AttemptList,
    JobDocument,
    JobPage,
    LinePage,
    RelativePage,
)
from tidewheel.store.remote.requests import find_query, job_request
from tidewheel.store.remote.transport import Transport, gather, tenant_header

MAX_PAGE: Final = 1000
MAX_REASON: Final = 1000
MOST_JOBS: Final = 200
"""How many a server shows on one page."""
MOST_LINES: Final = 1_000


class Jobs:
    """See `store.base.JobStore` and `store.base.SearchStore`."""

    _transport: Transport

    async def submit(self, specs: Sequence[JobSpec]) -> list[Submitted]:
        if not specs:
            return []
        prepared = prepare_all(specs, max_args_bytes=MOST_ARGS_BYTES)  # the server knows how much it takes
        bodies = [job_request(spec, one) for spec, one in zip(specs, prepared, strict=True)]
        safe = all(spec.idempotency_key is not None for spec in specs)
        if len(bodies) == 1:
            answer = await self._transport.post("/v1/jobs", bodies[0], AcceptedJob, safe=safe)
            return [Submitted(answer.id, answer.created)]
        batch = await self._transport.post("/v1/jobs/batch", bodies, AcceptedBatch, safe=safe)
        return [Submitted(job.id, job.created) for job in batch.jobs]

    async def cancel(self, job_id: UUID, *, tenant: str | None = None, reason: str = "") -> Job:
        path, body = f"/v1/jobs/{job_id}/cancel", {"reason": check_text("reason", reason, MAX_REASON)}
        found = await self._transport.post(path, body, JobDocument, safe=True, headers=tenant_header(tenant))
        return found.record()

    async def redrive(self, job_ids: Sequence[UUID], *, tenant: str | None = None) -> list[UUID]:
        done = await gather(*(self._redrive(job_id, tenant) for job_id in dict.fromkeys(job_ids)))
        return [job_id for job_id in done if job_id is not None]

    async def _redrive(self, job_id: UUID, tenant: str | None) -> UUID | None:
        try:
            await self._transport.write("POST", f"/v1/jobs/{job_id}/retry", safe=False, headers=tenant_header(tenant))
        except (Conflict, NotFound):
            return None
        return job_id

    async def get(self, job_id: UUID, *, tenant: str | None = None) -> Job:
        found = await self._transport.get(f"/v1/jobs/{job_id}", JobDocument, headers=tenant_header(tenant))
        return found.record()

    async def find(self, where: JobFilter, *, limit: int = 50, after: UUID | None = None) -> Page:
        query = find_query(where, min(_checked(limit), MOST_JOBS), after)
        page = await self._transport.get("/v1/jobs", JobPage, query, headers=tenant_header(where.tenant))
        return Page([job.record() for job in page.jobs], page.next_after)

    async def attempts(
        self, job_id: UUID, *, tenant: str | None = None, before: int = NEWEST, limit: int = MOST_ATTEMPTS
    ) -> list[Attempt]:
        query = {"before": before, "limit": min(_checked(limit), MOST_ATTEMPTS)}
        path = f"/v1/jobs/{job_id}/attempts"
        found = await self._transport.get(path, AttemptList, query, headers=tenant_header(tenant))
        return [attempt.record(job_id) for attempt in found.attempts]

    async def parents_of(
        self, job_id: UUID, *, limit: int = 50, after: UUID | None = None, tenant: str | None = None
    ) -> list[Relative]:
        return await self._relatives("parents", job_id, limit=limit, after=after, tenant=tenant)

    async def children_of(
        self, job_id: UUID, *, limit: int = 50, after: UUID | None = None, tenant: str | None = None
    ) -> list[Relative]:
        return await self._relatives("children", job_id, limit=limit, after=after, tenant=tenant)

    async def _relatives(
        self, which: str, job_id: UUID, *, limit: int, after: UUID | None, tenant: str | None
    ) -> list[Relative]:
        found: list[Relative] = []
        while len(found) < _checked(limit):
            query: dict[str, Any] = {"limit": min(limit - len(found), MOST_JOBS), "after": after}
            path = f"/v1/jobs/{job_id}/{which}"
            page = await self._transport.get(path, RelativePage, query, headers=tenant_header(tenant))
            found += [one.record() for one in page.jobs]
            if len(page.jobs) < query["limit"]:
                break
            after = page.jobs[-1].id
        return found

    async def logs(
        self, job_id: UUID, *, tenant: str | None = None, after: tuple[int, int] | None = None, limit: int = 1000
    ) -> list[LogLine]:
        token, number = check_page(after, limit)
        found: list[LogLine] = []
        while not fills_page(found, limit):
            wanted = min(limit - len(found), MOST_LINES)
            begin = None if token < 0 or number < 0 else f"{token}.{number}"
            query = {"limit": wanted, "after": begin}
            page = await self._transport.get(f"/v1/jobs/{job_id}/logs", LinePage, query, headers=tenant_header(tenant))
            found += [line.record(job_id) for line in page.lines]
            if page.next_cursor is None:
                break
            token, number = found[-1].token, found[-1].number
        return one_page(found, limit)

    async def last_logs(
        self, job_id: UUID, *, tenant: str | None = None, before: tuple[int, int] | None = None, limit: int = 1000
    ) -> list[LogLine]:
        check_last_page(before, limit)
        found: list[LogLine] = []
        while not fills_page(found, limit):
            wanted = min(limit - len(found), MOST_LINES)
            query = {"limit": wanted, "last": "true", "before": None if before is None else "{}.{}".format(*before)}
            page = await self._transport.get(f"/v1/jobs/{job_id}/logs", LinePage, query, headers=tenant_header(tenant))
            found = [*(line.record(job_id) for line in page.lines), *found]
            if not fills_page(page.lines, wanted):
                break
            before = (found[0].token, found[0].number)
        return one_page(reversed(found), limit)[::-1]


def _checked(limit: int) -> int:
    if not 1 <= limit <= MAX_PAGE:
        raise Invalid("limit", f"must be between 1 and {MAX_PAGE}, not {limit}")
    return limit
