"""Channels, what they hear of, and the log of what was sent."""

from collections.abc import Mapping
from typing import Any, Final

from tidewheel.errors import NotFound
from tidewheel.model.notification import DeliveryState, Event
from tidewheel.server.dashboard.visit import Done, Shown, Visit

HERE: Final = "/ui/notifications"
PAGE: Final = 25
WISHES: Final = ("kind", "schedule", "label", "late_after", "text")


async def load(visit: Visit) -> Mapping[str, Any]:
    """Return channels, subscriptions and a page of the delivery log; operators of all tenants see those of all."""
    ask = visit.desk.ask_widely
    channels = (await ask("list_channels")).channels
    state = visit.query.get("state")
    chosen = {"state": state} if state in list(DeliveryState) else {}
    page = await ask("list_deliveries", query={**chosen, "limit": PAGE, "cursor": visit.query.get("cursor")})
    return {
        "channels": channels,
        "within_reach": [channel for channel in channels if _is_within_reach(visit, channel)],
        "subscriptions": (await ask("list_subscriptions")).subscriptions,
        "deliveries": page.deliveries,
        "next_cursor": page.next_cursor,
        "chosen": chosen,
        "events": list(Event),
        "states": list(DeliveryState),
    }


async def add_channel(visit: Visit) -> Shown | Done:
    """Add a channel, and show the secret of a webhook this once."""
    body = {"name": visit.field("name"), "address": visit.field("address")}
    made = await _ask(visit, "add_channel", widely=visit.field("whose") == "operators", body=body)
    if made.secret is None:
        return Done(HERE, f"The channel {made.name} is ready.")
    return Shown("new_channel.html", {"channel": made}, "A new channel")


async def remove_channel(visit: Visit) -> Done:
    """Remove a channel with all that belongs to it."""
    await visit.desk.ask_widely("remove_channel", id=visit.path["id"])
    return Done(HERE, "The channel is gone, with its subscriptions and its part of the log.")


async def enable_channel(visit: Visit) -> Done:
    """Let a channel send again."""
    channel = await visit.desk.ask_widely("enable_channel", id=visit.path["id"])
    return Done(HERE, f"The channel {channel.name} sends again.")


async def send_test(visit: Visit) -> Done:
    """Send a test message."""
    delivery = await visit.desk.ask_widely("test_channel", id=visit.path["id"])
    return Done(HERE, f"A test message is on its way to {delivery.channel}. How it is answered is shown below.")


async def subscribe(visit: Visit) -> Done:
    """Let a channel hear of events."""
    visit.desk.check("subscribe")  # before anything is said about the channel
    found = (await visit.desk.ask_widely("list_channels")).channels
    wanted = visit.field("channel")
    channel = next((each for each in found if str(each.id) == wanted and _is_within_reach(visit, each)), None)
    if channel is None:
        raise NotFound("channel", wanted[:40])
    body: dict[str, Any] = {"channel": channel.name, "events": list(visit.form.get("events", ()))}
    body |= {name: visit.field(name) for name in WISHES if visit.field(name)}
    await _ask(visit, "subscribe", widely=channel.tenant is None, body=body)
    return Done(HERE, f"{channel.name} hears of it from now on.")


async def unsubscribe(visit: Visit) -> Done:
    """Remove a subscription."""
    await visit.desk.ask_widely("unsubscribe", id=visit.path["id"])
    return Done(HERE, "The subscription is gone.")


async def resend(visit: Visit) -> Done:
    """Send a message again."""
    delivery = await visit.desk.ask_widely("resend_delivery", id=visit.path["id"])
    return Done(HERE, f"The message is sent to {delivery.channel} again.")


async def _ask(visit: Visit, name: str, *, widely: bool, body: Any) -> Any:
    return await (visit.desk.ask_widely if widely else visit.desk.ask)(name, body=body)


def _is_within_reach(visit: Visit, channel: Any) -> bool:
    """Tell whether the visitor can subscribe it: the operators' and those of the tenant that is looked at."""
    return channel.tenant in (None, visit.desk.visitor.tenant)
