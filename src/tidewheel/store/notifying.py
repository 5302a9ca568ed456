"""What every store promises about channels, subscriptions and deliveries.

The rules of `store.base` hold here, too. What subscriptions may match is noted in the transaction of each outcome, so
that it is there if and only if the outcome is. From there on all is done by a duty, and twice does no harm: a message
has a key, by which a channel has it once; and what a sender says counts only while nobody has tried since.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from tidewheel.model.channel import KEEP_OLD, Channel, ChannelSpec, NewChannel, Parcel
from tidewheel.model.notification import (
    KEEP_DELIVERIES,
    Answer,
    Delivery,
    DeliveryState,
    Subscription,
    SubscriptionSpec,
)


class Shares(NamedTuple):
    """How many messages may be under way at a time: of a channel, of whoever owns channels, and in all."""

    channel: int = 20
    owner: int = 20
    all: int = 20


USUAL_SHARES: Final = Shares()
LOOK_AGAIN: Final = 0.25
"""Seconds between looks at a delivery that somebody waits for."""
TEST_WAIT: Final = timedelta(seconds=35)
"""How long to wait for the answer to a test message: a little longer than a receiver may take."""


class ChannelStore(Protocol):
    """For whoever wants to be told. A channel of no tenant is the operators', and hears of all."""

    async def add_channel(self, spec: ChannelSpec) -> NewChannel:
        """Add a channel; the answer is the only one that has its secret. Raises Invalid, and Conflict.

        A name is taken once, and an owner has at most 50 channels.
        """
        ...

    async def channels(self, *, tenant: str | None = None) -> list[Channel]:
        """Return the channels by name; with a tenant, its own."""
        ...

    async def remove_channel(self, channel_id: UUID, *, tenant: str | None = None) -> None:
        """Remove a channel with its subscriptions and deliveries. Raises NotFound."""
        ...

    async def enable_channel(self, channel_id: UUID, *, tenant: str | None = None) -> Channel:
        """Let a channel that was disabled send again, from now on. Raises NotFound."""
        ...

    async def rotate_secret(
        self, channel_id: UUID, *, keep: timedelta = KEEP_OLD, tenant: str | None = None
    ) -> NewChannel:
        """Let a webhook sign by a new secret, which is in the answer alone, and by the old one for so long, too.

        Raises Invalid, and NotFound.
        """
        ...

    async def test_channel(self, channel_id: UUID, *, tenant: str | None = None) -> Delivery:
        """Send a test message at once, also by a channel that is disabled; it is tried once. Raises NotFound."""
        ...

    async def subscribe(self, spec: SubscriptionSpec, *, tenant: str | None = None) -> Subscription:
        """Add a subscription to a channel of the same owner, who may have 200. Raises Invalid, NotFound and Conflict.

        With a tenant it hears of that one alone. It hears of all that ends after this call has returned.
        """
        ...

    async def subscriptions(self, *, tenant: str | None = None) -> list[Subscription]:
        """Return the subscriptions, oldest first; with a tenant, those to its own channels."""
        ...

    async def unsubscribe(self, subscription_id: UUID, *, tenant: str | None = None) -> None:
        """Remove a subscription. Raises NotFound."""
        ...

    async def deliveries(
        self,
        *,
        tenant: str | None = None,
        state: DeliveryState | None = None,
        limit: int = 50,
        after: UUID | None = None,
    ) -> list[Delivery]:
        """Return the delivery log, newest first, beginning after the id `after`; with a tenant, of its own channels."""
        ...

    async def resend(self, delivery_id: UUID, *, tenant: str | None = None) -> Delivery:
        """Send a message again, whether it was sent or not; it is tried for another day. Raises NotFound."""
        ...


class OutboxStore(Protocol):
    """For the duty that tells."""

    async def spread_happenings(self, *, limit: int = 500) -> int:
        """Turn what was noted into deliveries for those whose subscriptions match; return how much there was."""
        ...

    async def notice_late(self, *, limit: int = 500) -> int:
        """Tell of jobs that wait and have not begun, to those who want to hear that they are late; return how many.

        Counted is from when a job might have begun. Each subscription hears of a job once, whoever notices it, and what
        its run comes to later does not tell of it again.
        """
        ...

    async def take_deliveries(self, shares: Shares = USUAL_SHARES, *, under_way: Sequence[UUID] = ()) -> list[Parcel]:
        """Take messages that are due; nobody else gets them for two minutes.

        `under_way` has the channel of each message that the caller has taken and not closed, which count towards the
        shares. Owners take turns, and so do the channels of an owner; of a channel those due longest come first.
        """
        ...

    async def close_delivery(self, parcel: Parcel, answer: Answer) -> bool:
        """Store what a try came to; False if someone has tried since, and then nothing happens.

        What was not accepted is tried again, ever more rarely, for a day. If the receiver is gone, its channel is
        disabled and nothing is tried any more.
        """
        ...

    async def retire_deliveries(self, *, keep: timedelta = KEEP_DELIVERIES, limit: int = 1000) -> int:
        """Forget deliveries that ended so long ago; return how many."""
        ...


async def tried(
    store: ChannelStore,
    delivery: Delivery,
    pause: Callable[[float], Awaitable[None]],
    *,
    wait: timedelta,
    tenant: str | None = None,
) -> Delivery:
    """Return a delivery as it is after its next try, or after so long."""
    just_behind = UUID(int=delivery.id.int + 1)
    for _ in range(int(wait.total_seconds() / LOOK_AGAIN)):
        if delivery.state is not DeliveryState.PENDING or delivery.attempts:
            break
        await pause(LOOK_AGAIN)
        found = await store.deliveries(tenant=tenant, limit=1, after=just_behind)
        delivery = found[0] if found and found[0].id == delivery.id else delivery
    return delivery
