"""The channels and subscriptions of an app's store. Each call has an async form and a synchronous twin."""

from typing import TypedDict, Unpack
from uuid import UUID

from tidewheel.model.channel import KEEP_OLD, Channel, ChannelSpec, NewChannel
from tidewheel.model.notification import (
    LATE_AFTER,
    Delivery,
    DeliveryState,
    Subscription,
    SubscriptionSpec,
    parse_events,
)
from tidewheel.sdk.desk import Desk
from tidewheel.store.base import Store
from tidewheel.store.notifying import TEST_WAIT, tried
from tidewheel.tasks.durations import Duration, parse_duration


class Wish(TypedDict, total=False):
    """What of all events a channel shall hear of, and in which words."""

    kind: str
    schedule: str
    label: tuple[str, str]
    tenant: str
    late_after: Duration
    text: str


class Notifications:
    """Who is told of what becomes of jobs."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def aadd_channel(self, name: str, address: str, *, secret: str | None = None) -> NewChannel:
        """Add a webhook (`https://…`) or a service (`mailtos://…`, `slack://…`); the answer has its secret, once."""
        from tidewheel.notify import check_address  # noqa: PLC0415 - few apps add channels

        await check_address(address)
        spec = ChannelSpec(name=name, address=address, secret=secret)
        return await self._desk.use(lambda store: store.add_channel(spec))

    async def achannels(self) -> list[Channel]:
        """Return the channels, by name."""
        return await self._desk.use(lambda store: store.channels())

    async def aremove_channel(self, channel: Channel | UUID) -> None:
        """Remove a channel with its subscriptions and deliveries. Raises NotFound."""
        channel_id = channel.id if isinstance(channel, Channel) else channel
        await self._desk.use(lambda store: store.remove_channel(channel_id))

    async def aenable_channel(self, channel: Channel | UUID) -> Channel:
        """Let a channel that was disabled send again. Raises NotFound."""
        channel_id = channel.id if isinstance(channel, Channel) else channel
        return await self._desk.use(lambda store: store.enable_channel(channel_id))

    async def atest(self, channel: Channel | UUID, *, wait: Duration = TEST_WAIT) -> Delivery:
        """Send a test message, and return what it came to within this time. Raises NotFound."""
        channel_id = channel.id if isinstance(channel, Channel) else channel
        lasts = parse_duration(wait, "wait")

        async def send(store: Store) -> Delivery:
            return await tried(store, await store.test_channel(channel_id), self._desk.pause, wait=lasts)

        return await self._desk.use(send)

    async def arotate_secret(self, channel: Channel | UUID, *, keep: Duration = KEEP_OLD) -> NewChannel:
        """Let a webhook sign by a new secret, and for a while by the old one, too. Raises NotFound."""
        channel_id = channel.id if isinstance(channel, Channel) else channel
        lasts = parse_duration(keep, "keep")
        return await self._desk.use(lambda store: store.rotate_secret(channel_id, keep=lasts))

    async def asubscribe(self, channel: str, *events: str, **wish: Unpack[Wish]) -> Subscription:
        """Let a channel hear of events: `subscribe("ops", "dead", "missed", kind="mail")`. Raises NotFound."""
        spec = SubscriptionSpec(
            channel=channel,
            events=parse_events(events),
            kind=wish.get("kind"),
            schedule=wish.get("schedule"),
            label=wish.get("label"),
            tenant=wish.get("tenant"),
            late_after=parse_duration(wish["late_after"], "late_after") if "late_after" in wish else LATE_AFTER,
            text=wish.get("text", ""),
        )
        return await self._desk.use(lambda store: store.subscribe(spec))

    async def asubscriptions(self) -> list[Subscription]:
        """Return the subscriptions, oldest first."""
        return await self._desk.use(lambda store: store.subscriptions())

    async def aunsubscribe(self, subscription: Subscription | UUID) -> None:
        """Remove a subscription. Raises NotFound."""
        number = subscription.id if isinstance(subscription, Subscription) else subscription
        await self._desk.use(lambda store: store.unsubscribe(number))

    async def alog(self, *, state: str | None = None, limit: int = 50) -> list[Delivery]:
        """Return the delivery log, newest first."""
        wanted = None if state is None else DeliveryState(state)
        return await self._desk.use(lambda store: store.deliveries(state=wanted, limit=limit))

    async def aresend(self, delivery: Delivery | UUID) -> Delivery:
        """Send a message again. Raises NotFound."""
        number = delivery.id if isinstance(delivery, Delivery) else delivery
        return await self._desk.use(lambda store: store.resend(number))

    # The synchronous twins

    def add_channel(self, name: str, address: str, *, secret: str | None = None) -> NewChannel:
        """Add a webhook (`https://…`) or a service (`mailtos://…`, `slack://…`); the answer has its secret, once."""
        return self._desk.run(self.aadd_channel(name, address, secret=secret))

    def channels(self) -> list[Channel]:
        """Return the channels, by name."""
        return self._desk.run(self.achannels())

    def remove_channel(self, channel: Channel | UUID) -> None:
        """Remove a channel with its subscriptions and deliveries. Raises NotFound."""
        self._desk.run(self.aremove_channel(channel))

    def enable_channel(self, channel: Channel | UUID) -> Channel:
        """Let a channel that was disabled send again. Raises NotFound."""
        return self._desk.run(self.aenable_channel(channel))

    def test(self, channel: Channel | UUID, *, wait: Duration = TEST_WAIT) -> Delivery:
        """Send a test message, and return what it came to within this time. Raises NotFound."""
        return self._desk.run(self.atest(channel, wait=wait))

    def rotate_secret(self, channel: Channel | UUID, *, keep: Duration = KEEP_OLD) -> NewChannel:
        """Let a webhook sign by a new secret, and for a while by the old one, too. Raises NotFound."""
        return self._desk.run(self.arotate_secret(channel, keep=keep))

    def subscribe(self, channel: str, *events: str, **wish: Unpack[Wish]) -> Subscription:
        """Let a channel hear of events: `subscribe("ops", "dead", "missed", kind="mail")`. Raises NotFound."""
        return self._desk.run(self.asubscribe(channel, *events, **wish))

    def subscriptions(self) -> list[Subscription]:
        """Return the subscriptions, oldest first."""
        return self._desk.run(self.asubscriptions())

    def unsubscribe(self, subscription: Subscription | UUID) -> None:
        """Remove a subscription. Raises NotFound."""
        self._desk.run(self.aunsubscribe(subscription))

    def log(self, *, state: str | None = None, limit: int = 50) -> list[Delivery]:
        """Return the delivery log, newest first."""
        return self._desk.run(self.alog(state=state, limit=limit))

    def resend(self, delivery: Delivery | UUID) -> Delivery:
        """Send a message again. Raises NotFound."""
        return self._desk.run(self.aresend(delivery))
