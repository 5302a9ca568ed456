"""Channels, subscriptions and deliveries."""

import secrets
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

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
from tidewheel.store.postgres.connection import SQL, Connection, one
from tidewheel.store.postgres.parts import DIALECT, Part, store_now


class Notifying(Part):
    """See `store.notifying`."""

    async def add_channel(self, spec: ChannelSpec) -> NewChannel:
        whole, kind, shown = prepare_channel(spec, secrets.token_bytes)
        values = (self._make_id(), whole.tenant, whole.name, kind, shown, whole.address, whole.secret)

        async def add(connection: Connection) -> NewChannel:
            await connection.execute(SQL["lock_owner"], whole.tenant)
            check_room("channels", await connection.fetchval(SQL["count_channels"], whole.tenant))
            row = await connection.fetchrow(SQL["add_channel"], *values)
            if row is None:
                raise name_taken(spec.name)
            return NewChannel(channel=channel_of(row, DIALECT), secret=whole.secret)

        return await self._db.transaction(add)

    async def channels(self, *, tenant: str | None = None) -> list[Channel]:
        rows = await self._db.read(lambda connection: connection.fetch(SQL["channels"], tenant))
        return [channel_of(row, DIALECT) for row in rows]

    async def remove_channel(self, channel_id: UUID, *, tenant: str | None = None) -> None:
        async def remove(connection: Connection) -> None:
            if await connection.fetchval(SQL["lock_channel"], channel_id, tenant) is None:
                raise NotFound("channel", channel_id)
            for step in ("forget_deliveries", "forget_subscriptions", "remove_channel"):
                await connection.execute(SQL[step], channel_id)

        await self._db.transaction(remove)

    async def enable_channel(self, channel_id: UUID, *, tenant: str | None = None) -> Channel:
        values = (channel_id, tenant)
        row = await self._db.write(lambda connection: connection.fetchrow(SQL["enable_channel"], *values))
        if row is None:
            raise NotFound("channel", channel_id)
        return channel_of(row, DIALECT)

    async def rotate_secret(
        self, channel_id: UUID, *, keep: timedelta = KEEP_OLD, tenant: str | None = None
    ) -> NewChannel:
        secret = prepare_rotation(keep, secrets.token_bytes)

        async def rotate(connection: Connection) -> NewChannel:
            row = await connection.fetchrow(SQL["rotate_secret"], channel_id, tenant, secret, keep)
            if row is None:
                there = await connection.fetchval(SQL["has_channel"], channel_id, tenant)
                raise no_secret() if there else NotFound("channel", channel_id)
            return NewChannel(channel=channel_of(row, DIALECT), secret=secret)

        return await self._db.transaction(rotate)

    async def test_channel(self, channel_id: UUID, *, tenant: str | None = None) -> Delivery:
        async def send(connection: Connection) -> Delivery:
            delivery_id = self._make_id()
            message = message_of_test(delivery_id, await store_now(connection))
            row = await connection.fetchrow(SQL["test_channel"], delivery_id, channel_id, tenant, TEST, *message)
            if row is None:
                raise NotFound("channel", channel_id)
            return delivery_of(row, DIALECT)

        return await self._db.transaction(send)

    async def subscribe(self, spec: SubscriptionSpec, *, tenant: str | None = None) -> Subscription:
        own = checked(spec, tenant)
        values = (own.tenant, own.kind, outcomes_of(own.events), definition_text(own), own.watches_after)

        async def add(connection: Connection) -> Subscription:
            await connection.execute(SQL["lock_owner"], tenant)
            channel = await connection.fetchval(SQL["channel_named"], tenant, own.channel)
            if channel is None:
                raise NotFound("channel", own.channel)
            check_room("subscriptions", await connection.fetchval(SQL["count_subscriptions"], tenant))
            return subscription_of(await one(connection, SQL["subscribe"], self._make_id(), channel, *values), DIALECT)

        return await self._db.transaction(add)

    async def subscriptions(self, *, tenant: str | None = None) -> list[Subscription]:
        rows = await self._db.read(lambda connection: connection.fetch(SQL["subscriptions"], tenant, True))  # noqa: FBT003 - a value of a statement
        return known_subscriptions(rows, DIALECT)

    async def unsubscribe(self, subscription_id: UUID, *, tenant: str | None = None) -> None:
        values = (subscription_id, tenant)
        if await self._db.write(lambda connection: connection.fetchval(SQL["unsubscribe"], *values)) is None:
            raise NotFound("subscription", subscription_id)

    async def deliveries(
        self,
        *,
        tenant: str | None = None,
        state: DeliveryState | None = None,
        limit: int = 50,
        after: UUID | None = None,
    ) -> list[Delivery]:
        values = (last_id(after), tenant, state, check_keys_page(limit))
        rows = await self._db.read(lambda connection: connection.fetch(SQL["deliveries"], *values))
        return [delivery_of(row, DIALECT) for row in rows]

    async def resend(self, delivery_id: UUID, *, tenant: str | None = None) -> Delivery:
        row = await self._db.write(lambda connection: connection.fetchrow(SQL["resend"], delivery_id, tenant))
        if row is None:
            raise NotFound("delivery", delivery_id)
        return delivery_of(row, DIALECT)

    async def spread_happenings(self, *, limit: int = 500) -> int:
        return await self._db.transaction(lambda connection: self._spread(connection, limit))

    async def notice_late(self, *, limit: int = 500) -> int:
        return await self._db.transaction(lambda connection: self._notice(connection, limit))

    async def take_deliveries(self, shares: Shares = USUAL_SHARES, *, under_way: Sequence[UUID] = ()) -> list[Parcel]:
        room = max(0, shares.all - len(under_way))
        values = (shares.channel, shares.owner, room, list(under_way), PATIENCE)
        rows = await self._db.write(lambda connection: connection.fetch(SQL["take_deliveries"], *values))
        return [parcel_of(row, DIALECT) for row in rows]

    async def close_delivery(self, parcel: Parcel, answer: Answer) -> bool:
        return await self._db.transaction(lambda connection: _close(connection, parcel, answer))

    async def retire_deliveries(self, *, keep: timedelta = KEEP_DELIVERIES, limit: int = 1000) -> int:
        values = (keep, limit)
        gone: int = await self._db.write(lambda connection: connection.fetchval(SQL["retire_deliveries"], *values))
        return gone

    async def _spread(self, connection: Connection, limit: int) -> int:
        rows = await connection.fetch(SQL["happenings"], limit, list(Event))
        happenings = [happening_of(row, DIALECT) for row in rows]
        if not happenings:
            return 0
        rows = await connection.fetch(SQL["subscriptions"], None, False)  # noqa: FBT003 - a value of a statement
        await self._add_deliveries(connection, happenings, known_subscriptions(rows, DIALECT))
        await connection.execute(SQL["forget_happenings"], [happening.id for happening in happenings])
        return len(happenings)

    async def _notice(self, connection: Connection, limit: int) -> int:
        now, noticed = await store_now(connection), 0
        for row in await connection.fetch(SQL["late_wishes"]):
            wish, told_until = known_subscription(row[:4], DIALECT), (row["late_at"], row["late_id"])
            if wish is None or (until := now - wish.late_after) <= row["late_at"]:
                continue
            late = []
            if row["heard"]:
                late = await connection.fetch(SQL["late_jobs"], wish.tenant, wish.kind, *told_until, until, limit)
                waiting = [still_waits(happening_of(each[:-1], DIALECT)) for each in late]
                await self._add_deliveries(connection, waiting, [wish])
            reached = (late[-1]["run_at"], late[-1]["id"]) if len(late) == limit else (until, last_id(None))
            await connection.execute(SQL["told_until"], wish.id, *told_until, *reached)
            noticed += len(late)
        return noticed

    async def _add_deliveries(
        self, connection: Connection, happenings: Sequence[Happening], wishes: Sequence[Subscription]
    ) -> None:
        lines = [
            (self._make_id(), m.subscription.channel_id, m.key, m.event, what.job_id, what.tenant, m.body, m.text)
            for what in happenings
            for m in messages_of(what, wishes)
        ]
        if lines:
            await connection.execute(SQL["add_deliveries"], *(list(column) for column in zip(*lines, strict=True)))


async def _close(connection: Connection, parcel: Parcel, answer: Answer) -> bool:
    now = await store_now(connection)
    again = None if answer.accepted or answer.gone else next_try(parcel.tries, parcel.begun_at, now, once=parcel.once)
    state = DeliveryState.SENT if answer.accepted else DeliveryState.FAILED if again is None else DeliveryState.PENDING
    values = (parcel.delivery_id, parcel.tries, state, again, answer_text(answer.told), attempt_text(now, answer))
    closed = await connection.fetchval(SQL["close_delivery"], *values, parcel.begun_at) is not None
    if closed and answer.gone:
        await connection.execute(SQL["disable_channel"], parcel.delivery_id, GONE)
        await connection.execute(SQL["fail_pending"], parcel.delivery_id, GONE)
    return closed
