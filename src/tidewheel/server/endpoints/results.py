"""What runs leave behind: results and lines."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from tidewheel.errors import Invalid, NotFound
from tidewheel.model.job import Job
from tidewheel.model.log import LogLine, LogStream
from tidewheel.model.states import FINAL, State
from tidewheel.server.cursors import seal_pair, unseal_pair
from tidewheel.server.endpoint import Answer, Call, NoQuery
from tidewheel.server.job_request import Instant
from tidewheel.server.names import id_in
from tidewheel.server.problems import RETRY_AFTER, Refused
from tidewheel.server.reading import bad_parameter, read_wait
from tidewheel.server.service import Service

PIECE: Final = 256 * 1024


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
    """Lines, first to last."""

    lines: list[LineDocument]
    next_cursor: str | None


async def result(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Return the result of a job that succeeded, wherever it is kept."""
    wait = read_wait(call.headers)
    job = await service.ended(id_in(call), call.scope, wait)
    headers = (("preference-applied", f"wait={wait}"),) if wait else ()
    _check_success(job)
    if job.result_location is None:
        return Answer(msgspec.json.encode(job.result), headers=headers)
    await service.large.acquire()
    try:
        content = await service.blobs.read_result(job.id, job.token, job.result_location)
    except (NotFound, Invalid):
        service.large.release()
        raise Refused("gone", f"the result of job {job.id} is no longer kept") from None
    except BaseException:
        service.large.release()
        raise
    return Answer(headers=(*headers, ("content-length", str(len(content)))), stream=Pieces(content, service))


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
    more = seal_pair(scope, (lines[-1].token, lines[-1].number)) if len(lines) == query.limit else None
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


class Pieces:
    """A large result on its way: it takes one of the few places for such until the last piece was sent."""

    def __init__(self, content: bytes, service: Service) -> None:
        self._content: bytes | None = content
        self._service = service
        self._sent = 0

    def __aiter__(self) -> "Pieces":
        return self

    async def __anext__(self) -> bytes:
        piece = b"" if self._content is None else self._content[self._sent : self._sent + PIECE]
        if not piece:
            raise StopAsyncIteration
        self._sent += len(piece)
        return piece

    async def aclose(self) -> None:
        if self._content is not None:
            self._content = None
            self._service.large.release()


def _check_success(job: Job) -> None:
    if job.state not in FINAL:
        retry = [("retry-after", str(RETRY_AFTER))]
        raise Refused("not-finished", f"job {job.id} is {job.state}", headers=retry)
    if job.state is not State.SUCCEEDED:
        why = f": {job.error.reason} {job.error.message}".rstrip() if job.error else ""
        raise Refused("no-result", f"job {job.id} is {job.state}{why}")
