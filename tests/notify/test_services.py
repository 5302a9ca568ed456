"""Services through apprise: e-mail to a real mail server, and what is refused."""

import importlib.util
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from email.message import Message as Mail
from typing import Any
from uuid import uuid4

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Message as Handler

from tests.builders import NOON
from tests.notify.receiving import Receiver, receiving
from tidewheel.clock import SystemClock
from tidewheel.errors import Invalid
from tidewheel.model.channel import ChannelType, Parcel
from tidewheel.model.notification import Answer
from tidewheel.notify import AddressGuard, Sender, check_address
from tidewheel.notify.address import Resolve
from tidewheel.notify.connections import Watch, watching

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what apprise imports

LOOPBACK = ("127.0.0.0/8",)


class Mailbox(Handler):
    def __init__(self) -> None:
        super().__init__()
        self.mails: list[Mail] = []

    def handle_message(self, message: Mail) -> None:
        self.mails.append(message)


@pytest.fixture
def mailbox() -> Iterator[tuple[Mailbox, int]]:
    box = Mailbox()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    controller = Controller(box, hostname="127.0.0.1", port=port)
    controller.start()
    yield box, port
    controller.stop()


async def send(address: str, allowed: tuple[str, ...] = LOOPBACK, resolve: Resolve | None = None) -> Answer:
    parcel = Parcel(
        delivery_id=uuid4(),
        channel_id=uuid4(),
        tries=1,
        begun_at=NOON,
        key="k",
        body="{}",
        text="backup: dead\nthe disk is full",
        type=ChannelType.SERVICE,
        address=address,
        secret=None,
    )
    return await Sender(AddressGuard(allowed, resolve), SystemClock()).send(parcel)


async def test_an_e_mail_arrives(mailbox: tuple[Mailbox, int]) -> None:
    box, port = mailbox
    answer = await send(f"mailto://127.0.0.1:{port}?from=tide@example.org&to=ops@example.org&format=text")
    assert answer == Answer(accepted=True, told="accepted")
    (mail,) = box.mails
    assert mail["subject"] == "backup: dead"
    assert "ops@example.org" in mail["to"]
    assert "the disk is full" in str(mail.get_payload())


async def test_a_mail_server_in_a_private_network_is_refused_unless_it_is_allowed(mailbox: tuple[Mailbox, int]) -> None:
    box, port = mailbox
    answer = await send(f"mailto://127.0.0.1:{port}?from=tide@example.org&to=ops@example.org", ())
    assert "private" in answer.told
    assert box.mails == []


async def test_a_mail_server_that_is_away_is_no_accident() -> None:
    answer = await send("mailto://user:hunter2@127.0.0.1:1?from=tide@example.org&to=ops@example.org")
    assert answer == Answer(accepted=False, told="mailto: the service did not accept it")


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("json://169.254.169.254/x", "use a webhook"),
        ("xmls://example.org", "use a webhook"),
        ("syslog://", "machine of the sender"),
        ("nosuchservice://x", "none that a service knows"),
        ("slack://", "none that a service knows"),
    ],
)
async def test_what_is_no_service_is_refused_in_one_sentence(address: str, told: str) -> None:
    answer = await send(address)
    assert not answer.accepted
    assert told in answer.told


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("slak://nonsense", "address: the address is none that a service knows (slak)"),
        ("slack://", "address: the address is none that a service knows (slack)"),
        ("file:///etc/x", "address: file is not offered: it belongs to the machine of the sender"),
        ("json://127.0.0.1/x", "address: json is not offered: use a webhook"),
        (
            "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/?template=/etc/passwd",
            "address: template is not offered: it names a file of the sender (slack)",
        ),
        ("hooks", "address: must be a URL such as"),
    ],
)
async def test_an_address_that_cannot_work_is_refused_before_it_is_stored(address: str, why: str) -> None:
    with pytest.raises(Invalid) as refused:
        await check_address(address)
    assert str(refused.value).startswith(why)


@pytest.mark.parametrize(
    "address",
    [
        "https://example.org/x",
        "mailtos://user:hunter2@mail.example",
        "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#general",
        "gotify://127.0.0.1/AbCdEf",
    ],
)
async def test_an_address_that_may_work_is_not_refused(address: str) -> None:
    await check_address(address)


async def test_without_the_extra_an_address_is_judged_by_its_scheme_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    await check_address("slak://nonsense")
    with pytest.raises(Invalid, match="use a webhook"):
        await check_address("json://127.0.0.1/x")


async def test_without_the_extra_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    assert (await send("slack://a/b/c")).told == "services need an extra: pip install 'tidewheel[notify]'"


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


async def test_a_message_reaches_a_chat_of_one_s_own(receiver: Receiver) -> None:
    answer = await send(f"mmost://127.0.0.1:{receiver.port}/3ccdd113474722377935511fc85d3dd4")
    assert answer == Answer(accepted=True, told="accepted")
    (got,) = receiver.got
    assert got.path == "/hooks/3ccdd113474722377935511fc85d3dd4"
    assert "the disk is full" in got.body.decode()


async def test_a_redirect_of_a_service_is_not_followed(receiver: Receiver) -> None:
    async with receiving() as inner:
        receiver.location, receiver.answer = inner.address, lambda _: 307
        answer = await send(f"gotify://127.0.0.1:{receiver.port}/AbCdEf?redirect=yes")
        assert answer == Answer(accepted=False, told="gotify: the service did not accept it")
        assert len(receiver.got) == 1
        assert inner.got == []


@pytest.mark.parametrize(
    "address",
    [
        "gotify://127.0.0.1:{port}/AbCdEf",
        "gotify://2130706433:{port}/AbCdEf",
        "gotify://0x7f000001:{port}/AbCdEf",
        "gotify://0177.0.0.1:{port}/AbCdEf",
        "gotify://localhost:{port}/AbCdEf",
        "mmost://[::1]:{port}/3ccdd113474722377935511fc85d3dd4",
        "mailto://user:pass@example.org:{port}?smtp=2130706433&to=ops@example.org",
        "mailto://user:pass@example.org:{port}?smtp=0x7f.1&to=ops@example.org",
        "rsyslog://2130706433:{port}",
        "workflows://127.0.0.1:{port}/ABCDEFGHIJ/signature",
    ],
)
async def test_private_addresses_of_services_are_refused_however_they_are_spelled(
    receiver: Receiver, address: str
) -> None:
    answer = await send(address.format(port=receiver.port), ())
    assert not answer.accepted
    assert answer.told in (
        "the host has a private address, which is not allowed",
        "the address is none that a service knows",
    )
    assert receiver.got == []


async def test_what_a_service_connects_to_is_judged_whatever_its_address_said(
    receiver: Receiver,
) -> None:
    """A name that meant something else when it was looked at leads nowhere."""

    async def public(_host: str, _port: int) -> list[str]:
        return ["93.184.216.34"]

    answer = await send(f"gotify://localhost:{receiver.port}/AbCdEf", (), public)
    assert answer == Answer(accepted=False, told="the host has a private address, which is not allowed")
    assert receiver.got == []


@pytest.mark.parametrize(
    ("address", "what"),
    [
        ("workflows://example.org:443/ABCDEFGHIJ/signature?template=/etc/passwd", "template"),
        ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/?template=/etc/passwd", "template"),
        ("mailto://user:pass@example.org?to=ops@example.org&pgppub=/etc/passwd", "pgppub"),
    ],
)
async def test_files_of_the_sender_are_not_sent(address: str, what: str) -> None:
    assert await send(address) == Answer(accepted=False, told=f"{what} is not offered: it names a file of the sender")


@pytest.fixture
def syslog() -> Iterator[socket.socket]:
    """A listener for datagrams on this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.settimeout(0)
        yield listener


async def test_a_name_is_not_looked_up_again_after_it_was_judged(
    syslog: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the C library makes of a name by itself leads nowhere, whatever Python was told that it means."""
    real = socket.getaddrinfo

    def elsewhere(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        return real("127.0.0.2" if host == "localhost" else host, port, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", elsewhere)
    await send(f"rsyslog://localhost:{syslog.getsockname()[1]}", ("127.0.0.2/32",))  # where nobody is
    with pytest.raises(BlockingIOError):
        syslog.recv(2000)


async def test_a_service_that_hands_names_to_sockets_reaches_a_host_by_its_name(syslog: socket.socket) -> None:
    async def loopback(_host: str, _port: int) -> list[str]:
        return ["2606:2800:220:1::1", "127.0.0.1"]

    answer = await send(f"rsyslog://logs.example.org:{syslog.getsockname()[1]}", LOOPBACK, loopback)
    assert answer == Answer(accepted=True, told="accepted")
    assert b"the disk is full" in syslog.recv(2000)


@pytest.mark.parametrize(
    "address", [("localhost", 9), ("", 9), ("127.1", 9), (b"93.184.216.34", 9), ("<broadcast>", 9)]
)
def test_only_numbers_are_connected_to(address: Any) -> None:
    watch = Watch(lambda _: True)
    with watching(watch), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        with pytest.raises(PermissionError):
            end.connect(address)
        with pytest.raises(PermissionError):
            end.sendto(b"x", address)
        with pytest.raises(PermissionError):
            end.sendmsg([b"x"], [], 0, address)
    assert watch.refused


def test_a_datagram_to_whom_a_socket_is_connected_already_is_not_judged_again(syslog: socket.socket) -> None:
    watch = Watch(AddressGuard(LOOPBACK).allows)
    with watching(watch), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.connect(syslog.getsockname())
        end.sendmsg([b"hello"])
    assert syslog.recv(2000) == b"hello"
    assert not watch.refused
