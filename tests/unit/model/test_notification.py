"""What a channel and a subscription may be, what matches, and when to try again."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from tidewheel.errors import Invalid
from tidewheel.model.channel import ChannelSpec, ChannelType, prepare_channel
from tidewheel.model.notification import (
    Event,
    Happening,
    Subscription,
    SubscriptionSpec,
    check_subscription,
    messages_of,
    next_try,
    outcomes_of,
    parse_events,
)

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def bytes_of(count: int) -> bytes:
    return bytes(range(count))


@pytest.mark.parametrize(
    "address",
    [
        "",
        "hooks",
        "://x",
        "https:/host",
        "https://",
        "https:///path",
        "https://ho st/",
        "https://host\r\nX: y/",
        "https://host:port/",
        "https://host:99999/",
        "https://[::1/",
        "https://user:pass@host/",
        "https://host/#part",
        "https://h\u00f6st/",
        "https://host/" + "x" * 2000,
    ],
)
def test_an_address_that_is_none_is_refused_in_one_sentence(address: str) -> None:
    with pytest.raises(Invalid, match=r"^address: ") as refused:
        prepare_channel(ChannelSpec(name="a", address=address), bytes_of)
    assert "pass" not in str(refused.value).replace("password", "")


@pytest.mark.parametrize("secret", ["", "x", "whsec_", "whsec_AAAA", "whsec_!!!!", "AAAA" * 10, "whsec_" + "A" * 100])
def test_a_secret_that_cannot_sign_is_refused(secret: str) -> None:
    with pytest.raises(Invalid, match=r"^secret: "):
        prepare_channel(ChannelSpec(name="a", address="https://host", secret=secret), bytes_of)


@pytest.mark.parametrize(
    ("address", "kind", "shown"),
    [
        ("https://Hooks.example:8443/T0/B0/key?token=1", ChannelType.WEBHOOK, "https://hooks.example:8443/…"),
        ("http://[2606:2800::1]/x", ChannelType.WEBHOOK, "http://[2606:2800::1]/…"),
        ("slack://tokenA/tokenB/tokenC", ChannelType.SERVICE, "slack://…"),
        ("mailtos://user:hunter2@mail.example", ChannelType.SERVICE, "mailtos://…"),
    ],
)
def test_what_is_shown_of_an_address_is_no_secret(address: str, kind: ChannelType, shown: str) -> None:
    spec, found, told = prepare_channel(ChannelSpec(name="a", address=address), bytes_of)
    assert (found, told) == (kind, shown)
    assert (spec.secret is not None) == (kind is ChannelType.WEBHOOK)
    assert "token" not in repr(spec)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"events": frozenset()}, "events"),
        ({"kind": "a b"}, "kind"),
        ({"label": ("a b", "x")}, "label"),
        ({"late_after": timedelta(days=31)}, "late_after"),
        ({"text": "$"}, "text"),
        ({"text": "$nothing"}, "text"),
        ({"text": "${kind"}, "text"),
        ({"text": "x" * 2001}, "text"),
    ],
)
def test_a_wish_that_cannot_be_meant_is_refused_by_field(wrong: dict[str, Any], field: str) -> None:
    fields: dict[str, Any] = {"channel": "a", "events": frozenset([Event.DEAD]), **wrong}
    with pytest.raises(Invalid, match=f"^{field}: "):
        check_subscription(SubscriptionSpec(**fields))


def test_an_event_that_is_none_is_refused_by_name() -> None:
    with pytest.raises(Invalid, match="not 'exploded'"):
        parse_events(["dead", "exploded"])


def wish(*events: Event, **fields: Any) -> Subscription:
    return Subscription(
        channel="a", events=frozenset(events), id=uuid4(), channel_id=uuid4(), created_at=NOON, **fields
    )


def happening(event: Event = Event.SUCCEEDED, **fields: Any) -> Happening:
    values: dict[str, Any] = {"kind": "mail", "tenant": "acme", "job_id": UUID(int=1), "token": 3, "queue": "default"}
    return Happening(id=1, at=NOON, event=event, **{**values, **fields})


@pytest.mark.parametrize(
    ("fields", "matches"),
    [
        ({}, True),
        ({"tenant": "acme", "kind": "mail"}, True),
        ({"tenant": "other"}, False),
        ({"kind": "other"}, False),
        ({"schedule": "nightly"}, False),
        ({"label": ("team", "blue")}, True),
        ({"label": ("team", "red")}, False),
        ({"label": ("other", "")}, False),
    ],
)
def test_all_conditions_of_a_subscription_must_hold(fields: dict[str, Any], matches: bool) -> None:  # noqa: FBT001 - of a table
    found = list(messages_of(happening(labels={"team": "blue"}), [wish(Event.SUCCEEDED, **fields)]))
    assert bool(found) is matches


def test_a_success_after_a_failure_or_after_a_dead_one_of_its_schedule_is_a_recovery() -> None:
    both = wish(Event.SUCCEEDED, Event.RECOVERED)
    told = [
        [message.event for message in messages_of(happening(**fields), [both])]
        for fields in ({}, {"failures": 1}, {"after_dead": True})
    ]
    assert told == [[Event.SUCCEEDED]] + [[Event.RECOVERED, Event.SUCCEEDED]] * 2


def test_words_of_strangers_are_no_template() -> None:
    error = {"reason": "error", "message": "$kind ${kind} %s {kind}"}
    (message,) = messages_of(happening(Event.DEAD, error=error), [wish(Event.DEAD, text="$error")])
    assert message.text == "$kind ${kind} %s {kind}"


def test_the_envelope_is_a_cloud_event_with_an_id_that_stays() -> None:
    first, second = (next(messages_of(happening(Event.DEAD), [wish(Event.DEAD)])) for _ in range(2))
    event = msgspec.json.decode(first.body)
    assert event["id"] == first.key == second.key == f"{UUID(int=1)}.3.dead"
    assert (event["specversion"], event["type"]) == ("1.0", "dev.tidewheel.job.dead")
    assert event["data"]["kind"] == "mail"


def test_what_must_be_noted_follows_from_the_events() -> None:
    assert outcomes_of([Event.RECOVERED, Event.MISSED]) == ["missed", "succeeded"]
    assert outcomes_of([Event.LATE]) == ["dead", "failed", "succeeded"]


def test_tries_end_after_a_day() -> None:
    assert next_try(1, NOON, NOON) == NOON + timedelta(seconds=5)
    assert next_try(100, NOON, NOON + timedelta(hours=21)) is not None
    assert next_try(100, NOON, NOON + timedelta(hours=23)) is None


@pytest.mark.parametrize(
    ("wrong", "field"), [({"label": ("team", "blue")}, "label"), ({"kind": "mail", "schedule": "nightly"}, "schedule")]
)
def test_a_condition_that_no_alert_can_meet_is_refused(wrong: dict[str, Any], field: str) -> None:
    spec = SubscriptionSpec(channel="a", events=frozenset([Event.DEAD, Event.FIRING]), **wrong)
    with pytest.raises(Invalid, match=f"^{field}: "):
        check_subscription(spec)


def test_only_the_first_run_of_a_job_is_late() -> None:
    late: dict[str, Any] = {"due_at": NOON - timedelta(hours=1), "started_at": NOON}
    told = [list(messages_of(happening(token=token, **late), [wish(Event.LATE)])) for token in (1, 2)]
    assert [len(each) for each in told] == [1, 0]
