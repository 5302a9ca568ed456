"""Which subscriptions hear of what: each condition that is accepted can be met, and nothing is told wrongly."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tests.builders import DAY, HOUR, MINUTE, a_schedule
from tests.contract.backends import Backend
from tests.contract.planning import record_ahead
from tests.contract.steps import claim, finish, settle, start, submit
from tidewheel.keeper.alerts import Watch
from tidewheel.model.alert import Finding, Rule
from tidewheel.model.channel import ChannelSpec
from tidewheel.model.job import Options
from tidewheel.model.misfire import Misfire
from tidewheel.model.notification import Event, SubscriptionSpec
from tidewheel.model.states import Cause
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store
from tidewheel.triggers import Interval

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def listen(store: Store, *events: Event, name: str = "ops", **wish: Any) -> None:
    await store.add_channel(ChannelSpec(name=name, address="https://example.org"))
    await store.subscribe(SubscriptionSpec(channel=name, events=frozenset(events), **wish))


async def heard(store: Store) -> list[tuple[str, str]]:
    """Return which channels heard of which events, in order."""
    while await store.spread_happenings():
        pass
    return [(each.channel, each.event) for each in reversed(await store.deliveries(limit=200))]


async def miss_one(backend: Backend, store: Store) -> None:
    """Let a schedule of invoices miss its time."""
    spec = a_schedule(
        "nightly",
        Interval(HOUR),
        kind="invoice",
        labels={"team": "blue"},
        misfire=Misfire(policy="skip", grace=MINUTE),
        max_occurrences=1,
    )
    await store.create_schedule(spec)
    await backend.clock.advance(2 * HOUR)
    assert await record_ahead(store, MINUTE) == 1


@pytest.mark.native("occurrences are made by the server")
@pytest.mark.parametrize(
    ("wish", "told"),
    [
        ({}, True),
        ({"kind": "invoice"}, True),
        ({"schedule": "nightly"}, True),
        ({"label": ("team", "blue")}, True),
        ({"kind": "invoice", "schedule": "nightly", "label": ("team", "blue"), "tenant": "default"}, True),
        ({"kind": "other"}, False),
        ({"schedule": "other"}, False),
        ({"label": ("team", "red")}, False),
        ({"tenant": "other"}, False),
    ],
)
async def test_a_missed_occurrence_is_told_by_kind_schedule_and_label(
    backend: Backend, store: Store, wish: dict[str, Any], *, told: bool
) -> None:
    await listen(store, Event.DEAD, Event.MISSED, text="$schedule of $kind in $queue: $detail", **wish)
    await miss_one(backend, store)
    assert await heard(store) == [("ops", "missed")] * told
    for parcel in await store.take_deliveries():
        assert parcel.text == "nightly of invoice in default: more than 1m late"
        event = msgspec.json.decode(parcel.body)
        assert (event["type"], event["subject"]) == ("dev.tidewheel.schedule.missed", "nightly")
        assert event["data"]["labels"] == {"team": "blue"}


@pytest.mark.parametrize(
    ("found", "wish", "told"),
    [
        (Finding(Rule.FAILURE_RATE, "mail", "bad", "acme"), {"kind": "mail"}, True),
        (Finding(Rule.FAILURE_RATE, "mail", "bad", "acme"), {"kind": "mail", "tenant": "acme"}, True),
        (Finding(Rule.FAILURE_RATE, "other", "bad", "acme"), {"kind": "mail"}, False),
        (Finding(Rule.SCHEDULE_MISSED, "nightly", "bad", "acme"), {"schedule": "nightly"}, True),
        (Finding(Rule.SCHEDULE_LATE, "hourly", "bad", "acme"), {"schedule": "nightly"}, False),
        (Finding(Rule.QUEUE_AGE, "mail", "bad"), {"kind": "mail"}, False),
    ],
)
async def test_alerts_are_told_by_what_they_are_about(
    store: Store, found: Finding, wish: dict[str, Any], *, told: bool
) -> None:
    await listen(store, Event.FIRING, Event.RESOLVED, **wish)
    findings: Sequence[list[Finding]] = ([found], [])
    for each in findings:
        await store.keep_alerts(each)
    assert await heard(store) == [("ops", "alert.firing"), ("ops", "alert.resolved")] * told


async def test_an_outcome_is_told_by_its_schedule(store: Store, worker: Worker) -> None:
    for name in ("nightly", "hourly"):
        await listen(store, Event.SUCCEEDED, name=name, schedule=name)
    schedule = await store.create_schedule(a_schedule("nightly"))
    await store.trigger_schedule(schedule.id)
    await finish(store, worker, await claim(store, worker))
    assert await heard(store) == [("nightly", "succeeded")]


async def test_the_next_success_of_a_schedule_whose_last_job_was_dead_is_a_recovery(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await listen(store, Event.RECOVERED)
    schedule = await store.create_schedule(a_schedule("nightly"))
    for cause in (Cause.RETURNED, Cause.GAVE_UP, Cause.RETURNED, Cause.RETURNED):
        await store.trigger_schedule(schedule.id)
        await finish(store, worker, await claim(store, worker), cause)
        await backend.clock.advance(MINUTE)
    assert await heard(store) == [("ops", "recovered")]


async def test_a_job_that_was_dead_and_succeeds_when_it_is_sent_round_again_has_recovered(
    store: Store, worker: Worker
) -> None:
    await listen(store, Event.DEAD, Event.SUCCEEDED, Event.RECOVERED)
    run = await start(store, worker)
    await settle(store, worker, run, Cause.GAVE_UP)
    await store.redrive([run.job_id])
    await finish(store, worker, await claim(store, worker))
    told = await heard(store)
    assert [event for _, event in told] == ["dead", "recovered", "succeeded"]


async def test_one_that_was_put_off_or_stopped_has_not_recovered(store: Store, worker: Worker) -> None:
    await listen(store, Event.RECOVERED)
    for cause in (Cause.SNOOZED, Cause.RELEASED):
        run = await start(store, worker)
        await settle(store, worker, run, cause)
        await finish(store, worker, await claim(store, worker))
    run = await start(store, worker)
    await store.cancel(run.job_id)
    await settle(store, worker, run, Cause.STOPPED)
    await store.redrive([run.job_id])
    await finish(store, worker, await claim(store, worker))
    assert await heard(store) == []


async def test_what_is_cancelled_again_is_told_again(store: Store, worker: Worker) -> None:
    await listen(store, Event.CANCELLED)
    job_id = await submit(store)
    await store.cancel(job_id)
    await store.redrive([job_id])
    await store.cancel(job_id)
    await store.redrive([job_id])
    (run,) = await claim(store, worker)
    await store.cancel(job_id)
    await settle(store, worker, run, Cause.STOPPED)
    await store.redrive([job_id])
    await store.cancel(job_id)
    assert await heard(store) == [("ops", "cancelled")] * 4
    keys = {delivery.key for delivery in await store.deliveries()}
    assert len(keys) == 4


@pytest.mark.parametrize("cause", [Cause.GAVE_UP, Cause.SNOOZED])
async def test_what_is_sent_round_again_or_put_off_is_not_late(
    backend: Backend, store: Store, worker: Worker, cause: Cause
) -> None:
    """Its first run began on time."""
    await listen(store, Event.LATE)
    schedule = await store.create_schedule(a_schedule("nightly"))
    await store.trigger_schedule(schedule.id)
    (run,) = await claim(store, worker)
    await settle(store, worker, run, cause, delay=timedelta(0))
    await backend.clock.advance(30 * MINUTE)
    await store.redrive([run.job_id])
    await Watch(store).run_once()
    late = [alert for alert in await store.alerts() if alert.rule is Rule.SCHEDULE_LATE]
    assert len(late) == (cause is Cause.SNOOZED), "it waits since it was put off"
    await finish(store, worker, await claim(store, worker))
    assert await heard(store) == []


async def test_a_job_that_was_sent_round_again_is_late_once_it_waits_too_long(
    backend: Backend, store: Store, worker: Worker
) -> None:
    schedule = await store.create_schedule(a_schedule("nightly"))
    await store.trigger_schedule(schedule.id)
    (run,) = await claim(store, worker)
    await settle(store, worker, run, Cause.GAVE_UP)
    await backend.clock.advance(DAY)
    await store.redrive([run.job_id])
    await backend.clock.advance(6 * MINUTE)
    facts = (await store.alert_facts()).schedules
    assert [(fact.schedule, fact.waits) for fact in facts] == [("nightly", 6 * MINUTE)]


async def test_an_event_carries_the_trace_of_its_job(store: Store, worker: Worker) -> None:
    await listen(store, Event.FAILED, Event.SUCCEEDED)
    await submit(store, options=Options(traceparent=TRACE))
    for cause in (Cause.FAILED, Cause.RETURNED):
        (run,) = await claim(store, worker)
        await settle(store, worker, run, cause)
    await heard(store)
    events = [msgspec.json.decode(delivery.body) for delivery in await store.deliveries()]
    assert [event["traceparent"] for event in events] == [TRACE, TRACE]
