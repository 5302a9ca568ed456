"""Clients that mean harm: slow heads, endless bodies, bombs, and crowds that stay."""

import asyncio
import contextlib
import gzip
import resource
import socket
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.api.conftest import CLOCK, Api, problem, serving
from tidewheel.server import app
from tidewheel.server import serving as serving_module

MIB = 1024 * 1024
CROWD = 1000


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let this process have a socket for each of a crowd, at both ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * CROWD)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def memory() -> int:
    """Return how many bytes this process, which is also the server's, has in memory."""
    rss: int = psutil.Process().memory_info().rss
    return rss


async def until_streams(api: Api, count: int) -> None:
    async with asyncio.timeout(60):
        while api.app._streams != count:
            await CLOCK.sleep(0.01)


async def test_heads_that_come_byte_by_byte_are_cut_off_and_hinder_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving_module, "HEADERS_WITHIN", 1.0)

    async def drip(api: Api) -> bytes:
        reader, writer = await asyncio.open_connection(*api.address)
        writer.write(b"GET /v1/jobs HTTP/1.1\r\nhost: localhost\r\nx-slow: ")
        said = asyncio.ensure_future(reader.read())
        try:
            while not said.done():
                await asyncio.wait([said], timeout=0.1)
                writer.write(b"x")
        except ConnectionError:
            pass
        writer.close()
        return await said

    async with serving(f"sqlite:///{tmp_path}/tide.db", tmp_path) as api, asyncio.timeout(60):
        slow = [asyncio.ensure_future(drip(api)) for _ in range(100)]
        while not all(one.done() for one in slow):
            assert (await api.client.get("/v1/jobs")).status_code == 200
        ends = await asyncio.gather(*slow, return_exceptions=True)
        assert [end for end in ends if isinstance(end, bytes) and b" 200 " in end] == []
        assert api.service.under_way == 0


async def answer_to_a_flood(address: tuple[str, int], head: bytes, piece: bytes) -> bytes:
    """The first line of the answer while a hundred pieces are sent, or until the server has closed.

    A bare socket: streams of asyncio throw away what came in once a write fails, and a write does after the refusal.
    """
    loop = asyncio.get_running_loop()
    with socket.create_connection(address) as connection:
        connection.settimeout(0)
        async with asyncio.timeout(60):
            told = asyncio.ensure_future(loop.sock_recv(connection, 4096))
            with contextlib.suppress(ConnectionError):
                await loop.sock_sendall(connection, head)
                for _ in range(100):
                    await loop.sock_sendall(connection, piece)
                    if told.done():
                        break
            return (await told).split(b"\r\n")[0]


async def test_a_hundred_megabytes_are_refused_without_ever_being_in_memory(lone_api: Api) -> None:
    await lone_api.submit()
    before = memory()
    announced = (
        b"POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"content-length: 104857600\r\n\r\n"
    )
    chunked = (
        b"POST /v1/jobs/batch HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"transfer-encoding: chunked\r\n\r\n"
    )
    chunk = b"100000\r\n" + b" " * MIB + b"\r\n"
    for head, piece in ((announced, b" " * MIB), (chunked, chunk)):
        assert b" 413 " in await answer_to_a_flood(lone_api.address, head, piece)
    assert lone_api.app._held == 0
    assert memory() - before < 80 * MIB  # a batch may have 32 MiB, and is copied once
    await lone_api.submit()


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs/batch"])
async def test_a_bomb_is_never_unpacked(lone_api: Api, path: str) -> None:
    bomb = gzip.compress(b" " * (200 * MIB), compresslevel=1)
    before = memory()
    assert len(bomb) < MIB
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    answer = await lone_api.client.post(path, content=bomb, headers=headers)
    problem(answer, 415, "unsupported-media-type")
    for other in ("deflate", "br", "zstd", "gzip, gzip", "x"):
        refused = await lone_api.client.post(path, content=bomb, headers=headers | {"content-encoding": other})
        problem(refused, 415, "unsupported-media-type")
    assert memory() - before < 50 * MIB


MANY = 10 * MIB
BOMBS = {
    "objects": lambda: b"[" + b",".join([b"{}"] * MANY) + b"]",
    "texts": lambda: b'[{"kind":"a","args":{"x":[' + b",".join([b'""'] * MANY) + b"]}}]",
    "lines": lambda: b"{}\n" * MANY,
    "blank lines": lambda: b"\n" * (3 * MANY),
    "a line": lambda: b'{"kind":"a","args":{"x":[' + b",".join([b"[]"] * MANY) + b"]}}",
}


@pytest.mark.parametrize("which", BOMBS)
async def test_a_body_of_millions_of_values_is_refused_before_it_is_read(lone_api: Api, which: str) -> None:
    content, media = BOMBS[which](), "application/x-ndjson" if "line" in which else "application/json"
    await lone_api.submit()
    tracemalloc.start()
    answer = await lone_api.client.post("/v1/jobs/batch", content=content, headers={"content-type": media})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    problem(answer, 413, "too-large")
    assert peak < 5 * len(content), "parts of it, all of it, and what is outside of its strings"
    assert lone_api.app._held == 0


async def test_a_list_that_is_too_long_is_refused_before_its_items_are_looked_at(lone_api: Api) -> None:
    answer = await lone_api.client.post("/v1/jobs/batch", json=[{"nonsense": 1}] * 10_001)
    assert problem(answer, 413, "too-large")["detail"] == "at most 10000 at once, not 10001"


async def test_what_was_read_of_a_body_counts_until_it_is_answered(
    lone_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "MOST_HELD", 10_000)
    many = await lone_api.client.post("/v1/jobs", json={"kind": "a", "args": {"x": [1] * 200}})
    problem(many, 503, "overloaded")
    waits = {"prefer": "wait=60"}
    body = {"kind": "a", "args": {"x": "y" * 5_000}}
    waiting = asyncio.ensure_future(lone_api.client.post("/v1/jobs", json=body, headers=waits))
    async with asyncio.timeout(20):
        while lone_api.service._waiters != 1:
            await CLOCK.sleep(0.01)
        problem(await lone_api.client.post("/v1/jobs", json=body), 503, "overloaded")
        await lone_api.run()
        assert (await waiting).status_code == 200
    assert lone_api.app._held == 0
    assert (await lone_api.client.post("/v1/jobs", json=body)).status_code == 202


@pytest.mark.proof
@pytest.mark.usefixtures("many_files")
async def test_a_thousand_who_follow_a_job_cost_little_and_hinder_nobody(lone_api: Api) -> None:
    job_id = await lone_api.submit()
    request = f"GET /v1/jobs/{job_id}/events HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()
    before = memory()
    crowd = []
    try:
        for _ in range(CROWD):
            crowd.append(end := socket.create_connection(lone_api.address))
            end.sendall(request)
            await CLOCK.sleep(0)
        await until_streams(lone_api, CROWD)
        grown = memory() - before
        for _ in range(20):
            await lone_api.submit(queue="other")
            assert (await lone_api.client.get(f"/v1/jobs/{job_id}")).status_code == 200
        assert memory() - before < max(2 * grown, 32 * MIB)
        assert grown < CROWD * 100 * 1024
    finally:
        for end in crowd:
            end.close()
    await until_streams(lone_api, 0)


async def test_one_stream_too_many_is_refused_and_told_when_to_come_again(
    lone_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "MOST_STREAMS", 1)
    path = f"/v1/jobs/{await lone_api.submit()}/events"
    async with lone_api.client.stream("GET", path) as first:
        assert first.status_code == 200
        await until_streams(lone_api, 1)
        refused = await lone_api.client.get(path)
        problem(refused, 503, "overloaded")
        assert refused.headers["retry-after"] == "1"
