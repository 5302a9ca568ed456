"""Services through apprise: e-mail to a real mail server, and what is refused."""

import socket
import sys
from collections.abc import Iterator
from email.message import Message as Mail
from uuid import uuid4

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Message as Handler

from tests.builders import NOON
from tidewheel.clock import SystemClock
from tidewheel.model.channel import ChannelType, Parcel
from tidewheel.model.notification import Answer
from tidewheel.notify import AddressGuard, Sender

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


async def send(address: str, allowed: tuple[str, ...] = LOOPBACK) -> Answer:
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
    return await Sender(AddressGuard(allowed), SystemClock()).send(parcel)


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


async def test_without_the_extra_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    assert (await send("slack://a/b/c")).told == "services need an extra: pip install 'tidewheel[notify]'"
