"""Schedules over HTTP."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from tidewheel.errors import Invalid, NotFound
from tidewheel.model.checks import check_name
from tidewheel.model.schedule import Occurrence, PastOccurrence, Schedule, ScheduleSpec, Triggered
from tidewheel.store.remote.requests import priority_name
from tidewheel.store.remote.schedule_documents import (
    RULES,
    OccurrenceList,
    PastList,
    ScheduleDocument,
    SchedulePage,
    TriggeredDocument,
    schedule_body,
)
from tidewheel.store.remote.transport import Transport, read, tenant_header
from tidewheel.store.scheduling import (
    Backfill,
    check_backfill,
    check_occurrence_page,
    check_schedule_page,
    check_trigger_key,
)

MOST_SHOWN: Final = 200
"""How many a server shows on one page."""
MOST_AT_ONCE: Final = 50
"""Of how many schedules a server tells the past at once."""
_ALL: Final = "/v1/schedules"


class Schedules:
    """See `store.scheduling.ScheduleStore`."""

    _transport: Transport

    async def create_schedule(self, spec: ScheduleSpec) -> Schedule:
        return await self._define("POST", _ALL, spec, tenant_header(spec.tenant))

    async def change_schedule(
        self, schedule_id: UUID, spec: ScheduleSpec, *, version: int, tenant: str | None = None
    ) -> Schedule:
        known = await self.get_schedule(schedule_id, tenant=tenant)
        if spec.tenant != known.tenant:
            raise Invalid("tenant", f"must stay {known.tenant!r}")
        headers = tenant_header(known.tenant) | if_match(version)
        return await self._define("PUT", f"{_ALL}/{schedule_id}", spec, headers)

    async def _define(self, method: str, path: str, spec: ScheduleSpec, headers: Mapping[str, str]) -> Schedule:
        body = schedule_body(spec)
        try:
            content = await self._transport.write(method, path, body, safe=False, headers=headers)
        except Invalid as error:  # the rule itself makes sense, or would have been refused before
            raise Invalid("trigger" if error.field in RULES else error.field, error.why) from None
        return read(content, ScheduleDocument).record()

    async def pause_schedule(self, schedule_id: UUID, *, tenant: str | None = None) -> Schedule:
        return await self._steer(schedule_id, "pause", tenant)

    async def resume_schedule(self, schedule_id: UUID, *, tenant: str | None = None) -> Schedule:
        return await self._steer(schedule_id, "resume", tenant)

    async def _steer(self, schedule_id: UUID, how: str, tenant: str | None) -> Schedule:
        path, headers = f"{_ALL}/{schedule_id}/{how}", tenant_header(tenant)
        return (await self._transport.post(path, None, ScheduleDocument, safe=True, headers=headers)).record()

    async def delete_schedule(
        self, schedule_id: UUID, *, version: int | None = None, tenant: str | None = None
    ) -> None:
        headers = tenant_header(tenant) | ({} if version is None else if_match(version))
        await self._transport.write("DELETE", f"{_ALL}/{schedule_id}", safe=False, headers=headers)

    async def trigger_schedule(
        self, schedule_id: UUID, *, key: str | None = None, tenant: str | None = None
    ) -> Triggered:
        check_trigger_key(key)
        path, body, headers = f"{_ALL}/{schedule_id}/trigger", {"idempotency_key": key}, tenant_header(tenant)
        made = await self._transport.post(path, body, TriggeredDocument, safe=key is not None, headers=headers)
        return Triggered(made.record(schedule_id), made.created)

    async def backfill_schedule(
        self, schedule_id: UUID, backfill: Backfill, *, version: int, tenant: str | None = None
    ) -> list[Occurrence]:
        body: dict[str, Any] = {
            "times": check_backfill(backfill),
            "every": backfill.spacing.total_seconds(),
            "priority": None if backfill.priority is None else priority_name(backfill.priority),
            "dry_run": backfill.dry_run,
        }
        headers = tenant_header(tenant) | if_match(version)
        path = f"{_ALL}/{schedule_id}/backfill"
        # What ran, or waits to, is left out by the server, so asking again would do no harm; but it would tell less.
        made = await self._transport.post(path, body, OccurrenceList, safe=backfill.dry_run, headers=headers)
        return [each.record(schedule_id) for each in made.occurrences]

    async def get_schedule(self, schedule_id: UUID, *, tenant: str | None = None) -> Schedule:
        path, headers = f"{_ALL}/{schedule_id}", tenant_header(tenant)
        return (await self._transport.get(path, ScheduleDocument, headers=headers)).record()

    async def find_schedule(self, name: str, *, tenant: str) -> Schedule:
        query, headers = {"name": check_name("name", name)}, tenant_header(tenant)
        found = (await self._transport.get(_ALL, SchedulePage, query, headers=headers)).schedules
        if not found:
            raise NotFound("schedule", repr(name))
        return found[0].record()

    async def schedules(
        self, *, tenant: str | None = None, limit: int = 50, after: UUID | None = None
    ) -> list[Schedule]:
        check_schedule_page(limit)
        found: list[Schedule] = []
        while len(found) < limit:
            wanted = min(limit - len(found), MOST_SHOWN)
            query, headers = {"limit": wanted, "after": after}, tenant_header(tenant)
            page = (await self._transport.get(_ALL, SchedulePage, query, headers=headers)).schedules
            found += [schedule.record() for schedule in page]
            if len(page) < wanted:
                break
            after = page[-1].id
        return found

    async def coming_schedules(self, *, tenant: str, limit: int = 50) -> list[Schedule]:
        query = {"coming": "true", "limit": min(check_schedule_page(limit), MOST_SHOWN)}
        page = await self._transport.get(_ALL, SchedulePage, query, headers=tenant_header(tenant))
        return [schedule.record() for schedule in page.schedules]

    async def past_occurrences(
        self, schedule_ids: Sequence[UUID], *, each: int = 10, tenant: str | None = None
    ) -> list[PastOccurrence]:
        found: list[PastOccurrence] = []
        for first in range(0, len(schedule_ids), MOST_AT_ONCE):
            named = ",".join(map(str, schedule_ids[first:][:MOST_AT_ONCE]))
            query = {"schedule_id": named, "each": min(check_schedule_page(each), MOST_SHOWN)}
            page = await self._transport.get("/v1/occurrences", PastList, query, headers=tenant_header(tenant))
            found += [one.past() for one in page.occurrences]
        return found

    async def occurrences(
        self, schedule_id: UUID, *, limit: int = 50, before: datetime | None = None, tenant: str | None = None
    ) -> list[Occurrence]:
        check_occurrence_page(limit, before)
        path, headers = f"{_ALL}/{schedule_id}/occurrences", tenant_header(tenant)
        found: list[Occurrence] = []
        while len(found) < limit:
            wanted = min(limit - len(found), MOST_SHOWN)
            query = {"limit": wanted, "before": None if before is None else before.isoformat()}
            page = (await self._transport.get(path, OccurrenceList, query, headers=headers)).occurrences
            found += [each.record(schedule_id) for each in page]
            if len(page) < wanted:
                break
            before = page[-1].fire_at
        return found


def if_match(version: int) -> dict[str, str]:
    """Return the header that names the version that was seen."""
    return {"if-match": f'"{version}"'}
