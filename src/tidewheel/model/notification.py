"""Who is told of what: events, the channels that carry them, and who asked for which.

An outcome is noted in the transaction that stores it, if anyone may want to hear of it (`Happening`). A duty turns each
into messages for those whose subscriptions match (`messages_of`), and messages into deliveries, tried again for a day.
"""

import enum
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.channel import TEST_KEY
from tidewheel.model.checks import check_duration, check_key, check_name, clean_text, duration_text
from tidewheel.model.message_text import check_template, fill

LATE_AFTER: Final = timedelta(minutes=5)
MAX_LATE_AFTER: Final = timedelta(days=30)
GIVE_UP_AFTER: Final = timedelta(days=1)
KEEP_DELIVERIES: Final = timedelta(days=30)
PATIENCE: Final = timedelta(minutes=2)
"""How long a sender may take for a delivery before another may try it."""
MAX_ANSWER: Final = 500
SOURCE: Final = "/tidewheel"
TEST: Final = "test"
"""What a test message has for an event; no subscription names it."""
TEST_WORDS: Final = "A test message of Tidewheel\nWhoever reads this is told of what its subscriptions name."
_PAUSES: Final = tuple(timedelta(seconds=seconds) for seconds in (5, 30, 120, 600, 1800, 3600, 7200))


class Event(enum.StrEnum):
    """What one may be told of."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DEAD = "dead"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    DROPPED = "dropped"
    SKIPPED = "skipped"
    LATE = "late"
    MISSED = "missed"
    RECOVERED = "recovered"
    FIRING = "alert.firing"
    RESOLVED = "alert.resolved"


MEANINGS: Final[Mapping[Event, str]] = {
    Event.SUCCEEDED: "a job ended with a result",
    Event.FAILED: "a run failed or was lost, and the job will be tried again",
    Event.DEAD: "a job ended without success, for good",
    Event.CANCELLED: "someone cancelled a job",
    Event.EXPIRED: "a job was not started before its deadline",
    Event.DROPPED: "a gate dropped a job",
    Event.SKIPPED: "a job was left out, because a parent failed or the last run of its schedule was still alive",
    Event.LATE: "a job has not begun, or began, later than it should, by more than the subscription allows",
    Event.MISSED: "an occurrence of a schedule passed without a job",
    Event.RECOVERED: "a job succeeded that had failed before, or whose schedule's previous job was dead",
    Event.FIRING: "an alert began",
    Event.RESOLVED: "an alert is over",
}
_SEEN_IN: Final[Mapping[Event, tuple[Event, ...]]] = {
    Event.LATE: (Event.SUCCEEDED, Event.FAILED, Event.DEAD),
    Event.RECOVERED: (Event.SUCCEEDED,),
}
"""Events that are found in others, which therefore must be noted."""
_ALERTS: Final = frozenset((Event.FIRING, Event.RESOLVED))
_OF_RUNS: Final = frozenset((Event.SUCCEEDED, Event.FAILED, Event.DEAD))
"""What a run of a job comes to once; the others may come again, of a job that was sent round before it ran."""
_OF: Final = {Event.MISSED: "schedule.missed", Event.FIRING: "alert.firing", Event.RESOLVED: "alert.resolved"}


class SubscriptionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Who wants to hear of what; all conditions must hold, and None stands for any."""

    channel: str
    events: frozenset[Event]
    tenant: str | None = None
    kind: str | None = None
    schedule: str | None = None
    label: tuple[str, str] | None = None
    late_after: timedelta = LATE_AFTER
    text: str = ""
    """The words of a message for people, with $kind, $event and the like; a sentence of ours if it is empty."""

    @property
    def watches_after(self) -> timedelta | None:
        """How long a job may wait before it is told of; None if nobody asked."""
        return self.late_after if Event.LATE in self.events else None


class Subscription(SubscriptionSpec, frozen=True, kw_only=True):
    """A wish that is stored."""

    id: UUID
    channel_id: UUID
    created_at: datetime

    @property
    def outcomes(self) -> list[str]:
        """The events that must be noted for its sake."""
        return outcomes_of(self.events)


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """What was noted with an outcome."""

    id: int
    at: datetime
    event: Event
    tenant: str | None = None
    queue: str | None = None
    kind: str | None = None
    job_id: UUID | None = None
    token: int = 0
    schedule_id: UUID | None = None
    schedule: str | None = None
    labels: Mapping[str, str] = {}
    failures: int = 0
    losses: int = 0
    due_at: datetime | None = None
    started_at: datetime | None = None
    error: Mapping[str, Any] | None = None
    detail: Mapping[str, Any] | None = None
    traceparent: str | None = None
    """The span that submitted the job."""
    after_dead: bool = False
    """Whether the job before it of the same schedule was dead, or it failed itself before it was sent round again."""


class Message(NamedTuple):
    """One event for one subscription, ready to be sent."""

    key: str
    """The same whenever it is sent, so that a receiver knows what it had before."""
    event: Event
    subscription: Subscription
    body: str
    """A CloudEvent as JSON."""
    text: str
    """For people."""


class DeliveryState(enum.StrEnum):
    """How far a delivery is."""

    PENDING = "pending"
    SENT = "sent"
    FAILED = "failed"


class DeliveryAttempt(msgspec.Struct, frozen=True):
    """One try to deliver a message, and what came of it."""

    at: datetime
    accepted: bool
    answer: str


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the delivery log."""

    id: UUID
    key: str
    channel: str
    channel_id: UUID
    event: str
    """The name of an `Event`; a newer program may know more of them."""
    tenant: str | None
    state: DeliveryState
    tries: int
    """Since it was first to be sent, or was last to be sent again."""
    answer: str
    """What the last try came to."""
    created_at: datetime
    next_at: datetime | None
    """When it is tried next; None once it has come to an end."""
    ended_at: datetime | None
    body: str
    attempts: tuple[DeliveryAttempt, ...] = ()
    """The tries that came to an end, first to last."""


class Answer(NamedTuple):
    """What a try to deliver came to."""

    accepted: bool
    told: str
    gone: bool = False
    """The receiver wants to hear no more: its channel is to be disabled."""


def check_subscription(spec: SubscriptionSpec) -> None:
    """Refuse what cannot be meant."""
    check_name("channel", spec.channel)
    if not spec.events:
        raise Invalid("events", f"must name at least one of {', '.join(Event)}")
    for field in ("tenant", "kind", "schedule"):
        if (value := getattr(spec, field)) is not None:
            check_name(field, value)
    if spec.label is not None:
        check_name("label", spec.label[0])
        if spec.label[1] != "":
            check_key("label", spec.label[1])
    if spec.events & _ALERTS:
        _check_alert_wish(spec)
    check_duration("late_after", spec.late_after, timedelta(0), MAX_LATE_AFTER)
    check_template("text", spec.text)


def about_alert(detail: Mapping[str, Any]) -> dict[str, str]:
    """Return what an alert is about, by the names that subscriptions have for it."""
    what = str(detail.get("rule", "")).partition(".")[0]
    return {what: str(detail["subject"])} if what in ("kind", "queue", "schedule") else {}


def type_of(event: Event) -> str:
    """Return the type of a CloudEvent."""
    return "dev.tidewheel." + _OF.get(event, f"job.{event}")


def parse_events(names: Iterable[str]) -> frozenset[Event]:
    """Return the events of these names."""
    found = []
    for name in names:
        if name not in list(Event):
            raise Invalid("events", f"must be among {', '.join(Event)}, not {name[:40]!r}")
        found.append(Event(name))
    return frozenset(found)


def outcomes_of(events: Iterable[Event]) -> list[str]:
    """Return what must be noted so that these events are found."""
    return sorted({outcome.value for event in events for outcome in _SEEN_IN.get(event, (event,))})


def messages_of(happening: Happening, subscriptions: Iterable[Subscription]) -> Iterator[Message]:
    """Return a message for each subscription and event that match what happened."""
    for subscription in subscriptions:
        if _is_about(subscription, happening):
            for event in sorted(subscription.events & _events_of(happening, subscription.late_after)):
                body = msgspec.json.encode(envelope(happening, event)).decode()
                yield Message(
                    key_of(happening, event),
                    event,
                    subscription,
                    body,
                    fill(subscription.text, _words(happening, event)),
                )


def key_of(happening: Happening, event: Event) -> str:
    """Return the id of an event: made of what it is about, so that a repetition has the same.

    What it is about has an id that no other installation has.
    """
    if happening.job_id is not None:
        if event is Event.LATE:  # the same, whether it was seen while the job waits or when its run had ended
            return f"{happening.job_id}.{event}"
        key = f"{happening.job_id}.{happening.token}.{event}"
        return key if happening.event in _OF_RUNS else f"{key}.{happening.id}"
    if happening.schedule_id is not None and happening.due_at is not None:
        return f"{happening.schedule_id}.{happening.due_at.isoformat()}.{event}"
    return f"{(happening.detail or {})['alert_id']}.{event}"  # each time that it fires is an alert of its own


def envelope(happening: Happening, event: Event) -> dict[str, Any]:
    """Return what happened as a CloudEvent."""
    data = {
        "event": event,
        "tenant": happening.tenant,
        "job_id": happening.job_id,
        "kind": happening.kind,
        "queue": happening.queue,
        "schedule": happening.schedule,
        "labels": dict(happening.labels) or None,
        "attempt": happening.failures + happening.losses + 1 if happening.job_id else None,
        "due_at": happening.due_at,
        "started_at": happening.started_at,
        "error": happening.error,
        "detail": happening.detail,
    }
    trace = {} if happening.traceparent is None else {"traceparent": happening.traceparent}
    return {
        "specversion": "1.0",
        "id": key_of(happening, event),
        "source": SOURCE,
        "type": type_of(event),
        "subject": str(happening.job_id or (happening.detail or {}).get("subject") or happening.schedule or "alert"),
        "time": happening.at,
        "datacontenttype": "application/json",
        **trace,
        "data": {name: value for name, value in data.items() if value is not None},
    }


def message_of_test(delivery_id: UUID, at: datetime) -> tuple[str, str, str]:
    """Return the key, the body and the words of a message that tells nothing but that its channel works."""
    key = f"{TEST_KEY}{delivery_id}"
    event = {
        "specversion": "1.0",
        "id": key,
        "source": SOURCE,
        "type": f"dev.tidewheel.{TEST}",
        "subject": TEST,
        "time": at,
        "datacontenttype": "application/json",
        "data": {"event": TEST},
    }
    return key, msgspec.json.encode(event).decode(), TEST_WORDS


def still_waits(happening: Happening) -> Happening:
    """Return what is told of a job that is due and has not begun."""
    waits = timedelta(0) if happening.due_at is None else happening.at - happening.due_at
    told = f"it waits for {duration_text(timedelta(seconds=int(waits.total_seconds())))} beyond its time"
    return msgspec.structs.replace(happening, detail={"told": told})


def next_try(tries: int, begun_at: datetime, now: datetime, *, once: bool = False) -> datetime | None:
    """Return when to try again after so many tries, or None if it was a day, or was to be tried once."""
    if once:
        return None
    at = now + _PAUSES[min(tries, len(_PAUSES)) - 1]
    return at if at < begun_at + GIVE_UP_AFTER else None


def answer_text(told: str) -> str:
    """Return what a receiver said as it may be stored."""
    return clean_text(told, MAX_ANSWER)


def _check_alert_wish(spec: SubscriptionSpec) -> None:
    """Refuse conditions that no alert meets: it is about one thing, which has no labels."""
    if spec.label is not None:
        raise Invalid("label", "is for jobs and schedules: an alert has none, so subscribe to alerts apart")
    if spec.kind is not None and spec.schedule is not None:
        raise Invalid("schedule", "must not come with a kind for alerts, each of which is about one of them")


def _is_about(subscription: Subscription, happening: Happening) -> bool:
    wanted = (subscription.tenant, subscription.kind, subscription.schedule)
    found = (happening.tenant, happening.kind, happening.schedule)
    if any(want not in (None, found) for want, found in zip(wanted, found, strict=True)):
        return False
    label = subscription.label
    return label is None or happening.labels.get(label[0]) == label[1]


def _events_of(happening: Happening, late_after: timedelta) -> set[Event]:
    events = {happening.event}
    first = happening.failures + happening.losses == 0
    ran = first and happening.token <= 1 and happening.event in _SEEN_IN[Event.LATE]
    if ran and happening.started_at and happening.due_at and happening.started_at - happening.due_at > late_after:
        events.add(Event.LATE)
    if happening.event is Event.SUCCEEDED and (not first or happening.after_dead):
        events.add(Event.RECOVERED)
    return events


def _words(happening: Happening, event: Event) -> dict[str, str]:
    error = happening.error or {}
    detail = happening.detail or {}
    return {
        "event": event.value,
        "meaning": MEANINGS[event],
        "tenant": happening.tenant or "",
        "kind": happening.kind or "",
        "queue": happening.queue or "",
        "schedule": happening.schedule or "",
        "job_id": str(happening.job_id or ""),
        "at": happening.at.isoformat(timespec="seconds"),
        "error": str(error.get("message") or error.get("reason") or ""),
        "detail": str(detail.get("told") or detail.get("reason") or ""),
    }
