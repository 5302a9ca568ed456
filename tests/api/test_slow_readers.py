"""Clients that ask for much and take nothing of it, or bring it at a crawl: they are cut off and hinder nobody."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

import httpx
import pytest
from starlette.types import Message

from tests.api.conftest import CLOCK, Api, problem, serving
from tests.builders import a_claim, a_worker, outcome_of
from tidewheel.model.states import Cause
from tidewheel.server import app, incoming, places, service
from tidewheel.server import serving as serving_module
from tidewheel.server.problems import Refused

MIB = 1024 * 1024
LARGE = 30 * MIB


@asynccontextmanager
async def unread(api: Api, path: str, count: int = 1) -> AsyncIterator[list[socket.socket]]:
    """Ask for something and never read the answer."""
    ends = []
    for _ in range(count):
        ends.append(end := socket.socket())
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        end.connect(api.address)
        end.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
    try:
        yield ends
    finally:
        for end in ends:
            end.close()


async def until(what: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not what():
            await CLOCK.sleep(0.01)


def read_all(end: socket.socket) -> None:
    while end.recv(MIB):
        pass


async def with_large_result(api: Api) -> str:
    """Return where to ask for a large result."""
    job_id = await api.submit()
    worker = await api.store.register(a_worker())
    [run] = (await api.store.claim(a_claim(worker.id, 1))).runs
    location = await api.blobs.store_result(job_id, run.token, f'"{"x" * LARGE}"')
    await api.store.settle(worker.id, [outcome_of(run, Cause.RETURNED, result_location=location)])
    return f"/v1/jobs/{job_id}/result"


async def test_those_who_take_no_large_result_hinder_nobody_else(lone_api: Api) -> None:
    path = await with_large_result(lone_api)
    async with unread(lone_api, path, 12):
        await until(lambda: lone_api.app._streams == 12)
        async with asyncio.timeout(20):
            answer = await lone_api.client.get(path)
            content = b"what others bring meanwhile"
            offer = {"digest": sha256(content).hexdigest(), "size": len(content)}
            told = (await lone_api.client.post("/v1/artifacts", json=offer)).json()["upload"]["url"]
            headers = {"content-type": "application/octet-stream"}
            brought = await lone_api.client.put(told, content=content, headers=headers)
    assert (len(answer.content), brought.status_code) == (LARGE + 2, 201)
    await until(lambda: lone_api.app._streams == 0)


async def test_a_place_that_does_not_become_free_is_not_waited_for_forever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "DOWNLOADS_AT_ONCE", 2)
    monkeypatch.setattr(places, "TAKEN_WITHIN", 0.05)
    async with serving(f"sqlite:///{tmp_path}/tide.db", tmp_path) as api:
        path = await with_large_result(api)
        async with unread(api, path, 2):
            await until(lambda: api.app._streams == 2)
            refused = await api.client.get(path)
            assert problem(refused, 503, "overloaded")["detail"] == "too many downloads at once"
            assert refused.headers["retry-after"] == "1"
        await until(lambda: api.app._streams == 0)
        assert (await api.client.get(path)).status_code == 200


async def test_of_many_places_some_are_kept_for_those_who_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "TAKEN_WITHIN", 0.01)
    some = places.Places("downloads", 8)
    for _ in range(6):
        await some.take("ada")
    with pytest.raises(Refused, match="too many downloads"):
        await some.take("ada")
    await some.take("bob")
    await some.take("cyd")
    with pytest.raises(Refused, match="too many downloads"):
        await some.take("dan")
    monkeypatch.setattr(places, "TAKEN_WITHIN", 10)
    waiting = asyncio.ensure_future(some.take("dan"))
    await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop
    some.leave("ada")
    await waiting


async def large_page(api: Api) -> str:
    for _ in range(20):
        await api.submit(args={"x": "y" * 200_000})
    return "/v1/jobs?full=true&limit=20"


async def test_answers_that_nobody_takes_are_bounded_and_cut_off(
    lone_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await large_page(lone_api)
    size = len((await lone_api.client.get(path)).content)
    monkeypatch.setattr(app, "MOST_OUTGOING", int(size * 2.5))
    async with unread(lone_api, path, 2):
        await until(lambda: lone_api.app._outgoing == 2 * size)
        refused = await lone_api.client.get(path)
        problem(refused, 503, "overloaded")
        assert refused.headers["retry-after"] == "1"
        assert (await lone_api.client.get("/v1/jobs?limit=1")).status_code == 200
        await lone_api.submit()
    await until(lambda: lone_api.app._outgoing == 0)
    assert (await lone_api.client.get(path)).status_code == 200


@pytest.mark.parametrize("what", ["page", "result"])
async def test_who_takes_nothing_for_long_is_let_go_by_the_server(
    lone_api: Api, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(app, "SEND_WITHIN", 0.2)
    path = await (large_page if what == "page" else with_large_result)(lone_api)
    async with unread(lone_api, path):
        await until(lambda: lone_api.service.under_way == 1)
        await until(lambda: lone_api.service.under_way == 0)
        assert (lone_api.app._outgoing, lone_api.app._streams, lone_api.service.downloads._taken.total()) == (0, 0, 0)


async def test_who_takes_nothing_for_long_is_cut_off_by_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving_module, "TAKEN_WITHIN", 0.3)
    async with serving(f"sqlite:///{tmp_path}/tide.db", tmp_path) as api:
        path = await large_page(api)
        async with unread(api, path) as [end]:
            await until(lambda: api.app._outgoing > 0)
            await until(lambda: api.app._outgoing == 0)
            with pytest.raises(ConnectionResetError):
                await asyncio.to_thread(read_all, end)


async def test_the_head_of_a_large_answer_can_be_asked_for_alone(lone_api: Api) -> None:
    result = await with_large_result(lone_api)
    content = b"some bytes"
    offer = {"digest": sha256(content).hexdigest(), "size": len(content)}
    told = (await lone_api.client.post("/v1/artifacts", json=offer)).json()["upload"]["url"]
    await lone_api.client.put(told, content=content, headers={"content-type": "application/octet-stream"})
    led = await lone_api.client.get(f"/v1/artifacts/{offer['digest']}/content")
    for path, size in ((result, LARGE + 2), (led.headers["location"], len(content)), ("/v1/jobs", None)):
        head: httpx.Response = await lone_api.client.head(path)
        assert (head.status_code, head.content) == (200, b""), path
        told_size = int(head.headers["content-length"])
        assert told_size == (size or len((await lone_api.client.get(path)).content))
    assert lone_api.service.downloads._taken.total() == 0


@pytest.mark.parametrize("pause", [0.01, 60])
async def test_who_brings_a_body_at_a_crawl_is_cut_off(monkeypatch: pytest.MonkeyPatch, pause: float) -> None:
    monkeypatch.setattr(incoming, "PIECE_WITHIN", 0.1)

    async def crawl() -> Message:
        await CLOCK.sleep(pause)
        return {"type": "http.request", "body": b"x", "more_body": True}

    body = incoming.Incoming(crawl, MIB)
    async with asyncio.timeout(20):
        with pytest.raises(Refused, match=r"nothing came for 0\.1 seconds, or less than 8192 bytes a second"):
            [piece async for piece in body]
