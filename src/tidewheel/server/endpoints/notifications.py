"""Notifications: channels, subscriptions and the delivery log."""

from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from msgspec import Meta

from tidewheel.errors import Invalid
from tidewheel.model.access import Action
from tidewheel.model.channel import KEEP_OLD, MAX_ADDRESS, ChannelSpec
from tidewheel.model.checks import duration_text
from tidewheel.model.message_text import MAX_TEMPLATE
from tidewheel.model.notification import LATE_AFTER, DeliveryState, Event, SubscriptionSpec
from tidewheel.model.notification_documents import (
    ChannelDocument,
    ChannelList,
    DeliveryDocument,
    DeliveryPage,
    NewChannelDocument,
    SubscriptionDocument,
    SubscriptionList,
)
from tidewheel.notify import check_address
from tidewheel.server.cursors import seal_id, unseal_id
from tidewheel.server.endpoint import Answer, Call, NoQuery
from tidewheel.server.job_request import Duration, Name, duration_of
from tidewheel.server.names import id_in
from tidewheel.server.recording import record
from tidewheel.server.service import Service

CREATED: Final = 201
NO_CONTENT: Final = 204
MOST_PER_PAGE: Final = 200
_SCOPE: Final = "deliveries"


class ChannelRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where messages shall go."""

    name: Name
    address: Annotated[str, Meta(min_length=1, max_length=MAX_ADDRESS)]
    """The URL of a webhook; or, for operators, of a service, as apprise writes them (mailtos, slack, …)."""
    secret: Annotated[str, Meta(max_length=200)] | None = None
    """By which a webhook signs (`whsec_…`); made and answered once if it is missing."""


class RotationRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a webhook changes its secret."""

    keep: Duration | None = None
    """For how long it signs by the old secret, too; a day if it is missing."""


class SubscriptionRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a channel shall hear of; all conditions must hold."""

    channel: Name
    events: Annotated[list[Event], Meta(min_length=1, max_length=len(Event))]
    tenant: Name | None = None
    """Of whose jobs; for a channel of the operators, which otherwise hears of all."""
    kind: Name | None = None
    schedule: Name | None = None
    label: Annotated[str, Meta(max_length=401)] | None = None
    """As `name=value`."""
    late_after: Duration | None = None
    """How long after its time a job may begin before that is an event; 5 minutes if it is missing."""
    text: Annotated[str, Meta(max_length=MAX_TEMPLATE)] = ""
    """The words for people, with $kind, $event, $error and the like."""


class DeliveryQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which part of the log to return."""

    state: DeliveryState | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST_PER_PAGE)] = 50
    cursor: Annotated[str, Meta(max_length=200)] | None = None
    """The `next_cursor` of the page before."""
    after: UUID | None = None
    """Begin after the delivery with this id instead."""


async def add_channel(service: Service, call: Call[ChannelRequest, NoQuery]) -> Answer:
    """Add a channel; what is sent by it is signed, and the secret is told this once."""
    request = call.body
    if not call.actor.everywhere and not request.address.lower().startswith(("http://", "https://")):
        raise Invalid("address", "must be that of a webhook; services are set up by operators of all tenants")
    await check_address(request.address)
    spec = ChannelSpec(name=request.name, address=request.address, secret=request.secret, tenant=call.scope)
    made = await service.store.add_channel(spec)
    channel = made.channel
    told: dict[str, Any] = {"did": "add", "name": channel.name, "type": channel.type.value, "address": channel.shown}
    await _record(service, call, channel.id, **told)
    return Answer(NewChannelDocument.of_new(made), CREATED)


async def channels(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Return the channels."""
    found = await service.store.channels(tenant=call.scope)
    return Answer(ChannelList(channels=[ChannelDocument.of(channel) for channel in found]))


async def remove_channel(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Remove a channel with its subscriptions and its part of the log."""
    channel_id = id_in(call, "channel")
    await service.store.remove_channel(channel_id, tenant=call.scope)
    await _record(service, call, channel_id, did="remove")
    return Answer(None, NO_CONTENT)


async def enable_channel(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Let a channel that was disabled send again."""
    channel = await service.store.enable_channel(id_in(call, "channel"), tenant=call.scope)
    await _record(service, call, channel.id, did="enable")
    return Answer(ChannelDocument.of(channel))


async def send_test(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Send a test message; the log tells how it was answered."""
    delivery = await service.store.test_channel(id_in(call, "channel"), tenant=call.scope)
    await _record(service, call, delivery.channel_id, did="test")
    return Answer(DeliveryDocument.of(delivery))


async def rotate_secret(service: Service, call: Call[RotationRequest, NoQuery]) -> Answer:
    """Let a webhook sign by a new secret, which is told this once."""
    keep = KEEP_OLD if call.body.keep is None else duration_of(call.body.keep, "keep")
    made = await service.store.rotate_secret(id_in(call, "channel"), keep=keep, tenant=call.scope)
    await _record(service, call, made.channel.id, did="rotate", keep=duration_text(keep))
    return Answer(NewChannelDocument.of_new(made))


async def subscribe(service: Service, call: Call[SubscriptionRequest, NoQuery]) -> Answer:
    """Let a channel hear of events."""
    request = call.body
    spec = SubscriptionSpec(
        channel=request.channel,
        events=frozenset(request.events),
        tenant=request.tenant,
        kind=request.kind,
        schedule=request.schedule,
        label=None if request.label is None else parse_label(request.label),
        late_after=LATE_AFTER if request.late_after is None else duration_of(request.late_after, "late_after"),
        text=request.text,
    )
    subscription = await service.store.subscribe(spec, tenant=call.scope)
    told: dict[str, Any] = {"did": "subscribe", "channel": spec.channel, "events": sorted(spec.events)}
    await _record(service, call, subscription.id, **told)
    return Answer(SubscriptionDocument.of(subscription), CREATED)


async def subscriptions(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Return the subscriptions."""
    found = await service.store.subscriptions(tenant=call.scope)
    return Answer(SubscriptionList(subscriptions=[SubscriptionDocument.of(wish) for wish in found]))


async def unsubscribe(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Remove a subscription."""
    subscription_id = id_in(call, "subscription")
    await service.store.unsubscribe(subscription_id, tenant=call.scope)
    await _record(service, call, subscription_id, did="unsubscribe")
    return Answer(None, NO_CONTENT)


async def deliveries(service: Service, call: Call[None, DeliveryQuery]) -> Answer:
    """Return a page of the delivery log."""
    query = call.query
    after = query.after or unseal_id(_SCOPE, query.cursor)
    found = await service.store.deliveries(tenant=call.scope, state=query.state, limit=query.limit, after=after)
    last = found[-1].id if len(found) == query.limit else None
    return Answer(
        DeliveryPage(deliveries=[DeliveryDocument.of(one) for one in found], next_cursor=seal_id(_SCOPE, last))
    )


async def resend(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Send a message again."""
    delivery = await service.store.resend(id_in(call, "delivery"), tenant=call.scope)
    await _record(service, call, delivery.id, did="resend")
    return Answer(DeliveryDocument.of(delivery))


def parse_label(text: str) -> tuple[str, str]:
    """Return the label that `name=value` stands for."""
    name, equals, value = text.partition("=")
    if not equals:
        raise Invalid("label", f"must be name=value, not {text[:40]!r}")
    return name, value


async def _record(service: Service, call: Call[Any, Any], subject: UUID, **told: Any) -> None:
    everywhere = call.scope is None
    await record(service, call, Action.NOTIFICATIONS_WRITE, subject, everywhere=everywhere, **told)
