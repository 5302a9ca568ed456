"""Jobs of kind `http`: one call, with the job's id as idempotency key, and the answer as result.

A call shares nothing with another: no cookies, no connections, no proxies or passwords from the worker's environment.
"""

import asyncio
import base64
import functools
import ssl
from collections.abc import Coroutine, Mapping
from datetime import UTC, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tidewheel.clock import SystemClock
from tidewheel.errors import Invalid
from tidewheel.tasks.binding import result_text
from tidewheel.tasks.builtin import HttpCall, check_http
from tidewheel.tasks.context import Context
from tidewheel.tasks.signals import Fatal, Retry

if TYPE_CHECKING:
    import httpx

MAX_BODY: Final = 1024 * 1024
"""Bytes of the answer that are kept; what is too large for a row goes to the blobs, like any result."""
_CHUNK: Final = 64 * 1024
MAX_RETRY_AFTER: Final = timedelta(days=1)
KEPT_HEADERS: Final = ("content-type", "content-length", "date", "etag", "last-modified", "location", "retry-after")
TOLD: Final = 500
"""Characters of an answer that an error shows."""
MAX_REDIRECTS: Final = 5
_TOO_MANY: Final = 429
_UNAVAILABLE: Final = 503
_SERVER_ERRORS: Final = 500


class HttpTask:
    """The built-in task, as a runner calls it."""

    wants_context = True

    def call(self, context: Context | None, args: str) -> Coroutine[Any, Any, dict[str, Any]]:
        if context is None:
            raise AssertionError("it wants a context")
        return call(context, msgspec.json.decode(args))

    def encode(self, result: Any) -> str:
        return result_text(result)


async def call(context: Context, args: Mapping[str, Any]) -> dict[str, Any]:
    """Make the call and return `{status, headers, body}`, or raise what says whether to try again.

    A body that is no text comes as `body_base64`; one that is longer than what is kept is cut and marked `truncated`.
    """
    import httpx  # noqa: PLC0415 - a worker that makes no calls need not load it

    wanted = _read(args)
    try:
        async with asyncio.timeout(wanted.timeout):
            answer = await _exchange(wanted, _headers(context, wanted))
    except TimeoutError:
        raise Retry(f"{wanted.method} {wanted.url}: no answer within {wanted.timeout:g} s") from None
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.TooManyRedirects) as error:
        raise Fatal(f"{wanted.method} {wanted.url}: {error}") from None
    except httpx.HTTPError as error:
        raise Retry(f"{wanted.method} {wanted.url}: {str(error) or type(error).__name__}") from error
    _judge(wanted, answer)
    return answer


def _read(args: Mapping[str, Any]) -> HttpCall:
    try:
        return check_http(msgspec.convert(args, HttpCall))
    except (msgspec.ValidationError, Invalid) as error:
        raise Fatal(f"the arguments are not those of an HTTP call: {error}") from None


def _headers(context: Context, wanted: HttpCall) -> dict[str, str]:
    own = {
        "User-Agent": "tidewheel",
        "Idempotency-Key": str(context.job_id),
        "Tide-Fencing-Token": f"{context.epoch}:{context.token}",
    }
    if context.traceparent is not None:
        own |= {"traceparent": context.traceparent, "tracestate": context.tracestate or ""}
    given = {name.lower() for name in wanted.headers}
    return {**{name: value for name, value in own.items() if value and name.lower() not in given}, **wanted.headers}


@functools.cache
def _tls() -> ssl.SSLContext:
    """Return the settings of TLS; reading the certificates takes longer than many a call.

    Those are believed that all believe, and those of this machine, as a company's own (`SSL_CERT_FILE`).
    """
    import httpx  # noqa: PLC0415 - as above

    settings = httpx.create_ssl_context(trust_env=False)
    settings.load_default_certs()
    return settings


async def _exchange(wanted: HttpCall, headers: dict[str, str]) -> dict[str, Any]:
    import httpx  # noqa: PLC0415 - as above

    try:
        body = base64.b64decode(wanted.body_base64, validate=True) if wanted.body_base64 else wanted.body
    except ValueError as error:
        raise Fatal(f"body_base64 cannot be read: {error}") from None
    async with (
        httpx.AsyncClient(
            verify=_tls(),
            trust_env=False,
            timeout=None,  # noqa: S113 - the whole call is bounded, not each of its steps
            follow_redirects=wanted.follow_redirects,
            max_redirects=MAX_REDIRECTS,
        ) as client,
        client.stream(wanted.method, wanted.url, headers=headers, content=body) as response,
    ):
        return await _answer(response)


async def _answer(response: "httpx.Response") -> dict[str, Any]:
    """Read no more of an answer than is kept."""
    data = bytearray()
    async for chunk in response.aiter_bytes(_CHUNK):
        data += chunk
        if len(data) > MAX_BODY:
            break
    headers = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
    answer = {"status": response.status_code, "headers": headers, **_body(bytes(data[:MAX_BODY]))}
    return {**answer, "truncated": True} if len(data) > MAX_BODY else answer


def _body(data: bytes) -> dict[str, str]:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        cut = error.start >= len(data) - 3 and len(data) == MAX_BODY  # in the middle of the last character
        if not cut:
            return {"body_base64": base64.b64encode(data).decode()}
        text = data[: error.start].decode()
    return {"body": text} if "\0" not in text else {"body_base64": base64.b64encode(data).decode()}


def _judge(wanted: HttpCall, answer: Mapping[str, Any]) -> None:
    """Raise what an answer means that is no success."""
    status = answer["status"]
    if status // 100 == 2 or status in wanted.ok_statuses:  # noqa: PLR2004 - the hundreds of a status are its class
        return
    told = f"{wanted.method} {wanted.url}: HTTP {status} {answer.get('body', '')[:TOLD]}".rstrip()
    if status in wanted.fatal_statuses:
        raise Fatal(told)
    if status in (_TOO_MANY, _UNAVAILABLE, *wanted.retry_statuses):
        raise Retry(told, after=_retry_after(answer["headers"]))
    if status >= _SERVER_ERRORS:
        raise Retry(told)
    raise Fatal(told)


def _retry_after(headers: Mapping[str, str]) -> timedelta | None:
    """Return the wait that a server asks for, in seconds or until a date; None if it does not or not readably."""
    asked = headers.get("retry-after", "").strip()
    if not asked:
        return None
    if asked.isascii() and asked.isdigit():
        return min(timedelta(seconds=min(int(asked[:9]), MAX_RETRY_AFTER.total_seconds())), MAX_RETRY_AFTER)
    try:
        until = parsedate_to_datetime(asked)
        now = parsedate_to_datetime(headers["date"]) if "date" in headers else SystemClock().now()
        wait = until.replace(tzinfo=until.tzinfo or UTC) - now.replace(tzinfo=now.tzinfo or UTC)
    except (ValueError, OverflowError):
        return None
    return min(max(wait, timedelta(0)), MAX_RETRY_AFTER)
