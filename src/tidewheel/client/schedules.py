"""The calls of the client that are about schedules."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Final, Unpack
from uuid import UUID, uuid4

import msgspec

from tidewheel.client.options import Duration, PriorityName, plain
from tidewheel.client.schedule_options import Change, Definition, definition_of
from tidewheel.model.schedule import Occurrence, Schedule
from tidewheel.store.remote.schedule_documents import (
    OccurrenceDocument,
    OccurrenceList,
    ScheduleDocument,
    SchedulePage,
)
from tidewheel.store.remote.schedules import if_match
from tidewheel.store.remote.transport import NOTHING, Transport, read

PAGE: Final = 200
_ALL: Final = "/v1/schedules"


class Coming(msgspec.Struct, frozen=True):
    """An occurrence that is to come."""

    fire_at: datetime
    local: datetime
    """The same in the zone of the schedule."""
    change: str | None
    """Whether wall time is skipped (`gap`) or repeated (`fold`) on its day."""
    note: str
    """What that means for it, in words."""


class ComingList(msgspec.Struct, frozen=True):
    """Occurrences, first to last."""

    occurrences: list[Coming]


class ScheduleCalls:
    """A part of `AsyncClient`."""

    _transport: Transport

    async def create_schedule(self, name: str, kind: str, **definition: Unpack[Definition]) -> Schedule:
        """Make a schedule: `cron`, `every` or `at` says when. Raises Invalid and NameTaken."""
        body = definition_of(definition) | {"name": name, "kind": kind}
        return (await self._transport.post(_ALL, body, ScheduleDocument, safe=False)).record()

    async def schedule(self, schedule_id: UUID) -> Schedule:
        """Return a schedule. Raises NotFound."""
        return (await self._transport.get(f"{_ALL}/{schedule_id}", ScheduleDocument)).record()

    async def schedules(self, *, name: str | None = None) -> AsyncIterator[Schedule]:
        """Return all schedules, oldest first, or the one of a name."""
        query: dict[str, Any] = {"limit": PAGE, "name": name}
        while True:
            page = await self._transport.get(_ALL, SchedulePage, query)
            for schedule in page.schedules:
                yield schedule.record()
            if page.next_cursor is None:
                return
            query["cursor"] = page.next_cursor

    async def change_schedule(self, schedule_id: UUID, *, version: int, **change: Unpack[Change]) -> Schedule:
        """Change some of a schedule, if it is still at that version; `cron`, `every` and `at` bring all bounds.

        Raises Invalid, NotFound, NameTaken, and StaleVersion if someone was faster.
        """
        path, body = f"{_ALL}/{schedule_id}", definition_of(change)
        content = await self._transport.write("PATCH", path, body, safe=False, headers=if_match(version))
        return read(content, ScheduleDocument).record()

    async def pause_schedule(self, schedule_id: UUID) -> Schedule:
        """Let a schedule fire no more, until it is resumed."""
        return (await self._transport.post(f"{_ALL}/{schedule_id}/pause", None, ScheduleDocument, safe=True)).record()

    async def resume_schedule(self, schedule_id: UUID) -> Schedule:
        """Let a paused schedule fire again, from now on."""
        return (await self._transport.post(f"{_ALL}/{schedule_id}/resume", None, ScheduleDocument, safe=True)).record()

    async def trigger_schedule(self, schedule_id: UUID, *, key: str | None = None) -> Occurrence:
        """Make a job of a schedule now, also of a paused one; the same key twice makes one job.

        Sent again after a failure it makes no second job. Raises NotFound and KeyReused.
        """
        path, body = f"{_ALL}/{schedule_id}/trigger", {"idempotency_key": key or str(uuid4())}
        return (await self._transport.post(path, body, OccurrenceDocument, safe=True)).record(schedule_id)

    async def delete_schedule(self, schedule_id: UUID, *, version: int | None = None) -> None:
        """Remove a schedule, and cancel its jobs that have not started. Raises NotFound and StaleVersion."""
        headers = NOTHING if version is None else if_match(version)
        await self._transport.write("DELETE", f"{_ALL}/{schedule_id}", safe=False, headers=headers)

    async def preview_schedule(self, schedule_id: UUID, count: int = 10) -> list[Coming]:
        """Return the next occurrences of a schedule, with a note on days on which clocks are set."""
        found = await self._transport.get(f"{_ALL}/{schedule_id}/preview", ComingList, {"count": count})
        return found.occurrences

    async def backfill_schedule(
        self,
        schedule_id: UUID,
        since: datetime,
        until: datetime,
        *,
        every: Duration = 0.0,
        priority: PriorityName | None = None,
        dry_run: bool = False,
    ) -> list[Occurrence]:
        """Run what a schedule would have run after one instant and not after another, and did not; return what.

        The jobs are `every` apart. With `dry_run` it is only told.
        """
        body = {"since": since, "until": until, "every": plain(every), "priority": priority, "dry_run": dry_run}
        path = f"{_ALL}/{schedule_id}/backfill"
        made = await self._transport.post(path, body, OccurrenceList, safe=dry_run)
        return [each.record(schedule_id) for each in made.occurrences]
