"""Schedules: made, changed, paused, triggered and removed."""

from collections.abc import Awaitable
from functools import partial
from typing import Annotated, Any, Final, TypeVar
from uuid import UUID

import msgspec
from msgspec import Meta

from tidewheel.errors import Invalid, NotFound, TooMany
from tidewheel.model.access import Action
from tidewheel.model.checks import check_name
from tidewheel.model.job import JobSpec
from tidewheel.model.schedule import Occurrence, Schedule, ScheduleSpec
from tidewheel.server.artifact_use import artifact_in, use_artifacts
from tidewheel.server.cursors import seal_id, unseal_id
from tidewheel.server.endpoint import Answer, Call, NoQuery
from tidewheel.server.filters import MOST_PER_PAGE, scope_of
from tidewheel.server.job_flaws import telling_all_of
from tidewheel.server.job_request import Name, one_key
from tidewheel.server.names import id_in
from tidewheel.server.preconditions import etag_of, expected_version, required_version
from tidewheel.server.reading import bad_parameter, parameter, read_key
from tidewheel.server.recording import record
from tidewheel.server.room import room_for
from tidewheel.server.schedule_document import SchedulePage, schedule_document, triggered_document
from tidewheel.server.schedule_request import (
    SchedulePatch,
    ScheduleRequest,
    TriggerRequest,
    patched,
    schedule_spec_of,
)
from tidewheel.server.service import Service
from tidewheel.tasks.builtin import check_call
from tidewheel.triggers import Cron, Interval
from tidewheel.triggers.planning import trigger_of

OK: Final = 200
CREATED: Final = 201
ACCEPTED: Final = 202
NO_CONTENT: Final = 204
T = TypeVar("T")


class ScheduleQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which schedules to list."""

    name: Name | None = None
    """Only the one of this name."""
    limit: Annotated[int, Meta(ge=1, le=MOST_PER_PAGE)] = 50
    cursor: Annotated[str, Meta(max_length=200)] | None = None
    """The `next_cursor` of the page before."""
    after: UUID | None = None
    """Begin after the schedule with this id instead."""
    coming: bool = False
    """Only the first of those that fire next, the next first; there is no page after that one."""


async def create(service: Service, call: Call[ScheduleRequest, NoQuery]) -> Answer:
    """Make a schedule."""
    with telling_all_of(call.body, call.tenant):
        return await _create(service, call)


async def _create(service: Service, call: Call[ScheduleRequest, NoQuery]) -> Answer:
    spec = schedule_spec_of(call.body, call.tenant)
    check_call(spec.kind, spec.args)
    await use_artifacts(service, [("args.artifact", artifact_in(spec.kind, spec.args))], call.tenant)
    schedule = await _told_by_rule(spec, service.store.create_schedule(spec))
    await _record(service, call, schedule, "create", name=schedule.name)
    return _answer(schedule, CREATED, ("location", f"/v1/schedules/{schedule.id}"))


async def find(service: Service, call: Call[None, ScheduleQuery]) -> Answer:
    """Return a page of schedules."""
    query, tenant = call.query, call.scope
    scope = scope_of("schedules", query)
    after = unseal_id(scope, query.cursor) or query.after
    if query.coming:
        return await _coming(service, call)
    if query.name is not None:
        name: str = parameter(partial(check_name, "name", query.name))
        found = await _named(service, name, call.tenant)
    else:
        found = await service.views.ask(lambda store: store.schedules(tenant=tenant, limit=query.limit, after=after))
    last = found[-1].id if query.name is None and len(found) == query.limit else None
    documents = [schedule_document(schedule) for schedule in found]
    return Answer(SchedulePage(schedules=documents, next_cursor=seal_id(scope, last)))


async def _coming(service: Service, call: Call[None, ScheduleQuery]) -> Answer:
    query = call.query
    if (query.name, query.cursor, query.after) != (None, None, None):
        raise bad_parameter("coming", "cannot be given together with name, cursor or after")
    found = await service.views.ask(lambda store: store.coming_schedules(tenant=call.tenant, limit=query.limit))
    return Answer(SchedulePage(schedules=[schedule_document(schedule) for schedule in found], next_cursor=None))


async def _named(service: Service, name: str, tenant: str) -> list[Schedule]:
    try:
        return [await service.store.find_schedule(name, tenant=tenant)]
    except NotFound:
        return []


async def get(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Return a schedule."""
    return _answer(await known(service, call))


async def put(service: Service, call: Call[ScheduleRequest, NoQuery]) -> Answer:
    """Give a schedule another definition."""
    schedule = await known(service, call)
    version = required_version(call.headers, schedule.name, schedule.version)
    with telling_all_of(call.body, schedule.tenant):
        return await _change(service, call, schedule_spec_of(call.body, schedule.tenant), version)


async def patch(service: Service, call: Call[SchedulePatch, NoQuery]) -> Answer:
    """Change some of the definition of a schedule."""
    schedule = await known(service, call)
    version = required_version(call.headers, schedule.name, schedule.version)
    return await _change(service, call, patched(schedule, call.body), version)


async def _change(service: Service, call: Call[Any, NoQuery], spec: ScheduleSpec, version: int) -> Answer:
    check_call(spec.kind, spec.args)
    await use_artifacts(service, [("args.artifact", artifact_in(spec.kind, spec.args))], spec.tenant)
    change = service.store.change_schedule(schedule_id_in(call), spec, version=version, tenant=spec.tenant)
    schedule = await _told_by_rule(spec, change)
    await _record(service, call, schedule, "change", name=schedule.name, version=schedule.version)
    return _answer(schedule)


async def pause(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Let a schedule fire no more, until it is resumed."""
    schedule = await service.store.pause_schedule(id_in(call, _WHAT), tenant=call.scope)
    await _record(service, call, schedule, "pause")
    return _answer(schedule)


async def resume(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Let a paused schedule fire again, from now on."""
    schedule = await service.store.resume_schedule(id_in(call, _WHAT), tenant=call.scope)
    await _record(service, call, schedule, "resume")
    return _answer(schedule)


async def trigger(service: Service, call: Call[TriggerRequest, NoQuery]) -> Answer:
    """Make a job of a schedule now."""
    schedule = await known(service, call)
    key = one_key(read_key(call.headers), call.body.idempotency_key)
    made, created = await _triggered(service, schedule, key)
    if created:
        await _record(service, call, schedule, "trigger", job=str(made.job_id))
    location = ("location", f"/v1/jobs/{made.job_id}")
    return Answer(triggered_document(made, created=created), ACCEPTED if created else OK, (location,))


async def _triggered(service: Service, schedule: Schedule, key: str | None) -> tuple[Occurrence, bool]:
    """Make a job within the bound of its tenant; a repeat of what was made is always answered."""
    try:
        async with room_for(service.quotas, schedule.tenant, 1) as room:
            made, created = await service.store.trigger_schedule(schedule.id, key=key, tenant=schedule.tenant)
            room.used = int(created)
            return made, created
    except TooMany:
        spec = JobSpec(kind=schedule.definition.kind, tenant=schedule.tenant, idempotency_key=key)
        if key is None or not (await service.store.seen_before([spec]))[0]:
            raise
        return await service.store.trigger_schedule(schedule.id, key=key, tenant=schedule.tenant)


async def delete(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Remove a schedule, and cancel those of its jobs that have not started."""
    schedule = await known(service, call)
    version = expected_version(call.headers, schedule.name, schedule.version)
    await service.store.delete_schedule(schedule.id, version=version, tenant=schedule.tenant)
    await _record(service, call, schedule, "delete")
    return Answer(None, NO_CONTENT)


async def known(service: Service, call: Call[object, object]) -> Schedule:
    """Return the schedule of the path."""
    return await service.store.get_schedule(schedule_id_in(call), tenant=call.scope)


def schedule_id_in(call: Call[object, object]) -> UUID:
    """Return the id in the path."""
    return id_in(call, _WHAT)


async def _record(service: Service, call: Call[Any, Any], schedule: Schedule, did: str, **detail: Any) -> None:
    await record(service, call, Action.SCHEDULES_WRITE, schedule.id, tenant=schedule.tenant, did=did, **detail)


async def _told_by_rule(spec: ScheduleSpec, done: Awaitable[T]) -> T:
    """Call a trigger that never fires by the field that a client knows it by."""
    try:
        return await done
    except Invalid as error:
        if error.field != "trigger":
            raise
        rule = trigger_of(spec).rule
        field = "cron" if isinstance(rule, Cron) else "every" if isinstance(rule, Interval) else "at"
        raise Invalid(field, error.why) from None


def _answer(schedule: Schedule, status: int = OK, *headers: tuple[str, str]) -> Answer:
    return Answer(schedule_document(schedule), status, (etag_of(schedule.version), *headers))


_WHAT: Final = "schedule"
