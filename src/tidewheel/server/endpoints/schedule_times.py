"""When schedules fire: what is to come, what was, and making up for the past."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from msgspec import Meta

from tidewheel.errors import Invalid
from tidewheel.model.access import Action
from tidewheel.model.checks import check_instant
from tidewheel.model.priority import parse_priority
from tidewheel.model.schedule import Schedule
from tidewheel.server.cursors import bad_cursor, seal_pair, unseal_pair
from tidewheel.server.endpoint import Answer, Call, NoQuery
from tidewheel.server.endpoints.looking import PageQuery
from tidewheel.server.endpoints.schedules import ACCEPTED, OK, known, schedule_id_in
from tidewheel.server.filters import MOST_PER_PAGE
from tidewheel.server.job_request import Instant, duration_of
from tidewheel.server.preconditions import expected_version
from tidewheel.server.reading import bad_parameter, parameter
from tidewheel.server.recording import record
from tidewheel.server.room import room_for
from tidewheel.server.schedule_document import (
    OccurrenceDocument,
    OccurrencePage,
    PastList,
    PreviewList,
    occurrence_document,
    past_document,
    preview_document,
)
from tidewheel.server.schedule_request import BackfillRequest
from tidewheel.server.service import Service
from tidewheel.store.scheduling import Backfill, last_recorded
from tidewheel.triggers.backfilling import past_of
from tidewheel.triggers.preview import MOST_SHOWN, between_of, coming_of

MOST_AT_ONCE: Final = 50
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class PreviewQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many occurrences to show."""

    count: Annotated[int, Meta(ge=1, le=MOST_SHOWN)] = 10


class BetweenQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which occurrences to show: after one instant and not after another."""

    since: Instant
    until: Instant
    limit: Annotated[int, Meta(ge=1, le=MOST_SHOWN)] = MOST_SHOWN


class OccurrenceQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which part of the occurrences to return."""

    before: Instant | None = None
    """Begin with the last one before this instant instead."""


class PastQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of which schedules to tell, and how much."""

    schedule_id: Annotated[str, Meta(max_length=2000, description="The id of a schedule, or several by commas.")]
    each: Annotated[int, Meta(ge=1, le=MOST_PER_PAGE)] = 10
    """How many of each."""


class BackfillAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What runs, or would run."""

    occurrences: list[OccurrenceDocument]
    dry_run: bool


async def preview(service: Service, call: Call[None, PreviewQuery]) -> Answer:
    """Return the next occurrences of a schedule."""
    schedule = await known(service, call)
    last = await last_recorded(service.store, schedule)
    # A thread, for a rare pattern may take a while to find.
    found = await asyncio.to_thread(coming_of, schedule, service.clock.now(), call.query.count, last)
    return Answer(PreviewList(occurrences=[preview_document(each) for each in found]))


async def between(service: Service, call: Call[None, BetweenQuery]) -> Answer:
    """Return the occurrences of a schedule by its rule within some time."""
    schedule, query = await known(service, call), call.query
    since = parameter(partial(check_instant, "since", query.since))
    until = parameter(partial(check_instant, "until", query.until))
    if until <= since:
        raise bad_parameter("until", "must be after since")
    last, now = await last_recorded(service.store, schedule), service.clock.now()
    found = await asyncio.to_thread(between_of, schedule, since, until, query.limit, now=now, last=last)
    return Answer(PreviewList(occurrences=[preview_document(each) for each in found]))


async def backfill(service: Service, call: Call[BackfillRequest, NoQuery]) -> Answer:
    """Run what a schedule would have run and did not."""
    schedule, request = await known(service, call), call.body
    version = expected_version(call.headers, schedule.name, schedule.version) or schedule.version
    wish = Backfill(
        times=await _times(request, schedule, service.clock.now()),
        spacing=duration_of(request.every, "every"),
        priority=None if request.priority is None else parse_priority(request.priority),
        dry_run=request.dry_run,
    )
    async with room_for(service.quotas, schedule.tenant, 0 if wish.dry_run else len(wish.times)) as room:
        made = await service.store.backfill_schedule(schedule.id, wish, version=version, tenant=schedule.tenant)
        room.used = min(room.jobs, len(made))
    if not request.dry_run:
        told: dict[str, Any] = {
            "did": "backfill",
            "since": str(request.since or min(wish.times, default=None)),
            "until": str(request.until or max(wish.times, default=None)),
            "jobs": len(made),
        }
        await record(service, call, Action.SCHEDULES_WRITE, schedule.id, tenant=schedule.tenant, **told)
    documents = [occurrence_document(each) for each in made]
    status = OK if request.dry_run else ACCEPTED
    return Answer(BackfillAnswer(occurrences=documents, dry_run=request.dry_run), status)


async def _times(request: BackfillRequest, schedule: Schedule, now: datetime) -> Sequence[datetime]:
    """Return the occurrences that are wished for: those that are named, or all within some time."""
    if request.times is not None:
        if request.since is not None or request.until is not None:
            raise Invalid("times", "cannot be given together with since and until")
        return request.times
    if request.since is None or request.until is None:
        raise Invalid("until" if request.since else "since", "must be given, unless there are times")
    return await asyncio.to_thread(past_of, schedule, request.since, request.until, now)


async def past(service: Service, call: Call[None, PastQuery]) -> Answer:
    """Return the last occurrences of some schedules, and what became of them."""
    ids = parameter(partial(_ids_in, call.query.schedule_id))
    found = await service.views.ask(lambda store: store.past_occurrences(ids, each=call.query.each, tenant=call.scope))
    return Answer(PastList(occurrences=[past_document(one) for one in found]))


def _ids_in(text: str) -> list[UUID]:
    try:
        ids = [UUID(word.strip()) for word in text.split(",")]
    except ValueError:
        raise Invalid("schedule_id", "must be the ids of schedules, separated by commas") from None
    if len(ids) > MOST_AT_ONCE:
        raise Invalid("schedule_id", f"at most {MOST_AT_ONCE} schedules at once, not {len(ids)}")
    return ids


async def occurrences(service: Service, call: Call[None, OccurrenceQuery]) -> Answer:
    """Return what became of the occurrences of a schedule."""
    schedule_id, query = schedule_id_in(call), call.query
    scope = f"occurrences/{schedule_id}"
    place = unseal_pair(scope, query.cursor)
    before = _before(query) if place is None else _instant_of(place[0])
    found = await service.store.occurrences(schedule_id, limit=query.limit, before=before, tenant=call.scope)
    last = ((found[-1].fire_at - _EPOCH) // _MICROSECOND, 0) if len(found) == query.limit else None
    documents = [occurrence_document(each) for each in found]
    return Answer(OccurrencePage(occurrences=documents, next_cursor=None if last is None else seal_pair(scope, last)))


def _instant_of(microseconds: int) -> datetime:
    try:
        return check_instant("before", _EPOCH + microseconds * _MICROSECOND)
    except (OverflowError, Invalid):
        raise bad_cursor() from None


def _before(query: OccurrenceQuery) -> datetime | None:
    return None if query.before is None else parameter(partial(check_instant, "before", query.before))
