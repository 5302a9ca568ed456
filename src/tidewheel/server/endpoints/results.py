"""What runs leave behind: results and lines."""

from typing import Annotated

import msgspec
from msgspec import Meta

from tidewheel.errors import Invalid, NotFound
from tidewheel.model.job import Job
from tidewheel.model.log import LogLine, LogStream
from tidewheel.model.outcome import own_location
from tidewheel.model.states import FINAL, State
from tidewheel.server.cursors import seal_pair, unseal_pair
from tidewheel.server.endpoint import Answer, Call, NoQuery
from tidewheel.server.endpoints.downloads import leave
from tidewheel.server.job_request import Instant
from tidewheel.server.names import id_in
from tidewheel.server.problems import RETRY_AFTER, Refused
from tidewheel.server.reading import bad_parameter, read_wait
from tidewheel.server.service import Service
from tidewheel.store.pages import fills_page


class LogQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which lines to return."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 200
    cursor: Annotated[str, Meta(max_length=200)] | None = None
    """The `next_cursor` of the page before."""
    after: Annotated[str, Meta(pattern=r"^[0-9]{1,18}\.[0-9]{1,18}$", description="`token.number`")] | None = None
    """Begin after this line instead."""
    last: bool = False
    """The last lines instead of the first; those before them come with `before`."""
    before: Annotated[str, Meta(pattern=r"^[0-9]{1,18}\.[0-9]{1,18}$", description="`token.number`")] | None = None
    """With `last`: end before this line."""


class LineDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A line that a run wrote."""

    token: int
    """Which run."""
    number: int
    """Which of its lines."""
    at: Instant
    stream: LogStream
    level: str | None
    text: str


class LinePage(msgspec.Struct, frozen=True, kw_only=True):
    """Lines, first to last: as many as were asked for, or those by which a page has a MiB."""

    lines: list[LineDocument]
    next_cursor: str | None


async def result(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Return the result of a job that succeeded, wherever it is kept."""
    wait = read_wait(call.headers)
    job = await service.ended(id_in(call), call.scope, wait, call.gone)
    headers = (("preference-applied", f"wait={wait}"),) if wait else ()
    _check_success(job)
    if job.result_location is None:
        return Answer(msgspec.json.encode(job.result), headers=headers)
    try:
        size, stream = await leave(service, _own_place(job), job.tenant)
    except (NotFound, Invalid):
        raise Refused("gone", f"the result of job {job.id} is no longer kept") from None
    return Answer(headers=(*headers, ("content-length", str(size))), stream=stream)


async def logs(service: Service, call: Call[None, LogQuery]) -> Answer:
    """Return lines that the runs of a job wrote."""
    job_id, query = id_in(call), call.query
    scope = f"logs/{job_id}"
    if query.last:
        before = _pair_of(query.before)
        lines = await service.views.ask(
            lambda store: store.last_logs(job_id, tenant=call.scope, before=before, limit=query.limit)
        )
        return Answer(LinePage(lines=[line_document(line) for line in lines], next_cursor=None))
    if query.before is not None:
        raise bad_parameter("before", "goes with last=true")
    after = unseal_pair(scope, query.cursor) or _pair_of(query.after)
    lines = await service.views.ask(lambda store: store.logs(job_id, tenant=call.scope, after=after, limit=query.limit))
    more = seal_pair(scope, (lines[-1].token, lines[-1].number)) if fills_page(lines, query.limit) else None
    return Answer(LinePage(lines=[line_document(line) for line in lines], next_cursor=more))


def _pair_of(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    token, _, number = text.partition(".")
    return int(token), int(number)


def line_document(line: LogLine) -> LineDocument:
    """Return the document of a line."""
    return LineDocument(
        token=line.token, number=line.number, at=line.at, stream=line.stream, level=line.level, text=line.text
    )


def _own_place(job: Job) -> str:
    """Return where the result of a job is; none but the place of its own run is read, whatever a record says."""
    if job.result_location is None or job.result_location != own_location(job.id, job.token):
        raise NotFound("blob", str(job.result_location))
    return job.result_location


def _check_success(job: Job) -> None:
    if job.state not in FINAL:
        retry = [("retry-after", str(RETRY_AFTER))]
        raise Refused("not-finished", f"job {job.id} is {job.state}", headers=retry)
    if job.state is not State.SUCCEEDED:
        why = f": {job.error.reason} {job.error.message}".rstrip() if job.error else ""
        raise Refused("no-result", f"job {job.id} is {job.state}{why}")
