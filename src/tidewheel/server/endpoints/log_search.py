"""Searching the lines of all runs, and following them as they are stored."""

from collections.abc import AsyncGenerator
from functools import partial
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from msgspec import Meta

from tidewheel.errors import Invalid
from tidewheel.model.checks import FIRST_INSTANT, LAST_INSTANT
from tidewheel.model.log import LogStream
from tidewheel.model.log_place import PLACE_SIZE, key_in, key_of, place_of
from tidewheel.model.log_query import MAX_QUERY, FoundLine, LogFilter, LogKey, LogSearch
from tidewheel.model.log_words import fields_of
from tidewheel.server.cursors import bad_cursor, seal, unseal
from tidewheel.server.endpoint import EVENTS, Answer, Call
from tidewheel.server.endpoints.events import FIRST_PAUSE, KEEP_ALIVE, LONGEST_PAUSE
from tidewheel.server.filters import MOST_PER_PAGE, scope_of
from tidewheel.server.job_request import Instant, Name
from tidewheel.server.problems import Flaw, Refused
from tidewheel.server.reading import bad_parameter, parameter
from tidewheel.server.service import Service
from tidewheel.store.log_following import Follower, follow

_GROWTH: Final = 1.5
_MOST_SIGHT: Final = 4000

SightText = Annotated[str, Meta(min_length=1, max_length=_MOST_SIGHT, pattern="^[0-9.:,]*$")]


class LogConditions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which lines; all conditions must hold."""

    q: Annotated[
        str,
        Meta(max_length=MAX_QUERY, description='Words, `"a phrase"`, `begin*`, `-without`, `field:value`.'),
    ] = ""
    kind: Name | None = None
    queue: Name | None = None
    job_id: UUID | None = None
    level: Annotated[str, Meta(max_length=40, description="This level, or one of more weight.")] | None = None
    stream: LogStream | None = None
    stored_after: Instant | None = None
    """Stored at this instant or later."""
    stored_before: Instant | None = None


class LogSearchQuery(LogConditions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which lines to find, and how many."""

    limit: Annotated[int, Meta(ge=1, le=MOST_PER_PAGE)] = 50
    cursor: Annotated[str, Meta(max_length=200)] | None = None
    """The `next_cursor` of the page before."""
    after: Annotated[str, Meta(pattern=f"^[0-9a-f]{{{2 * PLACE_SIZE}}}$")] | None = None
    """Begin after the line with this place instead: a `next_after`, or the id of an event of `/v1/logs/tail`."""
    oldest_first: bool = False
    unseen_at: SightText | None = None
    """Only lines that could not be seen when the answer with this `sight` was given; with `oldest_first`."""
    seen_at: SightText | None = None
    """Only lines that could be seen when the answer with this `sight` was given."""


class MarkDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Where something was found: the first character, and the one after the last."""

    start: int
    end: int


class FoundDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A line that was found."""

    job_id: UUID
    tenant: str
    queue: str
    kind: str
    token: int
    """Which run."""
    number: int
    """Which of its lines."""
    at: Instant
    """When it was written, by the clock of the host that ran the job."""
    stored_at: Instant
    stream: LogStream
    level: str | None
    text: str
    fields: dict[str, Any]
    """Those of a line that is a JSON object."""
    excerpt: str
    """The part of the text around what was found."""
    marks: list[MarkDocument]
    """Where in the excerpt that is."""


class FoundPage(msgspec.Struct, frozen=True, kw_only=True):
    """Lines that were found, newest first. A page may be short, even empty, while there is a next one."""

    lines: list[FoundDocument]
    next_cursor: str | None
    next_after: str | None
    """The same as a place, for `after`."""
    sight: str
    """What could be seen, for `unseen_at`: a line may be seen later than others that were stored after it."""


async def search(service: Service, call: Call[None, LogSearchQuery]) -> Answer:
    """Return a page of lines."""
    query = call.query
    asked = _asked(call)
    scope = scope_of("logs", query)
    after = _after_of(query) if query.cursor is None else _sealed(scope, query.cursor)
    newest_first = not query.oldest_first
    try:
        page = await service.store.search_logs(
            asked.where,
            limit=query.limit,
            after=after,
            newest_first=newest_first,
            unseen_at=query.unseen_at,
            seen_at=query.seen_at,
        )
    except Invalid as error:
        raise bad_parameter(error.field, error.why) from None
    place = None if page.next is None else place_of(page.next)
    answer = FoundPage(
        lines=[_document(found, asked) for found in page.lines],
        next_cursor=None if place is None else seal(scope, place),
        next_after=None if place is None else place.hex(),
        sight=page.sight,
    )
    return Answer(answer)


async def tail(service: Service, call: Call[None, LogConditions]) -> Answer:
    """Tell of lines as they are stored, from now on or from where the client was."""
    asked = _asked(call)
    sent = call.headers.get("last-event-id")
    follower = await follow(service.store, asked.where, after=None if sent is None else _place_of(sent))
    headers = (("cache-control", "no-store"), ("x-accel-buffering", "no"))
    return Answer(headers=headers, media_type=EVENTS, stream=_events(service, call, asked, follower))


async def _events(
    service: Service, call: Call[Any, Any], asked: LogSearch, follower: Follower
) -> AsyncGenerator[bytes, None]:
    pause, quiet = FIRST_PAUSE, 0.0
    yield b": hello\n\n"
    while not service.stopping.is_set():
        lines = await follower.news()
        for found in lines:
            event = msgspec.json.encode(_document(found, asked))
            yield b"event: log\nid: %b\ndata: %b\n\n" % (place_of(found.key).hex().encode(), event)
        pause = FIRST_PAUSE if lines else min(pause * _GROWTH, LONGEST_PAUSE)
        quiet = 0.0 if lines else quiet + pause
        if quiet >= KEEP_ALIVE:
            yield b": still here\n\n"
            quiet = 0.0
        if not lines:
            await service.pause(pause)
        await call.recheck()


def _asked(call: Call[None, LogConditions]) -> LogSearch:
    query = call.query
    where = LogFilter(
        text=query.q,
        tenant=call.scope,
        kind=query.kind,
        queue=query.queue,
        job_id=query.job_id,
        level=query.level,
        stream=query.stream,
        since=query.stored_after,
        before=query.stored_before,
    )
    search: LogSearch = parameter(partial(LogSearch, where))
    return search


def _document(found: FoundLine, asked: LogSearch) -> FoundDocument:
    line, excerpt = found.line, asked.excerpt(found.line.text)
    return FoundDocument(
        job_id=line.job_id,
        tenant=found.tenant,
        queue=found.queue,
        kind=found.kind,
        token=line.token,
        number=line.number,
        at=line.at,
        stored_at=found.stored_at,
        stream=line.stream,
        level=line.level,
        text=line.text,
        fields=fields_of(line.text),
        excerpt=excerpt.text,
        marks=[MarkDocument(start=start, end=end) for start, end in excerpt.marks],
    )


def _after_of(query: LogSearchQuery) -> LogKey | None:
    if query.after is None:
        return None
    key = key_in(query.after)
    if key is None or not _may_be(key):
        raise bad_parameter("after", "is no place of a line")
    return key


def _sealed(scope: str, cursor: str) -> LogKey:
    key = key_of(unseal(scope, cursor, PLACE_SIZE))
    if key is None or not _may_be(key):
        raise bad_cursor()
    return key


def _place_of(sent: str) -> LogKey:
    key = key_in(sent)
    if key is not None and _may_be(key):
        return key
    flaw = Flaw(detail="is none that this stream gave out", header="Last-Event-ID")
    raise Refused("bad-header", f"Last-Event-ID {flaw.detail}", flaws=[flaw])


def _may_be(key: LogKey) -> bool:
    """Tell whether something may have been stored there: one must be able to look a little before and after it."""
    return FIRST_INSTANT <= key.stored_at < LAST_INSTANT
