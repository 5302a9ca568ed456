"""Requests to a server: kept connections, a key, and errors as a store raises them."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlsplit

import httpx
import msgspec

from tidewheel.clock import Clock
from tidewheel.errors import Invalid, OutcomeUnknown, TideError, Unavailable
from tidewheel.model.checks import check_name
from tidewheel.store.remote.problems import error_of

T = TypeVar("T")

CONNECT_WITHIN: Final = 5.0
ANSWER_WITHIN: Final = 100.0
"""Longer than any server takes: it says by itself that it took too long."""
KEEP_IDLE: Final = 10.0
"""Seconds that a connection is kept unused; servers keep them for longer, so none is used that they have closed."""
AT_ONCE: Final = 100
TRIES: Final = 3
FIRST_PAUSE: Final = 0.05
NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
ALL_TENANTS: Final = "*"
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_BAD: Final = 400
_LATER: Final = (429, 503)
_encode: Final = msgspec.json.Encoder().encode


class Place(msgspec.Struct, frozen=True):
    """A server, and who one is there."""

    url: str
    key: str | None = None


class Transport:
    """Sends requests to one server."""

    def __init__(self, place: Place, clock: Clock, *, patience: float = 0.0) -> None:
        self._clock = clock
        self._patience = patience
        """For how many seconds one call comes again when the server says so; workers have a patience of their own."""
        headers = {"user-agent": "tidewheel"}
        if place.key is not None:
            headers["authorization"] = f"Bearer {place.key}"
        self.client = httpx.AsyncClient(
            base_url=checked_url(place.url),
            headers=headers,
            timeout=httpx.Timeout(ANSWER_WITHIN, connect=CONNECT_WITHIN),
            limits=httpx.Limits(max_connections=AT_ONCE, keepalive_expiry=KEEP_IDLE),
            verify=urlsplit(place.url).scheme == "https",  # reading all certificates takes its time
        )

    async def close(self) -> None:
        """Let go of all connections."""
        await self.client.aclose()

    async def get(
        self,
        path: str,
        kind: type[T],
        query: Mapping[str, Any] = NOTHING,
        *,
        headers: Mapping[str, str] = NOTHING,
        patience: float | None = None,
    ) -> T:
        """Fetch something; what is None in the query is left out. `patience` is for callers with a deadline."""
        given = {name: value for name, value in query.items() if value is not None}
        try:
            request = self.client.build_request("GET", path, headers=headers, params=given)
        except UnicodeError:
            raise Invalid("query", "must not contain half of a surrogate pair") from None
        return read(await self.send(request, safe=True, patience=patience), kind)

    async def post(self, path: str, body: Any, kind: type[T], *, safe: bool, headers: Mapping[str, str] = NOTHING) -> T:
        """Do something; `safe` says whether it may be sent twice."""
        return read(await self.write("POST", path, body, safe=safe, headers=headers), kind)

    async def write(
        self, method: str, path: str, body: Any = None, *, safe: bool, headers: Mapping[str, str] = NOTHING
    ) -> bytes:
        """Do something and return what is answered."""
        if body is None:
            request = self.client.build_request(method, path, headers=headers)
        else:
            typed = {**headers, "content-type": "application/json"}
            request = self.client.build_request(method, path, headers=typed, content=_bytes(body))
        return await self.send(request, safe=safe)

    async def send(self, request: httpx.Request, *, safe: bool, patience: float | None = None) -> bytes:
        """Send a request, again if it may be sent again, and return what is answered.

        A server that names a time is not asked before that has passed; if that is later than one would wait, its
        answer is raised at once.
        """
        pause, left_to_wait = FIRST_PAUSE, self._patience if patience is None else patience
        for left in reversed(range(TRIES)):
            answer = await self._try(request)
            if isinstance(answer, httpx.Response) and answer.status_code < _BAD:
                return answer.content
            error, again = self._judge(request, answer, safe=safe)
            if not left or again is None or again > left_to_wait:
                raise error
            left_to_wait -= again
            await self._clock.sleep(max(pause, again))
            pause = 2 * pause
        raise AssertionError

    async def _try(self, request: httpx.Request) -> httpx.Response | httpx.TransportError:
        try:
            return await self.client.send(request)
        except httpx.TransportError as error:
            return error
        except RuntimeError as error:  # the client was closed
            raise Unavailable(str(error)) from error

    def _judge(
        self, request: httpx.Request, answer: httpx.Response | httpx.TransportError, *, safe: bool
    ) -> tuple[TideError, float | None]:
        """Return the error that an answer stands for, and after how long the request may be sent again, if ever."""
        if isinstance(answer, httpx.TransportError):
            return _fault(request, answer), 0 if safe or isinstance(answer, NOT_SENT) else None
        wait = _retry_after(answer)
        error = error_of(answer.status_code, answer.content, wait)
        may = self._patience and answer.status_code in _LATER and (safe or not isinstance(error, OutcomeUnknown))
        return error, wait if may else None

    @asynccontextmanager
    async def stream(
        self, path: str, *, silence: float, headers: Mapping[str, str] = NOTHING
    ) -> AsyncIterator[httpx.Response]:
        """Open a long answer; `silence` are the seconds without a word after which it counts as lost."""
        timeout = httpx.Timeout(silence, connect=CONNECT_WITHIN)
        request = self.client.build_request("GET", path, headers=headers, timeout=timeout)
        try:
            answer = await self.client.send(request, stream=True)
        except httpx.TransportError as error:
            raise _fault(request, error) from error
        try:
            if answer.status_code >= _BAD:
                raise error_of(answer.status_code, await answer.aread(), _retry_after(answer))
            yield answer
        except httpx.TransportError as error:
            raise _fault(request, error) from error
        finally:
            await answer.aclose()


def checked_url(url: str) -> str:
    """Return the address of a server, or refuse what is none."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Invalid("database", "must be the address of a server, such as https://tide.example.com")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise Invalid("database", "an address of a server has no user, query or fragment; give the key by itself")
    return url.rstrip("/")


def tenant_header(tenant: str | None) -> dict[str, str]:
    """Return the header that names a tenant, or all that one may see. Raises Invalid."""
    return {"tide-tenant": ALL_TENANTS if tenant is None else quote(check_name("tenant", tenant), safe="/:@")}


def _bytes(body: Any) -> bytes:
    try:
        return _encode(body)
    except UnicodeError:
        raise Invalid("request", "must not contain half of a surrogate pair") from None


def _retry_after(answer: httpx.Response) -> int:
    told = answer.headers.get("retry-after", "")
    return int(told) if told.isdecimal() else 1


def _fault(request: httpx.Request, error: httpx.TransportError) -> Unavailable:
    words = f"{request.url.host}: {str(error) or type(error).__name__}"
    if request.method == "GET" or isinstance(error, NOT_SENT):
        return Unavailable(words)
    return OutcomeUnknown(words)


def read(content: bytes, kind: type[T]) -> T:
    """Return what an answer stands for."""
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.MsgspecError as error:
        raise Unavailable(f"the server's answer makes no sense: {error}") from error


async def gather(*work: Any) -> list[Any]:
    """Do several things at once; the first error counts."""
    return list(await asyncio.gather(*work))
