"""HTTP jobs against a real server on this host."""

import base64
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.api.conftest import make_certificate
from tests.notify.receiving import receiving
from tidewheel.model.trace import Trace
from tidewheel.tasks.context import Context
from tidewheel.tasks.signals import Fatal, Retry
from tidewheel.worker.executors.http import MAX_BODY, _tls, call

JOB = UUID("01a1e11e-1dcf-707c-9333-56e6668dd66c")
Answer = tuple[int, dict[str, str], bytes]


class Silent:
    def log(self, level: str, text: str) -> None: ...

    def progress(self, fraction: float, message: str) -> None: ...

    def checkpoint(self, data: str) -> None: ...


class Server(ThreadingHTTPServer):
    """Answers as a test says, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        self.answers: Callable[[str], Answer | None] = lambda _path: (200, {}, b"")
        self.released = threading.Event()
        self.hung_up = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        answer = self.server.answers(self.path)
        if answer is None:  # never answers
            self.server.released.wait(30)
            return
        status, headers, content = answer
        if "X-Endless" in headers:
            self._send_for_ever(content)
            return
        self.send_response_only(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _send_for_ever(self, content: bytes) -> None:
        self.send_response_only(200)
        self.end_headers()
        with suppress(OSError):  # until the other side hangs up
            while not self.server.released.is_set():
                self.wfile.write(content)
        self.server.hung_up.set()

    do_GET = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815 - the names are the library's

    def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002 - the name is the library's


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.released.set()
        server.shutdown()
        thread.join()


def context(token: int = 7, trace: Trace | None = None) -> Context:
    return Context(job_id=JOB, token=token, epoch=3, attempt=1, saved=None, reporter=Silent(), trace=trace)


async def ask(server: Server, answer: Answer | None, **args: Any) -> dict[str, Any]:
    server.answers = lambda _path: answer
    return await call(context(), {"method": "POST", "url": server.url + "/hook", **args})


async def test_a_call_sends_the_body_and_the_identity_of_the_job(server: Server) -> None:
    answer = await ask(server, (201, {"ETag": '"x"', "Set-Cookie": "a=b"}, b"made"), body="hello", headers={"X-A": "1"})

    assert answer == {"status": 201, "headers": {"content-length": "4", "etag": '"x"'}, "body": "made"}
    [(method, path, headers, body)] = server.asked
    assert (method, path, body) == ("POST", "/hook", b"hello")
    assert headers["idempotency-key"] == str(JOB)
    assert headers["tide-fencing-token"] == "3:7"
    assert headers["x-a"] == "1"
    assert "traceparent" not in headers


async def test_a_call_hands_on_the_trace_of_its_job(server: Server) -> None:
    trace = Trace(f"00-{'a' * 32}-{'b' * 16}-01", "v=1")
    for given in ({}, {"Traceparent": "mine"}):
        await call(context(trace=trace), {"method": "GET", "url": server.url, "headers": given})

    handed = [(headers["traceparent"], headers["tracestate"]) for _, _, headers, _ in server.asked]
    assert handed == [(trace.traceparent, "v=1"), ("mine", "v=1")]


async def test_the_caller_may_choose_the_idempotency_key(server: Server) -> None:
    await ask(server, (200, {}, b""), headers={"idempotency-key": "mine"})

    assert server.asked[0][2]["idempotency-key"] == "mine"


async def test_bytes_go_and_come_as_base64(server: Server) -> None:
    answer = await ask(server, (200, {}, b"\xff\x00"), body_base64=base64.b64encode(b"\x00\xfe").decode())

    assert base64.b64decode(answer["body_base64"]) == b"\xff\x00"
    assert server.asked[0][3] == b"\x00\xfe"


async def test_text_with_nul_does_not_come_as_text_that_no_store_can_keep(server: Server) -> None:
    assert "body" not in await ask(server, (200, {}, b"a\x00b"))


async def test_a_long_answer_is_cut_between_two_characters(server: Server) -> None:
    answer = await ask(server, (200, {}, "ü".encode() * MAX_BODY))
    odd = await ask(server, (200, {}, b"." + "ü".encode() * MAX_BODY))

    assert answer["truncated"]
    assert answer["body"] == "ü" * (MAX_BODY // 2)
    assert odd["body"] == "." + "ü" * (MAX_BODY // 2 - 1)


async def test_an_answer_without_an_end_is_not_read_to_its_end(server: Server) -> None:
    answer = await ask(server, (200, {"X-Endless": "yes"}, b"." * 65536), timeout=30)

    assert (len(answer["body"]), answer["truncated"]) == (MAX_BODY, True)
    assert server.hung_up.wait(30)
    assert not server.released.is_set()


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_server_says_when_to_come_back(server: Server, status: int) -> None:
    with pytest.raises(Retry, match=f"HTTP {status} later") as caught:
        await ask(server, (status, {"Retry-After": "120"}, b"later"))

    assert caught.value.after == timedelta(seconds=120)


@pytest.mark.parametrize(
    ("asked", "wait"),
    [
        ("Tue, 01 Jan 2030 00:10:00 GMT", timedelta(minutes=10)),
        ("Mon, 31 Dec 2029 00:00:00 GMT", timedelta(0)),
        ("Fri, 01 Feb 2030 00:00:00 GMT", timedelta(days=1)),
        ("99999999999999999999", timedelta(days=1)),
        ("soon", None),
        ("", None),
    ],
)
async def test_retry_after_may_be_a_date_and_is_never_longer_than_a_day(
    server: Server, asked: str, wait: timedelta | None
) -> None:
    with pytest.raises(Retry) as caught:
        await ask(server, (503, {"Date": "Tue, 01 Jan 2030 00:00:00 GMT", "Retry-After": asked}, b""))

    assert caught.value.after == wait


@pytest.mark.parametrize("status", [500, 502, 599])
async def test_an_error_of_the_server_is_tried_again_by_the_policy(server: Server, status: int) -> None:
    with pytest.raises(Retry) as caught:
        await ask(server, (status, {"Retry-After": "9"}, b""))

    assert caught.value.after is None


@pytest.mark.parametrize("status", [302, 400, 404, 410])
async def test_what_another_attempt_cannot_mend_is_given_up(server: Server, status: int) -> None:
    with pytest.raises(Fatal, match=f"HTTP {status}"):
        await ask(server, (status, {"Location": "/elsewhere"}, b""))


async def test_the_caller_says_which_statuses_mean_what(server: Server) -> None:
    assert (await ask(server, (404, {}, b""), ok_statuses=[404]))["status"] == 404
    with pytest.raises(Fatal):
        await ask(server, (503, {}, b""), fatal_statuses=[503])
    with pytest.raises(Retry) as caught:
        await ask(server, (409, {"Retry-After": "9"}, b""), retry_statuses=[409])
    assert caught.value.after == timedelta(seconds=9)


async def test_a_certificate_that_this_machine_believes_in_is_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = make_certificate(tmp_path)
    _tls.cache_clear()
    async with receiving(certificate) as receiver:
        url = f"https://127.0.0.1:{receiver.port}/"
        with pytest.raises(Retry, match="certificate"):
            await call(context(), {"url": url})
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate.chain))
        _tls.cache_clear()

        assert (await call(context(), {"url": url}))["status"] == 200

    _tls.cache_clear()


async def test_redirects_are_followed_if_asked_for_and_not_for_ever(server: Server) -> None:
    server.answers = lambda path: (200, {}, b"there") if path == "/there" else (302, {"Location": "/there"}, b"")
    args = {"method": "GET", "url": server.url + "/", "follow_redirects": True}

    assert (await call(context(), args))["body"] == "there"

    server.answers = lambda _path: (302, {"Location": "/"}, b"")
    with pytest.raises(Fatal, match="redirects"):
        await call(context(), args)


async def test_a_server_that_does_not_answer_is_tried_again(server: Server) -> None:
    with pytest.raises(Retry, match=r"no answer within 0\.2 s"):
        await ask(server, None, timeout=0.2)


async def test_a_port_where_nobody_listens_is_tried_again() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as gone:
        port = gone.server_address[1]

    with pytest.raises(Retry, match=r"127\.0\.0\.1"):
        await call(context(), {"url": f"http://127.0.0.1:{port}/"})


@pytest.mark.parametrize(
    "args",
    [
        {"url": "file:///etc/passwd"},
        {"url": "ftp://example.com/"},
        {"url": "http:///nowhere"},
        {"url": "http://[::1"},
        {"url": "http://example.com", "method": "GE T"},
        {"url": "http://example.com", "headers": {"A": "b\r\nC: d"}},
        {"url": "http://example.com", "timeout": 0},
        {"url": "http://example.com", "unknown": 1},
        {"url": "http://example.com", "ok_statuses": [99]},
        {"url": "http://example.com", "retry_statuses": [404], "fatal_statuses": [404]},
        {"url": "http://example.com", "body": "a", "body_base64": "YQ=="},
        {},
    ],
)
async def test_arguments_that_make_no_call_are_given_up(args: dict[str, Any]) -> None:
    with pytest.raises(Fatal, match="not those of an HTTP call"):
        await call(context(), args)


async def test_no_cookie_of_one_call_reaches_the_next(server: Server) -> None:
    await ask(server, (200, {"Set-Cookie": "secret=1; Path=/"}, b""))
    await ask(server, (200, {}, b""))

    assert "cookie" not in server.asked[1][2]


async def test_proxies_of_the_environment_are_not_used(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")

    assert (await ask(server, (200, {}, b"")))["status"] == 200
