"""Dead letters over HTTP."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec import Raw

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_json
from tidewheel.model.dead_letter import (
    DeadFilter,
    DeadGroup,
    Redriven,
    check_dead_filter,
    check_piece,
    check_rate,
)
from tidewheel.model.job import Job
from tidewheel.model.submission import MOST_ARGS_BYTES
from tidewheel.store.dead_letters import ALL_DEAD, AT_ONCE
from tidewheel.store.pages import Page
from tidewheel.store.remote.documents import JobDocument
from tidewheel.store.remote.transport import Transport, tenant_header

MAX_PAGE: Final = 1000
MOST_SHOWN: Final = 200
"""How many a server shows on one page."""
_ALL: Final = "/v1/dead-letters"


class GroupList(msgspec.Struct, frozen=True):
    """Groups, the largest first."""

    groups: list[DeadGroup]


class DeadPage(msgspec.Struct, frozen=True):
    """Dead letters, newest first."""

    jobs: list[JobDocument]
    next_cursor: str | None = None
    next_after: UUID | None = None


class RedriveAnswer(msgspec.Struct, frozen=True):
    """What a redrive did, or would do."""

    matched: int
    done: int
    more: bool
    next_start: float
    next_after: UUID | None = None
    as_of: datetime | None = None
    ids: list[UUID] | None = None


class DeadLetters:
    """See `store.dead_letters.DeadLetterStore`."""

    _transport: Transport

    async def dead_groups(self, where: DeadFilter = ALL_DEAD, *, limit: int = 50) -> list[DeadGroup]:
        query = conditions(where) | {"limit": min(_checked(limit), MOST_SHOWN)}
        headers = tenant_header(where.tenant)
        return (await self._transport.get(f"{_ALL}/groups", GroupList, query, headers=headers)).groups

    async def dead_letters(self, where: DeadFilter = ALL_DEAD, *, limit: int = 50, after: UUID | None = None) -> Page:
        query = conditions(where) | {"full": "true", "limit": min(_checked(limit), MOST_SHOWN), "after": after}
        page = await self._transport.get(_ALL, DeadPage, query, headers=tenant_header(where.tenant))
        return Page([job.record() for job in page.jobs], page.next_after)

    async def count_dead(self, where: DeadFilter = ALL_DEAD) -> int:
        body, headers = {"where": conditions(where), "dry_run": True}, tenant_header(where.tenant)
        answer = await self._transport.post(f"{_ALL}/redrive", body, RedriveAnswer, safe=True, headers=headers)
        return answer.matched

    async def redrive_dead(
        self,
        where: DeadFilter,
        *,
        rate: float | None = None,
        start: timedelta = AT_ONCE,
        limit: int = 1000,
        after: UUID | None = None,
    ) -> Redriven:
        check_piece(limit, start, check_rate(rate))
        asked = {"rate": rate, "after": after}
        body: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
        body |= {"where": conditions(where), "limit": limit, "start": start.total_seconds(), "with_ids": True}
        headers = tenant_header(where.tenant)
        answer = await self._transport.post(f"{_ALL}/redrive", body, RedriveAnswer, safe=False, headers=headers)
        assert answer.as_of is not None
        return Redriven(answer.ids or [], answer.next_after, answer.as_of)

    async def redrive_edited(self, job_id: UUID, args: Mapping[str, Any], *, tenant: str | None = None) -> Job:
        if args is None:  # for the server that means those that it has
            raise Invalid("args", "must be an object, not null")
        path, headers = f"{_ALL}/{job_id}/retry", tenant_header(tenant)
        body = {"args": Raw(check_json("args", args, max_bytes=MOST_ARGS_BYTES).encode())}
        return (await self._transport.post(path, body, JobDocument, safe=False, headers=headers)).record()


def conditions(where: DeadFilter) -> dict[str, Any]:
    """Return a filter as a request says it; its tenant goes by the header. Raises Invalid."""
    plain: dict[str, Any] = msgspec.to_builtins(check_dead_filter(where))
    return {name: value for name, value in plain.items() if value is not None and name != "tenant"}


def _checked(limit: int) -> int:
    if not 1 <= limit <= MAX_PAGE:
        raise Invalid("limit", f"must be between 1 and {MAX_PAGE}, not {limit}")
    return limit
