"""The server as a process among others: slow clients, large bodies, ports, restarts."""

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.conftest import Api, make_certificate, problem, serving
from tidewheel.cli.serving import reserved
from tidewheel.errors import Invalid
from tidewheel.server import Address, app
from tidewheel.server.serving import Reservation
from tidewheel.worker.link import ServerSetup


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


def test_a_name_that_is_none_of_this_machine_is_refused() -> None:
    with pytest.raises(Invalid, match=r"host: 'no\.such\.host\.invalid' is no address"):
        Reservation(Address("no.such.host.invalid", 0))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_a_server_that_others_reach_is_not_reserved_a_port_without_keys(host: str) -> None:
    with pytest.raises(Invalid, match="auth: cannot be off"), reserved(ServerSetup(host=host, port=0, auth="off")):
        pytest.fail("it was bound")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"rate": 0.0}, "rate: must be more than 0"),
        ({"rate": float("nan")}, "rate: must be more than 0"),
        ({"burst": 5}, "key-burst: is for a server with a --key-rate"),
        ({"rate": 1.0, "burst": 0}, "burst: must be between 1"),
        ({"tls_cert": "x.pem"}, "tls-key: must be named together"),
        ({"tls_key": "x.pem"}, "tls-cert: must be named together"),
        ({"tls_cert": "no.pem", "tls_key": "no.pem"}, "tls-cert: no.pem and no.pem are no certificate and its key"),
        ({"tls_cert": __file__, "tls_key": __file__}, "are no certificate and its key"),
    ],
)
def test_settings_that_cannot_be_are_refused_before_anything_listens(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(Invalid, match=why), reserved(ServerSetup(host="127.0.0.1", port=0, **fields)):
        pytest.fail("it was bound")


async def test_with_a_certificate_the_server_speaks_https_alone(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path)
    certificate.check()
    async with serving(f"sqlite:///{tmp_path}/tide.db", tmp_path, certificate) as api:
        assert (await api.client.post("/v1/jobs", json={"kind": "mail"})).status_code == 202
        trusting = ssl.create_default_context(cafile=str(certificate.chain))
        async with httpx.AsyncClient(base_url=api.address.url_by("https"), verify=trusting, timeout=60) as client:
            assert (await client.get("/livez")).status_code == 200
        async with httpx.AsyncClient(base_url=api.address.url, timeout=60) as client:
            with pytest.raises(httpx.TransportError):
                await client.get("/livez")
        async with httpx.AsyncClient(base_url=api.address.url_by("https"), timeout=60) as client:
            with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                await client.get("/livez")
