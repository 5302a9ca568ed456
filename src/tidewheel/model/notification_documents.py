"""Channels, subscriptions and deliveries as a server shows them, and what whoever asks makes of them."""

from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID

import msgspec
from msgspec import Meta

from tidewheel.model.channel import Channel, ChannelType, NewChannel
from tidewheel.model.checks import duration_text, parse_duration
from tidewheel.model.notification import Delivery, DeliveryAttempt, DeliveryState, Event, Subscription

Instant = Annotated[datetime, Meta(tz=True)]


class ChannelDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A channel; its address and secret are not shown."""

    id: UUID
    name: str
    tenant: str | None
    type: ChannelType
    address: str
    """The part that is no secret."""
    created_at: Instant
    disabled: str | None
    """Why nothing is sent any more."""

    @classmethod
    def of(cls, channel: Channel) -> "ChannelDocument":
        """Return the document of a channel."""
        return ChannelDocument(**_fields_of(channel))

    def record(self) -> Channel:
        """Return the channel."""
        same = {name: getattr(self, name) for name in ChannelDocument.__struct_fields__ if name != "address"}
        return Channel(**same, shown=self.address)


class NewChannelDocument(ChannelDocument, frozen=True, kw_only=True):
    """A channel that was just made."""

    secret: str | None
    """Shown this once; receivers check signatures with it."""

    @classmethod
    def of_new(cls, made: NewChannel) -> "NewChannelDocument":
        """Return the document of a channel with its secret."""
        return NewChannelDocument(**_fields_of(made.channel), secret=made.secret)

    def new(self) -> NewChannel:
        """Return the channel with its secret."""
        return NewChannel(channel=self.record(), secret=self.secret)


class ChannelList(msgspec.Struct, frozen=True, kw_only=True):
    """The channels, by name."""

    channels: list[ChannelDocument]


class SubscriptionDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What a channel hears of."""

    id: UUID
    channel: str
    channel_id: UUID
    events: list[Event]
    tenant: str | None
    kind: str | None
    schedule: str | None
    label: str | None
    late_after: str
    text: str
    created_at: Instant

    @classmethod
    def of(cls, wish: Subscription) -> Self:
        """Return the document of a subscription."""
        same = {name: getattr(wish, name) for name in cls.__struct_fields__}
        label = None if wish.label is None else "=".join(wish.label)
        told = {"events": sorted(wish.events), "label": label, "late_after": duration_text(wish.late_after)}
        return cls(**(same | told))

    def record(self) -> Subscription:
        """Return the subscription."""
        same = {name: getattr(self, name) for name in self.__struct_fields__}
        label = None if self.label is None else self.label.partition("=")[::2]
        meant = {"events": frozenset(self.events), "label": label, "late_after": parse_duration(self.late_after)}
        return Subscription(**(same | meant))


class SubscriptionList(msgspec.Struct, frozen=True, kw_only=True):
    """The subscriptions, oldest first."""

    subscriptions: list[SubscriptionDocument]


class DeliveryAttemptDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One try to deliver a message."""

    at: Instant
    accepted: bool
    answer: str
    """What it came to."""


class DeliveryDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A message, and how far it is."""

    id: UUID
    event_id: str
    """The same whenever it is sent."""
    channel: str
    channel_id: UUID
    event: str
    """The name of an event; a newer server may know more of them."""
    tenant: str | None
    """Whose job it was about; None for what concerns all."""
    state: DeliveryState
    tries: int
    """Since it was first to be sent, or was last to be sent again."""
    answer: str
    """What the last try came to."""
    attempts: list[DeliveryAttemptDocument]
    """All tries, first to last."""
    created_at: Instant
    next_at: Instant | None
    ended_at: Instant | None
    body: str
    """The CloudEvent."""

    @classmethod
    def of(cls, delivery: Delivery) -> Self:
        """Return the document of a delivery."""
        same = {name: getattr(delivery, name) for name in cls.__struct_fields__ if name not in _OTHERWISE}
        attempts = [DeliveryAttemptDocument(**msgspec.structs.asdict(each)) for each in delivery.attempts]
        return cls(**same, event_id=delivery.key, attempts=attempts)

    def record(self) -> Delivery:
        """Return the delivery."""
        same = {name: getattr(self, name) for name in self.__struct_fields__ if name not in _OTHERWISE}
        attempts = tuple(DeliveryAttempt(**msgspec.structs.asdict(each)) for each in self.attempts)
        return Delivery(**same, key=self.event_id, attempts=attempts)


class DeliveryPage(msgspec.Struct, frozen=True, kw_only=True):
    """Deliveries, newest first."""

    deliveries: list[DeliveryDocument]
    next_cursor: str | None


_OTHERWISE = ("event_id", "attempts")


def _fields_of(channel: Channel) -> dict[str, Any]:
    same = {name: getattr(channel, name) for name in ChannelDocument.__struct_fields__ if name != "address"}
    return same | {"address": channel.shown}
