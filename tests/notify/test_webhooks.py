"""Webhooks on real sockets: signed, once resolved, never led astray, and never a word of a secret."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from tests.api.conftest import make_certificate
from tests.builders import NOON
from tests.notify.receiving import DROP, HANG, Receiver, receiving
from tidewheel.clock import SystemClock
from tidewheel.model.channel import ChannelType, Parcel
from tidewheel.model.notification import Answer
from tidewheel.notify import AddressGuard, Sender

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
BODY = '{"specversion":"1.0","data":{"kind":"größe"}}'
LOOPBACK = ("127.0.0.0/8",)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


def parcel(address: str) -> Parcel:
    return Parcel(
        delivery_id=uuid4(),
        channel_id=uuid4(),
        tries=1,
        begun_at=NOON,
        key="job.1.dead",
        body=BODY,
        text="it is dead",
        type=ChannelType.WEBHOOK,
        address=address,
        secret=SECRET,
    )


async def send(address: str, guard: AddressGuard | None = None, patience: float = 10.0) -> Answer:
    return await Sender(guard or AddressGuard(LOOPBACK), SystemClock(), patience).send(parcel(address))


async def test_a_webhook_carries_the_event_and_a_signature_that_holds(receiver: Receiver) -> None:
    assert await send(receiver.address) == Answer(accepted=True, told="200")
    (got,) = receiver.got
    assert got.path == "/hook?x=1"
    assert got.headers["content-type"] == "application/cloudevents+json"
    assert got.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert Webhook(SECRET).verify(got.body, got.headers) == json.loads(BODY)
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(got.body + b" ", got.headers)


async def test_while_a_secret_is_changed_receivers_may_have_either(receiver: Receiver) -> None:
    old = "whsec_" + base64.b64encode(bytes(range(1, 33))).decode()
    changing = msgspec.structs.replace(parcel(receiver.address), old_secret=old)
    assert (await Sender(AddressGuard(LOOPBACK), SystemClock()).send(changing)).accepted
    (got,) = receiver.got
    assert len(got.headers["webhook-signature"].split(" ")) == 2
    for secret in (SECRET, old):
        assert Webhook(secret).verify(got.body, got.headers) == json.loads(BODY)


async def test_the_certificate_of_a_receiver_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the name in the address, though the connection goes to a number, and by those whom this machine believes."""

    async def resolve(_host: str, _port: int) -> list[str]:
        return ["127.0.0.1"]

    guard = AddressGuard(LOOPBACK, resolve)
    certificate = make_certificate(tmp_path)
    async with receiving(certificate) as receiver:
        url = f"https://127.0.0.1:{receiver.port}/hook"
        assert (await send(url, guard)).told == "no connection, or it was lost: ConnectError"
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate.chain))
        assert await send(url, guard) == Answer(accepted=True, told="200")
        named = await send(f"https://hooks.example:{receiver.port}/hook", guard)
        assert named.told == "no connection, or it was lost: ConnectError"
        assert len(receiver.got) == 1


@pytest.mark.parametrize(
    ("status", "told", "gone"),
    [(503, "503", False), (404, "404", False), (410, "410", True), (DROP, "lost", False), (HANG, "no answer", False)],
)
async def test_what_is_not_accepted_is_said_in_a_word(
    receiver: Receiver, status: int, told: str, *, gone: bool
) -> None:
    receiver.answer = lambda _: status
    answer = await send(receiver.address, patience=0.5 if status == HANG else 10.0)
    assert not answer.accepted
    assert answer.gone is gone
    assert told in answer.told
    assert "whsec" not in answer.told
    assert "hook" not in answer.told


async def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    async with receiving() as inner:
        receiver.location, receiver.answer = inner.address, lambda _: 302
        answer = await send(receiver.address)
        assert not answer.accepted
        assert "redirects are not followed" in answer.told
        assert inner.got == []


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "2130706433",
        "0177.0.0.1",
        "0x7f.1",
        "127.1",
        "0.0.0.0",
        "169.254.169.254",
        "10.0.0.1",
        "192.168.1.1",
        "172.16.0.1",
        "100.64.0.1",
        "224.0.0.1",
        "[::ffff:127.0.0.1]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[fd00::1]",
        "[64:ff9b:1::7f00:1]",
        "[fec0::1]",
        "[::127.0.0.1]",
        "[::ffff:0:127.0.0.1]",
        "[::]",
        "[2002:a9fe:a9fe::]",
        "[2001:0:7f00:1::80ff:fffe]",
        "[2606:2800:220:1:0:5efe:127.0.0.1]",
        "[2606:2800:220:1:200:5efe:10.0.0.1]",
        "[ff0e::1]",
        "[5f00::1]",
        "[fe80::1]",
    ],
)
async def test_private_addresses_are_refused_however_they_are_spelled(receiver: Receiver, host: str) -> None:
    answer = await send(f"http://{host}:{receiver.port}/", AddressGuard())
    assert not answer.accepted
    assert answer.told in ("the host has a private address, which is not allowed", "the host is not known")
    assert receiver.got == []


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("64:ff9b::5db8:d822", True),
        ("::ffff:0:93.184.216.34", True),
        ("2002:5db8:d822::1", True),
        ("2606:2800:220:1:248:1893:25c8:1946", True),
        ("64:ff9b:1::5db8:d822", False),
        ("fec0::1", False),
        ("::127.0.0.1", False),
        ("::ffff:0:127.0.0.1", False),
        ("2606:2800:220:1:0:5efe:7f00:1", False),
        ("4000::1", False),
        ("fe80::1%eth0", False),
    ],
)
def test_what_stands_for_an_older_address_is_judged_by_that(address: str, *, allowed: bool) -> None:
    assert AddressGuard().allows(address) is allowed


async def test_a_name_is_resolved_once_and_connected_to_as_it_was_judged(receiver: Receiver) -> None:
    """A name that means something else at the second look leads nowhere else: there is no second look."""
    asked = []

    async def rebinding(host: str, port: int) -> list[str]:
        asked.append((host, port))
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

    guard = AddressGuard(("127.0.0.1/32",), rebinding)
    answer = await send(f"http://hooks.example:{receiver.port}/", guard)
    assert answer.accepted
    assert asked == [("hooks.example", receiver.port)]
    assert receiver.got[0].headers["host"] == f"hooks.example:{receiver.port}"
    assert not (await send(f"http://hooks.example:{receiver.port}/", guard)).accepted
    assert len(receiver.got) == 1


async def test_one_private_address_among_public_ones_is_refused(receiver: Receiver) -> None:
    async def mixed(_host: str, _port: int) -> list[str]:
        return ["93.184.216.34", "169.254.169.254"]

    assert "private" in (await send(f"http://both.example:{receiver.port}/", AddressGuard((), mixed))).told


async def test_public_addresses_pass() -> None:
    async def public(_host: str, _port: int) -> list[str]:
        return ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"]

    assert await AddressGuard((), public).address_of("example.org", 443) == "93.184.216.34"


async def test_proxies_of_the_environment_are_not_used(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiving() as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        assert (await send(receiver.address)).accepted
        assert proxy.got == []


async def test_many_slow_receivers_end_with_the_time_that_is_allowed(receiver: Receiver) -> None:
    receiver.answer = lambda _: HANG
    answers = await asyncio.gather(*(send(receiver.address, patience=1.0) for _ in range(20)))
    assert not any(answer.accepted for answer in answers)
    assert {answer.told for answer in answers} == {"no answer within 1 s"}
