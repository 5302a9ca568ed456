"""`tide notify`: who is told of what becomes of jobs."""

from typing import Annotated, Final
from uuid import UUID

import typer

from tidewheel.cli.lazy import group
from tidewheel.cli.options import parse_labels
from tidewheel.cli.showing import Columns, Format, show_list, show_value
from tidewheel.cli.verb import Session, verb
from tidewheel.clock import SystemClock
from tidewheel.errors import Conflict, Invalid, NotFound
from tidewheel.model.channel import Channel, ChannelSpec, NewChannel
from tidewheel.model.checks import duration_text
from tidewheel.model.guessing import name_among
from tidewheel.model.notification import (
    LATE_AFTER,
    Delivery,
    DeliveryState,
    Subscription,
    SubscriptionSpec,
    parse_events,
)
from tidewheel.model.worker_protocol import Me
from tidewheel.store.base import Store
from tidewheel.store.notifying import TEST_WAIT, tried
from tidewheel.tasks.durations import parse_duration

app = group("Tell people and programs what becomes of jobs.")

Owner = Annotated[str | None, typer.Option("--tenant", help="Whose channel it is.  [default: the operators']")]
ChannelName = Annotated[str, typer.Argument(metavar="CHANNEL", help="The name of a channel.")]

CHANNELS: Final[Columns[Channel]] = {
    "name": lambda channel: channel.name,
    "type": lambda channel: channel.type.value,
    "address": lambda channel: channel.shown,
    "tenant": lambda channel: channel.tenant,
    "disabled": lambda channel: channel.disabled,
}
SUBSCRIPTIONS: Final[Columns[Subscription]] = {
    "id": lambda wish: wish.id,
    "channel": lambda wish: wish.channel,
    "events": lambda wish: ", ".join(sorted(wish.events)),
    "kind": lambda wish: wish.kind,
    "schedule": lambda wish: wish.schedule,
    "label": lambda wish: None if wish.label is None else "=".join(wish.label),
    "tenant": lambda wish: wish.tenant,
}
DELIVERIES: Final[Columns[Delivery]] = {
    "id": lambda delivery: delivery.id,
    "created": lambda delivery: delivery.created_at,
    "channel": lambda delivery: delivery.channel,
    "event": lambda delivery: delivery.event,
    "state": lambda delivery: delivery.state.value,
    "tries": lambda delivery: delivery.tries,
    "answer": lambda delivery: delivery.answer,
}


@verb(app, "channel")
def add_channel(
    session: Session,
    name: Annotated[str, typer.Argument(help="A name of your choice.")],
    address: Annotated[
        str,
        typer.Argument(help="https://… for a webhook, or a service: mailtos://…, slack://…; - reads it from stdin."),
    ],
    *,
    tenant: Owner = None,
) -> None:
    """Add a channel. The secret by which a webhook signs is printed this once."""
    where = typer.get_text_stream("stdin").readline().strip() if address == "-" else address
    spec = ChannelSpec(name=name, address=where, tenant=tenant)

    async def add(store: Store) -> NewChannel:
        from tidewheel.notify import check_address  # noqa: PLC0415 - other commands do without

        await check_address(where)
        return await store.add_channel(spec)

    _show_new(session, session.ask(add))


@verb(app, "channels")
def list_channels(session: Session, *, tenant: Owner = None) -> None:
    """List the channels, by name."""
    show_list(session.ask(lambda store: store.channels(tenant=tenant)), CHANNELS, session.output)


@verb(app, "remove")
def remove_channel(session: Session, channel: ChannelName, *, tenant: Owner = None) -> None:
    """Remove a channel with its subscriptions and its part of the log."""

    async def remove(store: Store) -> None:
        await store.remove_channel((await _named(store, channel, tenant)).id, tenant=tenant)

    session.ask(remove)
    typer.echo(f"{channel} is removed")


@verb(app, "enable")
def enable_channel(session: Session, channel: ChannelName, *, tenant: Owner = None) -> None:
    """Let a channel that was disabled send again."""

    async def enable(store: Store) -> Channel:
        return await store.enable_channel((await _named(store, channel, tenant)).id, tenant=tenant)

    show_list([session.ask(enable)], CHANNELS, session.output)


@verb(app, "test")
def send_test(
    session: Session,
    channel: ChannelName,
    *,
    wait: Annotated[str, typer.Option("--wait", help="How long to wait for its answer.")] = duration_text(TEST_WAIT),
    tenant: Owner = None,
) -> None:
    """Send a test message at once, and say how it was answered."""
    lasts = parse_duration(wait, "wait")

    async def send(store: Store) -> Delivery:
        begun = await store.test_channel((await _named(store, channel, tenant)).id, tenant=tenant)
        return await tried(store, begun, SystemClock().sleep, wait=lasts, tenant=tenant)

    delivery = session.ask(send)
    show_list([delivery], DELIVERIES, session.output)
    if not delivery.attempts:
        raise Conflict(f"nobody has tried it for {wait}: `tide up`, a server or a worker must run, which send messages")
    if delivery.state is not DeliveryState.SENT:
        raise Conflict(f"{channel} did not accept the test message: {delivery.answer}")


@verb(app, "rotate")
def rotate_secret(
    session: Session,
    channel: ChannelName,
    *,
    keep: Annotated[str, typer.Option("--keep", help="How long it signs by the old secret, too.")] = "1d",
    tenant: Owner = None,
) -> None:
    """Let a webhook sign by a new secret, which is printed this once."""
    lasts = parse_duration(keep, "keep")

    async def rotate(store: Store) -> NewChannel:
        return await store.rotate_secret((await _named(store, channel, tenant)).id, keep=lasts, tenant=tenant)

    _show_new(session, session.ask(rotate))


@verb(app, "subscribe")
def subscribe(
    session: Session,
    channel: ChannelName,
    events: Annotated[list[str], typer.Argument(help="Events: succeeded, failed, dead, late, missed, recovered, …")],
    *,
    kind: Annotated[str | None, typer.Option("--kind", help="Of jobs of this kind.")] = None,
    schedule: Annotated[str | None, typer.Option("--schedule", help="Of jobs of this schedule.")] = None,
    label: Annotated[str | None, typer.Option("--label", help="Of jobs with this label, as team=blue.")] = None,
    late_after: Annotated[str | None, typer.Option("--late-after", help="When a start is late, as 10m.")] = None,
    text: Annotated[str, typer.Option("--text", help="The words for people, with $kind, $event, $error, …")] = "",
    tenant: Owner = None,
) -> None:
    """Let a channel hear of events."""
    spec = SubscriptionSpec(
        channel=channel,
        events=parse_events(events),
        kind=kind,
        schedule=schedule,
        label=None if label is None else next(iter(parse_labels([label]).items())),
        late_after=LATE_AFTER if late_after is None else parse_duration(late_after, "late-after"),
        text=text,
    )
    made = session.ask(lambda store: store.subscribe(spec, tenant=tenant))
    show_list([made], SUBSCRIPTIONS, session.output)


@verb(app, "subscriptions")
def list_subscriptions(session: Session, *, tenant: Owner = None) -> None:
    """List what channels hear of, oldest first."""
    show_list(session.ask(lambda store: store.subscriptions(tenant=tenant)), SUBSCRIPTIONS, session.output)


@verb(app, "unsubscribe")
def unsubscribe(
    session: Session, subscription: Annotated[str, typer.Argument(help="The id of the subscription.")]
) -> None:
    """Remove a subscription."""
    number = _id("subscription", subscription)
    session.ask(lambda store: store.unsubscribe(number))
    typer.echo(f"{number} is removed")


@verb(app, "log")
def show_log(
    session: Session,
    *,
    state: Annotated[str | None, typer.Option("--state", help="Only what is pending, sent or failed.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many at most.")] = 50,
    tenant: Owner = None,
) -> None:
    """Show what was sent and what came of it, newest first."""
    wanted = None if state is None else name_among("state", state, list(DeliveryState))
    found = session.ask(lambda store: store.deliveries(tenant=tenant, state=wanted, limit=limit))
    show_list(found, DELIVERIES, session.output)


@verb(app, "resend")
def resend(
    session: Session, delivery: Annotated[str, typer.Argument(help="An id that `tide notify log` shows.")]
) -> None:
    """Send a message again, whether it was sent before or not."""
    number = _id("delivery", delivery)
    show_list([session.ask(lambda store: store.resend(number))], DELIVERIES, session.output)


def _show_new(session: Session, made: NewChannel) -> None:
    """Show a channel with its secret."""
    if session.output is not Format.TABLE:
        show_value(made, session.output)
        return
    show_list([made.channel], CHANNELS, session.output)
    if made.secret is not None:
        typer.echo(f"secret: {made.secret}  (not shown again)")


async def _named(store: Store, name: str, tenant: str | None) -> Channel:
    me: Me | None = getattr(store, "me", None)  # a server knows who one is: a key of one tenant has no others
    owner = me.tenant if tenant is None and me is not None else tenant
    for channel in await store.channels(tenant=tenant):
        if channel.name == name and channel.tenant == owner:
            return channel
    raise NotFound("channel", name)


def _id(field: str, text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Invalid(field, f"must be an id, as the lists show it, not {text[:40]!r}") from None
