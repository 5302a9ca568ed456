"""Builds channels, subscriptions, happenings and deliveries from rows; both stores select the same columns."""

import logging
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

import msgspec

from tidewheel.errors import Conflict, Invalid
from tidewheel.model.channel import Channel, ChannelType, Parcel
from tidewheel.model.notification import (
    Answer,
    Delivery,
    DeliveryAttempt,
    DeliveryState,
    Event,
    Happening,
    Subscription,
    SubscriptionSpec,
    about_alert,
    answer_text,
    check_subscription,
)
from tidewheel.model.schedule import ScheduleSpec
from tidewheel.store.records import Dialect

_log = logging.getLogger(__name__)
_labels = msgspec.json.Decoder(dict[str, str]).decode
_object = msgspec.json.Decoder(dict[str, Any]).decode
_attempts = msgspec.json.Decoder(tuple[DeliveryAttempt, ...]).decode
_spec = msgspec.json.Decoder(SubscriptionSpec).decode
_schedule = msgspec.json.Decoder(ScheduleSpec).decode
GONE = "its receiver answered that it is gone"
MOST: Final = {"channels": 50, "subscriptions": 200}
"""Of one owner: each outcome is compared with all subscriptions, and each channel has its share of the senders."""


def checked(spec: SubscriptionSpec, tenant: str | None) -> SubscriptionSpec:
    """Return a wish as it is stored: within the tenant who has it."""
    check_subscription(spec)
    if tenant is None or spec.tenant == tenant:
        return spec
    if spec.tenant is not None:
        raise Invalid("tenant", "must be one's own")
    return msgspec.structs.replace(spec, tenant=tenant)


def name_taken(name: str) -> Conflict:
    """Return what to say of a channel whose name is another's."""
    return Conflict(f"there is a channel named {name!r} already")


def check_room(what: str, there: int) -> None:
    """Refuse one more of what an owner has enough of."""
    if there >= MOST[what]:
        raise Conflict(f"there are {there} {what} already, the most that one owner may have")


def definition_text(spec: SubscriptionSpec) -> str:
    """Return a wish as it is stored."""
    return msgspec.json.encode(spec).decode()


def channel_of(row: Any, dialect: Dialect) -> Channel:
    """Build a channel from its columns, among which are neither address nor secret."""
    number, tenant, name, kind, shown, disabled, created_at = row
    return Channel(
        id=dialect.uuid(number),
        tenant=tenant,
        name=name,
        type=ChannelType(kind),
        shown=shown,
        disabled=disabled,
        created_at=dialect.instant(created_at),
    )


def subscription_of(row: Any, dialect: Dialect) -> Subscription:
    """Build a subscription from its columns."""
    return _subscription(row, _spec(row[2]), dialect)


def known_subscription(row: Any, dialect: Dialect) -> Subscription | None:
    """Build a subscription, with those events of it that this program knows; None if it cannot be read at all.

    Others may be newer: theirs must not keep all the rest from being told.
    """
    try:
        return subscription_of(row, dialect)
    except msgspec.ValidationError:
        told = _object(row[2])
    known = [event for event in Event if event in told.get("events", ())]
    try:
        spec = msgspec.convert(told | {"events": known}, SubscriptionSpec)
    except msgspec.ValidationError:
        spec = None
    _tell_of_newer(dialect.uuid(row[0]), unread=spec is None)
    return None if spec is None else _subscription(row, spec, dialect)


def known_subscriptions(rows: Iterable[Any], dialect: Dialect) -> list[Subscription]:
    """Build those that can be read."""
    built = (known_subscription(row, dialect) for row in rows)
    return [subscription for subscription in built if subscription is not None]


def _subscription(row: Any, spec: SubscriptionSpec, dialect: Dialect) -> Subscription:
    number, channel_id, _, created_at = row
    return Subscription(
        **{field: getattr(spec, field) for field in spec.__struct_fields__},
        id=dialect.uuid(number),
        channel_id=dialect.uuid(channel_id),
        created_at=dialect.instant(created_at),
    )


@lru_cache(maxsize=1000)  # so that it is said once, and not with each look
def _tell_of_newer(subscription_id: UUID, *, unread: bool) -> None:
    what = "cannot be read, and is not heeded" if unread else "names events that are not known here"
    _log.warning("the subscription %s %s: a newer program made it, and will tell of them", subscription_id, what)


def happening_of(row: Any, dialect: Dialect) -> Happening:
    """Build what happened from its columns."""
    number, at, event, tenant, queue, kind, job_id, token, schedule_id, schedule, failures, losses, *more = row
    due_at, started_at, labels, error, detail, traceparent, definition, after_dead = more
    told = _object(detail) if detail else None
    about: dict[str, Any] = {
        "queue": queue,
        "kind": kind,
        "schedule": schedule,
        "labels": _labels(labels) if labels else {},
    }
    if definition is not None:
        spec = _schedule(definition)
        about |= {"queue": spec.queue, "kind": spec.kind, "labels": spec.labels}
    elif told is not None and job_id is None:
        about |= about_alert(told)
    return Happening(
        id=number,
        at=dialect.instant(at),
        event=Event(event),
        tenant=tenant,
        job_id=None if job_id is None else dialect.uuid(job_id),
        token=token,
        schedule_id=None if schedule_id is None else dialect.uuid(schedule_id),
        failures=failures,
        losses=losses,
        due_at=None if due_at is None else dialect.instant(due_at),
        started_at=None if started_at is None else dialect.instant(started_at),
        error=_object(error) if error else None,
        detail=told,
        traceparent=traceparent,
        after_dead=bool(after_dead),
        **about,
    )


def delivery_of(row: Any, dialect: Dialect) -> Delivery:
    """Build an entry of the delivery log from its columns."""
    number, key, channel, channel_id, event, tenant, state, tries, answer, created_at, next_at, ended_at, *more = row
    body, attempts = more
    return Delivery(
        id=dialect.uuid(number),
        key=key,
        channel=channel,
        channel_id=dialect.uuid(channel_id),
        event=event,
        tenant=tenant,
        state=DeliveryState(state),
        tries=tries,
        answer=answer,
        created_at=dialect.instant(created_at),
        next_at=dialect.instant(next_at) if state == DeliveryState.PENDING else None,
        ended_at=None if ended_at is None else dialect.instant(ended_at),
        body=body,
        attempts=_attempts(attempts),
    )


def attempt_text(at: datetime, answer: Answer) -> str:
    """Return an attempt as it is stored, beside those before it."""
    return msgspec.json.encode(DeliveryAttempt(at, answer.accepted, answer_text(answer.told))).decode()


def parcel_of(row: Any, dialect: Dialect) -> Parcel:
    """Build a parcel from its columns."""
    number, channel, tries, begun_at, key, body, text, kind, address, secret, old_secret = row
    return Parcel(
        delivery_id=dialect.uuid(number),
        channel_id=dialect.uuid(channel),
        tries=tries,
        begun_at=dialect.instant(begun_at),
        key=key,
        body=body,
        text=text,
        type=ChannelType(kind),
        address=address,
        secret=secret,
        old_secret=old_secret,
    )


def last_id(after: UUID | None) -> UUID:
    """Return before which id a page of the log begins."""
    return after or UUID(int=2**128 - 1)
