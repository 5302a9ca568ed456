"""The port of a worker against those who do not speak as they should: it answers others, and holds nothing up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from tidewheel.errors import Invalid
from tidewheel.worker import metrics_port
from tidewheel.worker.metrics_port import MOST_AT_ONCE, MOST_HEAD, MetricsPort


@asynccontextmanager
async def a_port(*, ready: bool = True) -> AsyncIterator[str]:
    async def page() -> bytes:
        return b"tide_up 1\n"

    port = MetricsPort(page, lambda: ready)
    try:
        yield await port.start("127.0.0.1", 0)
    finally:
        port.close()


async def say(url: str, words: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    try:
        writer.write(words)
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_three_pages_and_a_head_are_answered() -> None:
    async with a_port() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        assert (await client.get("/metrics?name[]=x")).text == "tide_up 1\n"
        head = await client.head("/metrics")
        assert (head.content, head.headers["content-length"]) == (b"", "10")
        assert (await client.get("/readyz")).status_code == 200
        assert (await client.get("/metrics/x")).status_code == 404
        assert (await client.delete("/metrics")).headers["allow"] == "GET, HEAD"
    async with a_port(ready=False) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        paths = ("/livez", "/readyz", "/healthz")
        assert [(await client.get(path)).status_code for path in paths] == [200, 503, 503]


async def test_whoever_does_not_speak_plainly_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_port, "HEAD_WITHIN", 0.2)
    async with a_port() as url:
        assert await say(url, b"GET /metrics HTTP/1.1\r\nx: " + b"a" * (2 * MOST_HEAD)) == b""
        assert await say(url, b"GET /metrics HTTP/1.1\r\n") == b"", "never finished"
        assert (await say(url, b"\xff\x00\r\n\r\n")).startswith(b"HTTP/1.1 405")
        silent = [asyncio.create_task(say(url, b"")) for _ in range(MOST_AT_ONCE + 4)]
        await asyncio.gather(*silent)
        assert (await say(url, b"GET /livez HTTP/1.1\r\n\r\n")).endswith(b"ok\n"), "it is there afterwards"


async def test_a_port_that_is_taken_is_told_in_one_line() -> None:
    async def page() -> bytes:
        return b""

    async with a_port() as url:
        other = MetricsPort(page, lambda: True)
        with pytest.raises(Invalid, match=r"metrics-port: 127\.0\.0\.1 port \d+ cannot be listened on"):
            await other.start("127.0.0.1", int(url.rpartition(":")[2]))
