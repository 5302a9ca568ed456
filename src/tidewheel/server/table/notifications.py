"""Endpoints of notifications."""

from typing import Final

from tidewheel.model.access import Action
from tidewheel.server.endpoint import Endpoint
from tidewheel.server.endpoints import notifications

_GROUP: Final = "notifications"

NOTIFICATIONS: Final = (
    Endpoint(
        method="GET",
        path="/v1/channels",
        name="list_channels",
        summary="List the channels",
        group=_GROUP,
        action=Action.NOTIFICATIONS_READ,
        handler=notifications.channels,
        answers={200: notifications.ChannelList},
    ),
    Endpoint(
        method="POST",
        path="/v1/channels",
        name="add_channel",
        summary="Add a channel that messages go by",
        description="The secret by which a webhook signs is in this answer and in no other.",
        group=_GROUP,
        action=Action.NOTIFICATIONS_WRITE,
        handler=notifications.add_channel,
        body=notifications.ChannelRequest,
        answers={201: notifications.NewChannelDocument},
        errors=("conflict",),
    ),
    Endpoint(
        method="DELETE",
        path="/v1/channels/{id}",
        name="remove_channel",
        summary="Remove a channel with its subscriptions and deliveries",
        group=_GROUP,
        action=Action.NOTIFICATIONS_WRITE,
        handler=notifications.remove_channel,
        answers={204: None},
    ),
    Endpoint(
        method="POST",
        path="/v1/channels/{id}/enable",
        name="enable_channel",
        summary="Let a disabled channel send again",
        group=_GROUP,
        action=Action.NOTIFICATIONS_WRITE,
        handler=notifications.enable_channel,
        answers={200: notifications.ChannelDocument},
    ),
    Endpoint(
        method="GET",
        path="/v1/subscriptions",
        name="list_subscriptions",
        summary="List what channels hear of",
        group=_GROUP,
        action=Action.NOTIFICATIONS_READ,
        handler=notifications.subscriptions,
        answers={200: notifications.SubscriptionList},
    ),
    Endpoint(
        method="POST",
        path="/v1/subscriptions",
        name="subscribe",
        summary="Let a channel hear of events",
        group=_GROUP,
        action=Action.NOTIFICATIONS_WRITE,
        handler=notifications.subscribe,
        body=notifications.SubscriptionRequest,
        answers={201: notifications.SubscriptionDocument},
        errors=("not-found",),
    ),
    Endpoint(
        method="DELETE",
        path="/v1/subscriptions/{id}",
        name="unsubscribe",
        summary="Remove a subscription",
        group=_GROUP,
        action=Action.NOTIFICATIONS_WRITE,
        handler=notifications.unsubscribe,
        answers={204: None},
    ),
    Endpoint(
        method="GET",
        path="/v1/deliveries",
        name="list_deliveries",
        summary="Read the delivery log, newest first",
        group=_GROUP,
        action=Action.NOTIFICATIONS_READ,
        handler=notifications.deliveries,
        query=notifications.DeliveryQuery,
        answers={200: notifications.DeliveryPage},
        errors=("bad-cursor",),
    ),
    Endpoint(
        method="POST",
        path="/v1/deliveries/{id}/resend",
        name="resend_delivery",
        summary="Send a message again",
        group=_GROUP,
        action=Action.NOTIFICATIONS_WRITE,
        handler=notifications.resend,
        answers={200: notifications.DeliveryDocument},
    ),
)
