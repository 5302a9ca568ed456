"""The page about notifications does what it says, and the reference has every event."""

import base64
import json
from datetime import UTC
from pathlib import Path

from standardwebhooks import Webhook

from tests.docs.test_sdk_examples import run, save
from tidewheel.clock import SystemClock
from tidewheel.model import alert
from tidewheel.model.alert import Rule
from tidewheel.model.alert_bounds import Bounds
from tidewheel.model.notification import MEANINGS, Event, type_of

ROOT = Path(__file__).parents[2]
PAGE = "docs/how-to/notifications-and-alerts.md"


def test_the_program_about_channels_does_what_it_says(tmp_path: Path) -> None:
    notify, _ = save(tmp_path, PAGE)
    assert run(tmp_path, notify).splitlines() == [
        "https://hooks.example.org/… whsec_",
        "[['dead', 'missed', 'recovered'], ['late'], ['cancelled']]",
        "[]",
        "test pending",
    ]


def test_the_receiver_of_the_page_believes_what_is_signed(tmp_path: Path) -> None:
    _, receive = save(tmp_path, PAGE)
    secret = "whsec_" + base64.b64encode(bytes(32)).decode()
    body = json.dumps({"id": "a.1.dead", "type": "dev.tidewheel.job.dead", "data": {"job_id": "a"}})
    now = SystemClock().now().astimezone(UTC)
    headers = {
        "webhook-id": "a.1.dead",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign("a.1.dead", now, body),
    }
    with (tmp_path / receive).open("a") as file:
        file.write(f"\n\nprint(receive({body.encode()!r}, {headers!r}, {secret!r}))\n")
    assert (
        run(tmp_path, receive).strip() == "{'seen before?': 'a.1.dead', 'what': 'dev.tidewheel.job.dead', 'job': 'a'}"
    )


def test_the_reference_has_every_event() -> None:
    page = (ROOT / "docs/reference/events.md").read_text()
    for event in Event:
        assert f"| `{event}` | `{type_of(event)}` | {MEANINGS[event]} |" in page


def test_the_reference_has_every_rule_of_alerts() -> None:
    page = (ROOT / "docs/reference/events.md").read_text()
    for bound in Bounds.__struct_fields__:
        assert f"`{bound}`" in page
    for rule in Rule:
        assert f"| `{rule}` | {alert.MEANINGS[rule]} |" in page
