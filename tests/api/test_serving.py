"""The server as a process among others: slow clients, large bodies, ports, restarts."""

import asyncio
import socket

import pytest

from tests.api.conftest import Api, problem
from tidewheel.errors import Invalid
from tidewheel.server import Address, app
from tidewheel.server.serving import Reservation


async def test_a_body_that_is_too_large_is_refused_before_it_is_in_memory(lone_api: Api) -> None:
    headers = {"content-type": "application/json"}
    announced = await lone_api.client.post("/v1/jobs", content=b" " * (1024 * 1024 + 1), headers=headers)
    problem(announced, 413, "too-large")
    reader, writer = await asyncio.open_connection(*lone_api.address)
    writer.write(
        b"POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\n"
        b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    for _ in range(17):
        writer.write(piece)
    assert b" 413 " in await reader.readline()
    writer.close()


async def test_all_bodies_together_are_bounded_and_forgotten_when_they_were_read(
    lone_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "MOST_HELD", 1000)

    for _ in range(5):
        await lone_api.submit(args={"x": "y" * 700})
    problem(await lone_api.client.post("/v1/jobs", json={"kind": "a", "args": {"x": "y" * 1000}}), 503, "overloaded")
    await lone_api.submit(args={"x": "y" * 700})


async def test_a_body_that_does_not_come_is_not_waited_for(lone_api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "BODY_WITHIN", 0.05)
    reader, writer = await asyncio.open_connection(*lone_api.address)
    writer.write(
        b"POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"
    )

    assert b" 408 " in await reader.readline()
    writer.close()
    await lone_api.submit()


async def test_a_client_that_leaves_in_the_middle_of_its_body_leaves_nothing(lone_api: Api) -> None:
    _, writer = await asyncio.open_connection(*lone_api.address)
    writer.write(
        b"POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"
    )
    await writer.drain()
    writer.close()

    await lone_api.submit()
    async with asyncio.timeout(10):
        while lone_api.service.under_way:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0)  # noqa: TID251 - lets the server notice


async def test_what_takes_too_long_is_told_so(lone_api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object, **__: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(lone_api.store, "find", never)
    monkeypatch.setattr(lone_api.store, "submit", never)

    problem(await lone_api.client.get("/v1/jobs"), 503, "unavailable")
    problem(await lone_api.client.post("/v1/jobs", json={"kind": "a"}), 503, "outcome-unknown")


async def test_what_nobody_foresaw_is_a_500_with_the_id_of_the_request_and_nothing_else(
    lone_api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(lone_api.store, "find", broken)

    found = problem(await lone_api.client.get("/v1/jobs"), 500, "internal")
    assert "secret" not in str(found)
    assert found["request_id"] in caplog.text


def test_a_port_is_taken_once() -> None:
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as other:
        address = Address(*other.getsockname())
        with pytest.raises(Invalid, match=r"port: .* cannot be listened on: Address already in use"):
            Reservation(address)
    Reservation(address).close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "no.such.host.invalid", "8.8.8.8"])
def test_without_keys_nothing_but_this_machine_is_served(host: str) -> None:
    with pytest.raises(Invalid, match="host: "):
        Reservation(Address(host, 0))
