"""The application: one path that every request takes, whatever its endpoint.

Find the endpoint, recognise who asks, see whether they may, read query and body, run the handler, send the answer.
Whatever goes wrong on the way becomes a problem document; only what nobody foresaw is a 500, and it is logged.
"""

import asyncio
import functools
import logging
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace
from starlette.routing import compile_path
from starlette.types import Receive, Scope, Send

from tidewheel.errors import TideError
from tidewheel.model.problem import CODES, Code
from tidewheel.model.trace import trace_of
from tidewheel.observe.own_log import note
from tidewheel.server.access import Door, token_of
from tidewheel.server.dashboard import Dashboard, request_of
from tidewheel.server.docs_page import docs_of
from tidewheel.server.endpoint import Answer, Call, Endpoint, RequestHeader, Stream
from tidewheel.server.entrance import admit
from tidewheel.server.guests import Guests, Ticket
from tidewheel.server.incoming import ClientGone, Incoming
from tidewheel.server.openapi import openapi_of
from tidewheel.server.outgoing import PIECE, content_of, encode, next_of, pieces_of, start_of, until_gone
from tidewheel.server.problems import MEDIA_TYPE, RETRY_AFTER, Refused, problem_of, refusal_of
from tidewheel.server.reading import (
    MOST_VALUES,
    NDJSON,
    check_amount,
    check_media_type,
    convert,
    decode_json,
    decode_lines,
    read_query,
    read_wait,
    values_of,
)
from tidewheel.server.service import Service
from tidewheel.server.table import ENDPOINTS

BODY_WITHIN: Final = 30.0
"""Seconds for a client to send a body."""
SEND_WITHIN: Final = 30.0
"""Seconds for a client to take a piece of an answer."""
PAGE_WITHIN: Final = 90.0
"""Seconds for a page, or for what a form asks for."""
MOST_FORM: Final = 256 * 1024
MOST_LINES: Final = 10_000
MOST_STREAMS: Final = 5_000
MOST_HELD: Final = 256 * 1024 * 1024
"""Bytes of bodies in memory at once, of all requests together, as they came and as what was read of them."""
VALUE: Final = 64
"""Bytes that a value takes in memory at least, beyond those of its text."""
MOST_OUTGOING: Final = 256 * 1024 * 1024
"""Bytes of answers in memory that clients have not taken yet."""
_request_id = re.compile(r"[\w.:-]{1,100}", re.ASCII).fullmatch
_NAME: Final = "tidewheel.endpoint"
"""Where the name of the endpoint is noted, for those who count."""
_SHOWN: Final = "tidewheel.shown"
"""Where the path is noted that may be written into a log, if that is not the path itself."""
_random = random.Random()  # noqa: S311 - tells requests apart, guards nothing
_log = logging.getLogger(__name__)
_access = logging.getLogger("tidewheel.access")


class Found(NamedTuple):
    """What a path leads to."""

    methods: Mapping[str, Endpoint]
    variables: Mapping[str, str]


class Load:
    """How many bytes of memory one request counts for."""

    def __init__(self) -> None:
        self.size = 0


class App:
    """An ASGI application."""

    def __init__(
        self, service: Service, door: Door, endpoints: Sequence[Endpoint], dashboard: Dashboard | None = None
    ) -> None:
        self._dashboard = dashboard
        self._service = service
        self._door = door
        self._guests = Guests(door, service.clock)
        self._plain: dict[str, dict[str, Endpoint]] = {}
        self._patterns: list[tuple[re.Pattern[str], dict[str, Endpoint]]] = []
        self._streams = 0
        self._held = 0
        self._outgoing = 0
        for path in dict.fromkeys(endpoint.path for endpoint in endpoints):
            methods = {endpoint.method: endpoint for endpoint in endpoints if endpoint.path == path}
            if "{" in path:
                self._patterns.append((compile_path(path)[0], methods))
            else:
                self._plain[path] = methods

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        given = headers.get("x-request-id", "")
        request_id = given if given and _request_id(given) else f"{_random.getrandbits(96):024x}"
        service = self._service
        began = service.clock.monotonic()
        service.under_way += 1
        note(request_id=request_id, **_trace_in(headers))
        try:
            answer = await self._answer(scope, receive, headers, request_id)
            seconds = service.clock.monotonic() - began
            service.metrics.answered(scope.get(_NAME, "none"), answer.status, seconds)
            _log_access(scope, answer.status, seconds)
            await self._send(scope, receive, send, answer, request_id)
        except ClientGone:
            return
        finally:
            service.under_way -= 1

    async def _answer(self, scope: Scope, receive: Receive, headers: Mapping[str, str], request_id: str) -> Answer:
        path, fields = scope["path"], list[tuple[str, str]]()
        try:
            answer = await self._handle(scope, receive, headers, fields)
            content = None if answer.body is None else content_of(answer.body)
            self._check_outgoing(scope["method"], content or b"")
            return replace(answer, body=content, headers=(*answer.headers, *fields))
        except TideError as error:
            if (refused := refusal_of(error)) is not None:
                return _refusal(refused, path, request_id, fields)
            _log.exception("request %s: %s %s failed", request_id, scope["method"], _shown(scope))
        except ClientGone:
            raise
        except Exception:  # noqa: BLE001 - a client gets an answer, whatever happens
            _log.exception("request %s: %s %s failed", request_id, scope["method"], _shown(scope))
        return _refusal(Refused("internal", CODES["internal"].advice), path, request_id)

    async def _handle(
        self, scope: Scope, receive: Receive, headers: Mapping[str, str], fields: list[tuple[str, str]]
    ) -> Answer:
        """Return the answer; what it says besides, good or bad, comes into the fields."""
        if self._dashboard is not None and self._dashboard.serves(scope["path"]):
            answer = await self._page(self._dashboard, scope, receive, headers)
        else:
            answer = await self._call(scope, receive, headers, fields)
        if answer.stream is not None and self._streams >= MOST_STREAMS:
            await answer.stream.aclose()
            raise _overloaded("too many streams at once")
        return answer

    async def _page(self, dashboard: Dashboard, scope: Scope, receive: Receive, headers: Mapping[str, str]) -> Answer:
        load, form = Load(), b""
        try:
            async with asyncio.timeout(PAGE_WITHIN):
                if scope["method"] == "POST":
                    form = await self._read(headers, receive, MOST_FORM, load)
                return await dashboard.answer(request_of(scope, headers, form))
        except TimeoutError:
            raise Refused("outcome-unknown" if form else "unavailable", "it took too long") from None
        finally:
            self._held -= load.size

    async def _call(
        self, scope: Scope, receive: Receive, headers: Mapping[str, str], fields: list[tuple[str, str]]
    ) -> Answer:
        found = self._find(scope["path"])
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        endpoint = found.methods.get(method)
        if endpoint is None:
            allowed = ", ".join(found.methods)
            raise Refused("method-not-allowed", f"there are: {allowed}", headers=[("allow", allowed)])
        scope[_NAME] = endpoint.name
        if "{grant}" in endpoint.path:
            scope[_SHOWN] = endpoint.path  # whoever has a grant may use it, also one who reads it in a log
        ticket = Ticket(token_of(headers.get("authorization")), (scope.get("client") or ("",))[0])
        who = await admit(self._door, headers, ticket, endpoint, fields)
        note(tenant=who.tenant, **_job_in(endpoint, found.variables))
        recheck = functools.partial(self._door.recheck, *ticket)
        query = read_query(scope["query_string"], endpoint.query) if scope["query_string"] else endpoint.query()
        call: Call[Any, Any] = Call(*who, found.variables, query, None, headers, recheck)
        answer = await self._run(endpoint, call, receive, ticket)
        return answer if answer.stream is None else answer.taken_by(ticket)

    async def _run(self, endpoint: Endpoint, call: Call[Any, Any], receive: Receive, ticket: Ticket) -> Answer:
        """Read the body and run the handler, each in its time."""
        wait = read_wait(call.headers) if RequestHeader.PREFER in endpoint.headers else 0
        seconds = endpoint.seconds + wait
        code: Code = "unavailable" if endpoint.method == "GET" else "outcome-unknown"
        if endpoint.raw:
            call = replace(call, body=Incoming(receive, endpoint.most_body))
        reads, load = endpoint.body is not None and not endpoint.raw, Load()
        try:
            # One timer for both, for it costs as much as all the rest of reading a small body.
            async with asyncio.timeout(BODY_WITHIN if reads else seconds) as limit:
                if reads:
                    told, code = code, "too-slow"
                    call = replace(call, body=await self._body(endpoint, call.headers, receive, load))
                    code = told
                    if seconds != BODY_WITHIN:
                        limit.reschedule(asyncio.get_running_loop().time() + seconds)
                if wait:
                    return await self._wait_with(endpoint, call, receive, ticket)
                return await endpoint.handler(self._service, call)
        except TimeoutError:
            again = [("retry-after", str(RETRY_AFTER))]
            raise Refused(code, "it took too long", headers=again) from None
        finally:
            self._held -= load.size

    async def _wait_with(self, endpoint: Endpoint, call: Call[Any, Any], receive: Receive, ticket: Ticket) -> Answer:
        """Run a handler that may wait; it is told when nobody waits with it any more, or nobody who may."""
        gone = asyncio.ensure_future(until_gone(receive))
        try:
            with self._guests.staying(ticket, gone.cancel):
                return await endpoint.handler(self._service, replace(call, gone=gone))
        finally:
            if gone.cancelled():  # whatever the answer is, it is not for one who has to leave
                await call.recheck()
            gone.cancel()

    async def _body(self, endpoint: Endpoint, headers: Mapping[str, str], receive: Receive, load: Load) -> Any:
        raw = await self._read(headers, receive, endpoint.most_body, load)
        if not raw and endpoint.body_optional:
            return endpoint.body()
        media = check_media_type(headers, endpoint.media_types)
        check_amount(raw, MOST_LINES if media == NDJSON else None)
        self._hold(load, VALUE * min(values_of(raw), MOST_VALUES))
        value = decode_lines(raw, MOST_LINES) if media == NDJSON else decode_json(raw)
        if isinstance(value, list) and len(value) > MOST_LINES:
            raise Refused("too-large", f"at most {MOST_LINES} at once, not {len(value)}")
        return convert(value, endpoint.body)

    def _hold(self, load: Load, size: int) -> None:
        """Count what a request takes, as long as it does, and refuse what is too much with all others."""
        load.size += size
        self._held += size
        if self._held > MOST_HELD:
            raise _overloaded("too much is sent at once")

    async def _read(self, headers: Mapping[str, str], receive: Receive, most: int, load: Load) -> bytes:
        """Return a body, and refuse one that is too large before it is in memory."""
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > most:
            raise Refused("too-large", f"at most {most} bytes, not {length}")
        parts: list[bytes] = []
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            parts.append(part := message.get("body", b""))
            more = message.get("more_body", False)
            self._hold(load, len(part))
            if load.size > most:
                raise Refused("too-large", f"at most {most} bytes")
        return b"".join(parts)

    def _find(self, path: str) -> Found:
        if (methods := self._plain.get(path)) is not None:
            return Found(methods, {})
        for pattern, methods in self._patterns:
            if found := pattern.match(path):
                return Found(methods, found.groupdict())
        raise Refused("not-found", f"there is nothing at {path[:200]!r}")

    # Answers

    def _check_outgoing(self, method: str, content: bytes) -> None:
        """Refuse to answer with much while others take nothing of as much; who changed something is always told."""
        if method == "GET" and self._outgoing + len(content) > MOST_OUTGOING:
            raise _overloaded("too much is on its way to others who do not take it")

    async def _send(self, scope: Scope, receive: Receive, send: Send, answer: Answer, request_id: str) -> None:
        if self._service.stopping.is_set():
            answer = replace(answer, headers=(*answer.headers, ("connection", "close")))
        if answer.stream is not None and scope["method"] == "HEAD":
            await answer.stream.aclose()
        elif answer.stream is not None:
            return await self._send_stream(answer, answer.stream, receive, send, request_id)
        content: bytes = answer.body or b""
        await send(start_of(answer, request_id, len(content)))
        if scope["method"] == "HEAD" or len(content) <= PIECE:
            return await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else content})
        return await self._send_large(content, send)

    async def _send_large(self, content: bytes, send: Send) -> None:
        """Send piece by piece, for what was handed over once cannot be taken back from one who does not read."""
        self._outgoing += len(content)
        try:
            for message in pieces_of(content):
                async with asyncio.timeout(SEND_WITHIN):
                    await send(message)
        except TimeoutError:
            _log.info("the client takes nothing any more")
        finally:
            self._outgoing -= len(content)

    async def _send_stream(self, answer: Answer, stream: Stream, receive: Receive, send: Send, request_id: str) -> None:
        """Send piece by piece, until the end, or until the client is gone or takes nothing any more."""
        gone = asyncio.ensure_future(until_gone(receive))
        self._streams += 1
        try:
            await send(start_of(answer, request_id, None))
            with self._guests.staying(answer.ticket, gone.cancel):
                while (piece := await next_of(stream, gone)) is not None:
                    async with asyncio.timeout(SEND_WITHIN):
                        await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except TimeoutError:
            _log.info("the client takes nothing any more")
        except TideError as error:
            _log.warning("the stream ends early: %s", error)
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._streams -= 1
            gone.cancel()
            await stream.aclose()


def _trace_in(headers: Mapping[str, str]) -> dict[str, str]:
    """Return in which trace a request came, for a log."""
    trace = trace_of(headers["traceparent"]) if "traceparent" in headers else None
    return {} if trace is None else {"trace_id": trace.trace_id}


def _job_in(endpoint: Endpoint, variables: Mapping[str, str]) -> dict[str, str]:
    """Return which job a request is about, for a log."""
    return {"job_id": str(variables["id"])} if endpoint.path.startswith("/v1/jobs/{id}") else {}


def _log_access(scope: Scope, status: int, seconds: float) -> None:
    """Write a line about a request: what went wrong here for all to see, what was refused for the curious.

    The query is left out, for signed addresses have their signature there.
    """
    level = logging.DEBUG if status < 400 else logging.INFO if status < 500 else logging.WARNING  # noqa: PLR2004
    if _access.isEnabledFor(level):
        about = {"endpoint": scope.get(_NAME, "none"), "status": status, "seconds": round(seconds, 6)}
        _access.log(level, "%s %s", scope["method"], _shown(scope), extra=about)


def _shown(scope: Scope) -> str:
    """Return the path of a request, for a log."""
    path: str = scope.get(_SHOWN, scope["path"])
    return path


def build_app(service: Service, door: Door, *, behind_tls: bool = False) -> App:
    """Return the application of a service, behind its door, and maybe behind a proxy that speaks HTTPS."""
    service.pages = _pages
    return App(service, door, ENDPOINTS, Dashboard(service, door, behind_tls=behind_tls))


@functools.cache
def _pages() -> Mapping[str, bytes]:
    """Make the documents when the first one asks, for that takes a while."""
    document = openapi_of(ENDPOINTS)
    return {"openapi": encode(document), "docs": docs_of(document).encode()}


def _refusal(refused: Refused, path: str, request_id: str, fields: Sequence[tuple[str, str]] = ()) -> Answer:
    problem = problem_of(refused, path, request_id)
    return Answer(encode(problem), problem.status, (*refused.headers, *fields), MEDIA_TYPE)


def _overloaded(why: str) -> Refused:
    return Refused("overloaded", why, headers=[("retry-after", str(RETRY_AFTER))])
