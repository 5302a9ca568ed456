"""Channels, subscriptions and deliveries."""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

import apsw

from tidewheel.errors import NotFound
from tidewheel.model.channel import (
    KEEP_OLD,
    Channel,
    ChannelSpec,
    NewChannel,
    Parcel,
    no_secret,
    prepare_channel,
    prepare_rotation,
)
from tidewheel.model.notification import (
    KEEP_DELIVERIES,
    PATIENCE,
    TEST,
    Answer,
    Delivery,
    DeliveryState,
    Event,
    Happening,
    Subscription,
    SubscriptionSpec,
    answer_text,
    message_of_test,
    messages_of,
    next_try,
    outcomes_of,
    still_waits,
)
from tidewheel.store.access import check_keys_page
from tidewheel.store.notify_rows import (
    GONE,
    attempt_text,
    channel_of,
    check_room,
    checked,
    definition_text,
    delivery_of,
    happening_of,
    known_subscription,
    known_subscriptions,
    last_id,
    name_taken,
    parcel_of,
    subscription_of,
)
from tidewheel.store.notifying import USUAL_SHARES, Shares
from tidewheel.store.sqlite.connection import rows
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import DIALECT, instant, json_text, micros, some, span

T = TypeVar("T")


class Notifying:
    """See `store.notifying`."""

    def _write(self, work: Callable[[Session], T]) -> "asyncio.Future[T]":
        raise NotImplementedError

    async def _read(self, look: Callable[[apsw.Connection], T]) -> T:
        raise NotImplementedError

    async def add_channel(self, spec: ChannelSpec) -> NewChannel:
        whole, kind, shown = prepare_channel(spec, secrets.token_bytes)
        channel = await self._write(lambda session: _add_channel(session, whole, kind, shown))
        return NewChannel(channel=channel, secret=whole.secret)

    async def channels(self, *, tenant: str | None = None) -> list[Channel]:
        found = await self._read(lambda connection: rows(connection, "channels", {"tenant": tenant}))
        return [channel_of(row, DIALECT) for row in found]

    async def remove_channel(self, channel_id: UUID, *, tenant: str | None = None) -> None:
        await self._write(lambda session: _remove_channel(session, channel_id, tenant))

    async def enable_channel(self, channel_id: UUID, *, tenant: str | None = None) -> Channel:
        found = await self._write(lambda session: session.rows("enable_channel", id=channel_id.bytes, tenant=tenant))
        if not found:
            raise NotFound("channel", channel_id)
        return channel_of(found[0], DIALECT)

    async def rotate_secret(
        self, channel_id: UUID, *, keep: timedelta = KEEP_OLD, tenant: str | None = None
    ) -> NewChannel:
        secret = prepare_rotation(keep, secrets.token_bytes)

        def rotate(session: Session) -> NewChannel:
            named = {"id": channel_id.bytes, "tenant": tenant}
            found = session.rows("rotate_secret", secret=secret, until=session.now + span(keep), **named)
            if not found:
                there = session.value("has_channel", **named)
                raise no_secret() if there else NotFound("channel", channel_id)
            return NewChannel(channel=channel_of(found[0], DIALECT), secret=secret)

        return await self._write(rotate)

    async def test_channel(self, channel_id: UUID, *, tenant: str | None = None) -> Delivery:
        def send(session: Session) -> list[Any]:
            delivery_id = session.make_id()
            key, body, text = message_of_test(delivery_id, instant(session.now))
            said = {"key": key, "event": TEST, "body": body, "text": text, "now": session.now}
            return session.rows("test_channel", id=delivery_id.bytes, channel=channel_id.bytes, tenant=tenant, **said)

        found = await self._write(send)
        if not found:
            raise NotFound("channel", channel_id)
        return delivery_of(found[0], DIALECT)

    async def subscribe(self, spec: SubscriptionSpec, *, tenant: str | None = None) -> Subscription:
        own = checked(spec, tenant)
        return await self._write(lambda session: _subscribe(session, own, tenant))

    async def subscriptions(self, *, tenant: str | None = None) -> list[Subscription]:
        values = {"tenant": tenant, "all": True}
        found = await self._read(lambda connection: rows(connection, "subscriptions", values))
        return known_subscriptions(found, DIALECT)

    async def unsubscribe(self, subscription_id: UUID, *, tenant: str | None = None) -> None:
        values = {"id": subscription_id.bytes, "tenant": tenant}
        if not await self._write(lambda session: session.rows("unsubscribe", **values)):
            raise NotFound("subscription", subscription_id)

    async def deliveries(
        self,
        *,
        tenant: str | None = None,
        state: DeliveryState | None = None,
        limit: int = 50,
        after: UUID | None = None,
    ) -> list[Delivery]:
        values = {"tenant": tenant, "state": state, "limit": check_keys_page(limit), "after": last_id(after).bytes}
        found = await self._read(lambda connection: rows(connection, "deliveries", values))
        return [delivery_of(row, DIALECT) for row in found]

    async def resend(self, delivery_id: UUID, *, tenant: str | None = None) -> Delivery:
        def again(session: Session) -> list[Any]:
            return session.rows("resend", id=delivery_id.bytes, tenant=tenant, now=session.now)

        found = await self._write(again)
        if not found:
            raise NotFound("delivery", delivery_id)
        return delivery_of(found[0], DIALECT)

    async def spread_happenings(self, *, limit: int = 500) -> int:
        return await self._write(lambda session: _spread(session, limit))

    async def notice_late(self, *, limit: int = 500) -> int:
        return await self._write(lambda session: _notice(session, limit))

    async def take_deliveries(self, shares: Shares = USUAL_SHARES, *, under_way: Sequence[UUID] = ()) -> list[Parcel]:
        busy = json_text([channel.hex for channel in under_way])
        return await self._write(lambda session: _take(session, shares, busy, shares.all - len(under_way)))

    async def close_delivery(self, parcel: Parcel, answer: Answer) -> bool:
        return await self._write(lambda session: _close(session, parcel, answer))

    async def retire_deliveries(self, *, keep: timedelta = KEEP_DELIVERIES, limit: int = 1000) -> int:
        def retire(session: Session) -> int:
            session.run("retire_deliveries", until=session.now - span(keep), limit=limit)
            return session.connection.changes()

        return await self._write(retire)


def _add_channel(session: Session, spec: ChannelSpec, kind: str, shown: str) -> Channel:
    check_room("channels", session.value("count_channels", tenant=spec.tenant))
    added = session.rows(
        "add_channel",
        id=session.make_id().bytes,
        tenant=spec.tenant,
        name=spec.name,
        type=kind,
        shown=shown,
        address=spec.address,
        secret=spec.secret,
        now=session.now,
    )
    if not added:
        raise name_taken(spec.name)
    return channel_of(added[0], DIALECT)


def _remove_channel(session: Session, channel_id: UUID, tenant: str | None) -> None:
    if not session.value("has_channel", id=channel_id.bytes, tenant=tenant):
        raise NotFound("channel", channel_id)
    for step in ("forget_deliveries", "forget_subscriptions", "remove_channel"):
        session.run(step, id=channel_id.bytes)


def _subscribe(session: Session, spec: SubscriptionSpec, tenant: str | None) -> Subscription:
    channel = session.value("channel_named", tenant=tenant, name=spec.channel)
    if channel is None:
        raise NotFound("channel", spec.channel)
    check_room("subscriptions", session.value("count_subscriptions", tenant=tenant))
    now, watches_after = session.now, spec.watches_after
    [row] = session.rows(
        "subscribe",
        id=session.make_id().bytes,
        channel=channel,
        tenant=spec.tenant,
        kind=spec.kind,
        outcomes=json_text(outcomes_of(spec.events)),
        definition=definition_text(spec),
        now=now,
        late_at=None if watches_after is None else now - span(watches_after),
        late_id=None if watches_after is None else last_id(None).bytes,
    )
    return subscription_of(row, DIALECT)


def _spread(session: Session, limit: int) -> int:
    now = session.now
    happenings = [
        happening_of(row, DIALECT) for row in session.rows("happenings", limit=limit, known=json_text(list(Event)))
    ]
    if not happenings:
        return 0
    wishes = known_subscriptions(session.rows("subscriptions", tenant=None, all=False), DIALECT)
    _add_deliveries(session, happenings, wishes, now)
    session.run("forget_happenings", ids=json_text([happening.id for happening in happenings]))
    return len(happenings)


def _notice(session: Session, limit: int) -> int:
    now, noticed = session.now, 0
    for *stored, late_at, late_id, heard in session.rows("late_wishes"):
        wish = known_subscription(stored, DIALECT)
        if wish is None or (until := now - span(wish.late_after)) <= late_at:
            continue
        late = []
        if heard:
            place = {"late_at": late_at, "late_id": late_id, "until": until, "now": now, "limit": limit}
            late = session.rows("late_jobs", tenant=wish.tenant, kind=wish.kind, **place)
            waiting = [still_waits(happening_of(row[:-1], DIALECT)) for row in late]
            _add_deliveries(session, waiting, [wish], now)
        reached = (late[-1][-1], late[-1][6]) if len(late) == limit else (until, last_id(None).bytes)
        session.run("told_until", id=wish.id.bytes, late_at=reached[0], late_id=reached[1])
        noticed += len(late)
    return noticed


def _add_deliveries(
    session: Session, happenings: Sequence[Happening], wishes: Sequence[Subscription], now: int
) -> None:
    for happening in happenings:
        for message in messages_of(happening, wishes):
            session.run(
                "add_delivery",
                id=session.make_id().bytes,
                channel=message.subscription.channel_id.bytes,
                key=message.key,
                event=message.event,
                job=None if happening.job_id is None else happening.job_id.bytes,
                tenant=happening.tenant,
                now=now,
                body=message.body,
                text=message.text,
            )


def _take(session: Session, shares: Shares, busy: str, room: int) -> list[Parcel]:
    now = session.now
    until = now + span(PATIENCE)
    parcels = []
    values = {"share": shares.channel, "owner_share": shares.owner, "busy": busy, "limit": max(0, room)}
    for (number,) in session.rows("due_deliveries", now=now, **values):
        session.run("take_delivery", id=number, until=until)
        parcels += [parcel_of(row, DIALECT) for row in session.rows("parcel", id=number, now=now)]
    return parcels


def _close(session: Session, parcel: Parcel, answer: Answer) -> bool:
    now = session.now
    ended = answer.accepted or answer.gone
    again = None if ended else next_try(parcel.tries, parcel.begun_at, instant(now), once=parcel.once)
    state = DeliveryState.SENT if answer.accepted else DeliveryState.FAILED if again is None else DeliveryState.PENDING
    closed = session.rows(
        "close_delivery",
        id=parcel.delivery_id.bytes,
        tries=parcel.tries,
        begun_at=micros(parcel.begun_at),
        state=state,
        next_at=some(micros, again),
        answer=answer_text(answer.told),
        now=now,
        attempt=attempt_text(instant(now), answer),
    )
    if closed and answer.gone:
        session.run("disable_channel", delivery=parcel.delivery_id.bytes, why=GONE)
        session.run("fail_pending", delivery=parcel.delivery_id.bytes, why=GONE, now=now)
    return bool(closed)
