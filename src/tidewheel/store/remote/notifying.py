"""Channels, subscriptions and the delivery log over HTTP."""

from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from tidewheel.model.channel import KEEP_OLD, Channel, ChannelSpec, NewChannel
from tidewheel.model.notification import Delivery, DeliveryState, Subscription, SubscriptionSpec, check_subscription
from tidewheel.model.notification_documents import (
    ChannelDocument,
    ChannelList,
    DeliveryDocument,
    DeliveryPage,
    NewChannelDocument,
    SubscriptionDocument,
    SubscriptionList,
)
from tidewheel.store.access import check_keys_page
from tidewheel.store.remote.transport import Transport, tenant_header

MOST_SHOWN: Final = 200
"""How many a server shows on one page."""


class Notifying:
    """See `store.notifying.ChannelStore`."""

    _transport: Transport

    async def add_channel(self, spec: ChannelSpec) -> NewChannel:
        asked = {"name": spec.name, "address": spec.address, "secret": spec.secret}
        body = {name: value for name, value in asked.items() if value is not None}
        headers = tenant_header(spec.tenant)
        made = await self._transport.post("/v1/channels", body, NewChannelDocument, safe=False, headers=headers)
        return made.new()

    async def channels(self, *, tenant: str | None = None) -> list[Channel]:
        found = await self._transport.get("/v1/channels", ChannelList, headers=tenant_header(tenant))
        return [channel.record() for channel in found.channels]

    async def remove_channel(self, channel_id: UUID, *, tenant: str | None = None) -> None:
        await self._transport.write("DELETE", f"/v1/channels/{channel_id}", safe=False, headers=tenant_header(tenant))

    async def enable_channel(self, channel_id: UUID, *, tenant: str | None = None) -> Channel:
        path, headers = f"/v1/channels/{channel_id}/enable", tenant_header(tenant)
        return (await self._transport.post(path, None, ChannelDocument, safe=True, headers=headers)).record()

    async def rotate_secret(
        self, channel_id: UUID, *, keep: timedelta = KEEP_OLD, tenant: str | None = None
    ) -> NewChannel:
        path, body = f"/v1/channels/{channel_id}/rotate", {"keep": keep.total_seconds()}
        made = await self._transport.post(path, body, NewChannelDocument, safe=False, headers=tenant_header(tenant))
        return made.new()

    async def test_channel(self, channel_id: UUID, *, tenant: str | None = None) -> Delivery:
        path, headers = f"/v1/channels/{channel_id}/test", tenant_header(tenant)
        return (await self._transport.post(path, None, DeliveryDocument, safe=False, headers=headers)).record()

    async def subscribe(self, spec: SubscriptionSpec, *, tenant: str | None = None) -> Subscription:
        check_subscription(spec)
        body, headers = _wish(spec), tenant_header(tenant)
        made = await self._transport.post("/v1/subscriptions", body, SubscriptionDocument, safe=False, headers=headers)
        return made.record()

    async def subscriptions(self, *, tenant: str | None = None) -> list[Subscription]:
        found = await self._transport.get("/v1/subscriptions", SubscriptionList, headers=tenant_header(tenant))
        return [wish.record() for wish in found.subscriptions]

    async def unsubscribe(self, subscription_id: UUID, *, tenant: str | None = None) -> None:
        path = f"/v1/subscriptions/{subscription_id}"
        await self._transport.write("DELETE", path, safe=False, headers=tenant_header(tenant))

    async def deliveries(
        self,
        *,
        tenant: str | None = None,
        state: DeliveryState | None = None,
        limit: int = 50,
        after: UUID | None = None,
    ) -> list[Delivery]:
        check_keys_page(limit)
        found: list[Delivery] = []
        while len(found) < limit:
            wanted = min(limit - len(found), MOST_SHOWN)
            query = {"state": state, "limit": wanted, "after": after}
            page = await self._transport.get("/v1/deliveries", DeliveryPage, query, headers=tenant_header(tenant))
            found += [delivery.record() for delivery in page.deliveries]
            if len(page.deliveries) < wanted:
                break
            after = found[-1].id
        return found

    async def resend(self, delivery_id: UUID, *, tenant: str | None = None) -> Delivery:
        path, headers = f"/v1/deliveries/{delivery_id}/resend", tenant_header(tenant)
        return (await self._transport.post(path, None, DeliveryDocument, safe=False, headers=headers)).record()


def _wish(spec: SubscriptionSpec) -> dict[str, Any]:
    asked = {
        "channel": spec.channel,
        "events": sorted(spec.events),
        "tenant": spec.tenant,
        "kind": spec.kind,
        "schedule": spec.schedule,
        "label": None if spec.label is None else "=".join(spec.label),
        "late_after": spec.late_after.total_seconds(),
        "text": spec.text,
    }
    return {name: value for name, value in asked.items() if value is not None}
