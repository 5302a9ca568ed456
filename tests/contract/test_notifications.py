"""Notifications: what is noted with an outcome, who hears of it, and how often it is tried."""

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from tests.builders import DAY, HOUR, MINUTE, SECOND, a_job, outcome_of
from tests.contract.backends import Backend
from tests.contract.steps import claim, finish, settle, start, submit
from tidewheel.errors import Conflict, Invalid, NotFound
from tidewheel.model.channel import ChannelSpec, NewChannel
from tidewheel.model.notification import Answer, Delivery, DeliveryState, Event, SubscriptionSpec
from tidewheel.model.outcome import Failure
from tidewheel.model.states import Cause
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store
from tidewheel.store.notifying import Shares

OK = Answer(accepted=True, told="200")
BUSY = Answer(accepted=False, told="503")
GONE = Answer(accepted=False, told="410", gone=True)


async def listen(
    store: Store, *events: Event, name: str = "hook", tenant: str | None = None, **wish: Any
) -> NewChannel:
    made = await store.add_channel(ChannelSpec(name=name, address="https://example.org/hook/s3cret", tenant=tenant))
    await store.subscribe(SubscriptionSpec(channel=name, events=frozenset(events), **wish), tenant=tenant)
    return made


async def heard(store: Store) -> list[Delivery]:
    while await store.spread_happenings(limit=3):
        pass
    return list(reversed(await store.deliveries(limit=1000)))


async def events(store: Store) -> list[str]:
    return [delivery.event for delivery in await heard(store)]


async def test_an_outcome_is_told_to_whoever_asked_and_to_nobody_else(store: Store, worker: Worker) -> None:
    await listen(store, Event.SUCCEEDED, kind="mail")
    runs = [await start(store, worker, kind) for kind in ("mail", "other")]
    await finish(store, worker, runs)
    (delivery,) = await heard(store)
    assert delivery.key == f"{runs[0].job_id}.{runs[0].token}.succeeded"
    assert (delivery.channel, delivery.state, delivery.tries) == ("hook", DeliveryState.PENDING, 0)


@pytest.mark.parametrize(
    ("causes", "told"),
    [
        ([Cause.RETURNED], ["succeeded"]),
        ([Cause.FAILED, Cause.RETURNED], ["failed", "recovered", "succeeded"]),
        ([Cause.CRASHED, Cause.GAVE_UP], ["failed", "dead"]),
        ([Cause.SNOOZED, Cause.RELEASED, Cause.RETURNED], ["succeeded"]),
    ],
)
async def test_each_end_of_a_run_is_the_event_that_it_is(
    store: Store, worker: Worker, causes: list[Cause], told: list[str]
) -> None:
    await listen(store, *Event)
    await submit(store)
    for cause in causes:
        (run,) = await claim(store, worker)
        assert await settle(store, worker, run, cause)
    assert await events(store) == told


async def test_a_job_that_ends_waiting_is_told_too(store: Store) -> None:
    await listen(store, *Event)
    await store.cancel(await submit(store), reason="not today")
    (delivery,) = await heard(store)
    assert delivery.event == Event.CANCELLED
    assert "not today" in delivery.body


async def test_a_late_start_is_told_beyond_what_the_subscription_allows(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await listen(store, Event.LATE, late_after=timedelta(minutes=10))
    await submit(store)
    await backend.clock.advance(9 * MINUTE)
    await finish(store, worker, await claim(store, worker))
    assert await events(store) == []
    await submit(store)
    await backend.clock.advance(11 * MINUTE)
    await finish(store, worker, await claim(store, worker))
    assert await events(store) == ["late"]


async def test_the_message_says_what_happened(store: Store, worker: Worker) -> None:
    await listen(store, Event.DEAD, label=("team", "blue"), text="$kind is $event: $error")
    error = Failure(reason="error", message="the disk is full")
    for team in ("red", "blue"):
        run = await start(store, worker, "backup", labels={"team": team})
        await settle(store, worker, run, Cause.GAVE_UP, error=error)
    assert len(await heard(store)) == 1
    (parcel,) = await store.take_deliveries()
    assert parcel.text == "backup is dead: the disk is full"
    assert '"type":"dev.tidewheel.job.dead"' in parcel.body
    assert '"specversion":"1.0"' in parcel.body
    assert '"team":"blue"' in parcel.body


async def test_a_tenant_hears_of_its_own_jobs_alone_and_operators_of_all(store: Store, worker: Worker) -> None:
    await listen(store, Event.SUCCEEDED, tenant="acme")
    await listen(store, Event.SUCCEEDED, name="all")
    for tenant in ("acme", "other"):
        await finish(store, worker, [await start(store, worker, tenant=tenant)])
    assert [(d.channel, d.tenant) for d in await heard(store)] == [("hook", "acme"), ("all", "acme"), ("all", "other")]
    assert [d.channel for d in await store.deliveries(tenant="acme")] == ["hook"]
    assert [c.name for c in await store.channels(tenant="acme")] == ["hook"]
    assert await store.subscriptions(tenant="other") == []


async def test_a_tenant_touches_nothing_of_others(store: Store, worker: Worker) -> None:
    made = await listen(store, Event.SUCCEEDED, tenant="acme")
    await finish(store, worker, [await start(store, worker, tenant="acme")])
    (delivery,) = await heard(store)
    (wish,) = await store.subscriptions()
    for refused in (
        store.remove_channel(made.channel.id, tenant="other"),
        store.enable_channel(made.channel.id, tenant="other"),
        store.unsubscribe(wish.id, tenant="other"),
        store.resend(delivery.id, tenant="other"),
        store.subscribe(SubscriptionSpec(channel="hook", events=frozenset([Event.DEAD])), tenant="other"),
    ):
        with pytest.raises(NotFound):
            await refused
    with pytest.raises(Invalid, match="tenant"):
        await store.subscribe(
            SubscriptionSpec(channel="hook", events=frozenset([Event.DEAD]), tenant="x"), tenant="acme"
        )


async def test_a_refused_outcome_is_never_told(store: Store, worker: Worker) -> None:
    await listen(store, *Event)
    run = await start(store, worker)
    await settle(store, worker, run, Cause.RELEASED)
    (again,) = await claim(store, worker)
    assert await store.settle(worker.id, [outcome_of(run)])
    assert await events(store) == []
    await finish(store, worker, [again])
    assert await events(store) == ["succeeded"]


async def test_an_outcome_that_cannot_be_stored_is_told_as_what_became_of_it(store: Store, worker: Worker) -> None:
    await listen(store, *Event)
    runs = [await start(store, worker) for _ in range(3)]
    bad = outcome_of(runs[1], result='"\\u0000"')
    await store.settle(worker.id, [outcome_of(runs[0]), bad, outcome_of(runs[2])])
    assert sorted(await events(store)) == ["dead", "succeeded", "succeeded"]


async def test_nothing_is_noted_while_nobody_asks(store: Store, worker: Worker) -> None:
    await listen(store, Event.DEAD)
    await listen(store, Event.SUCCEEDED, name="other", kind="other")
    await finish(store, worker, [await start(store, worker)])
    assert await store.spread_happenings() == 0


async def test_two_who_tell_at_once_tell_once(backend: Backend, store: Store, worker: Worker) -> None:
    await listen(store, Event.SUCCEEDED)
    await store.subscribe(SubscriptionSpec(channel="hook", events=frozenset([Event.SUCCEEDED]), kind="echo"))
    await store.submit([a_job() for _ in range(20)])
    await finish(store, worker, await claim(store, worker, 20))
    other = await backend.open()
    await store.spread_happenings(limit=10)
    await other.spread_happenings()
    keys = [d.key for d in await heard(store)]
    assert len(keys) == len(set(keys)) == 20
    taken = await store.take_deliveries(Shares(all=15)) + await other.take_deliveries(Shares(all=15))
    assert len({parcel.delivery_id for parcel in taken}) == 20


async def test_what_is_not_accepted_is_tried_ever_more_rarely_for_a_day(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await listen(store, Event.SUCCEEDED)
    await finish(store, worker, [await start(store, worker)])
    began = (await heard(store))[0].created_at
    pauses = []
    for _ in range(40):
        (parcel,) = await store.take_deliveries()
        assert await store.close_delivery(parcel, BUSY)
        (delivery,) = await store.deliveries()
        if delivery.state is DeliveryState.FAILED:
            break
        assert delivery.next_at is not None
        pauses.append(delivery.next_at - backend.clock.now())
        assert await store.take_deliveries() == []
        await backend.clock.advance(pauses[-1])
    assert pauses == sorted(pauses)
    assert pauses[0] == 5 * SECOND
    assert timedelta(hours=20) < backend.clock.now() - began <= DAY
    assert (delivery.answer, delivery.next_at) == ("503", None)
    assert await store.take_deliveries() == []
    assert [(each.accepted, each.answer) for each in delivery.attempts] == [(False, "503")] * delivery.tries
    assert [later.at - each.at for each, later in pairwise(delivery.attempts)] == pauses


async def test_a_sender_that_died_is_followed_by_another_whose_word_counts(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await listen(store, Event.SUCCEEDED)
    await finish(store, worker, [await start(store, worker)])
    await heard(store)
    (first,) = await store.take_deliveries()
    assert await store.take_deliveries() == []
    await backend.clock.advance(3 * MINUTE)
    (second,) = await store.take_deliveries()
    assert second.tries == 2
    assert not await store.close_delivery(first, BUSY)
    assert await store.close_delivery(second, OK)
    assert not await store.close_delivery(second, BUSY)
    (delivery,) = await store.deliveries()
    assert delivery.state is DeliveryState.SENT


async def test_a_receiver_that_is_gone_disables_its_channel(store: Store, worker: Worker) -> None:
    made = await listen(store, Event.SUCCEEDED)
    await store.submit([a_job(), a_job()])
    await finish(store, worker, await claim(store, worker))
    await heard(store)
    parcel, *_ = await store.take_deliveries(Shares(all=1))
    assert await store.close_delivery(parcel, GONE)
    (channel,) = await store.channels()
    assert channel.disabled
    assert {d.state for d in await store.deliveries()} == {DeliveryState.FAILED}
    await finish(store, worker, [await start(store, worker)])
    assert len(await heard(store)) == 2
    assert (await store.enable_channel(made.channel.id)).disabled is None
    await finish(store, worker, [await start(store, worker)])
    assert len(await heard(store)) == 3


async def test_a_delivery_can_be_sent_again(backend: Backend, store: Store, worker: Worker) -> None:
    await listen(store, Event.SUCCEEDED)
    await finish(store, worker, [await start(store, worker)])
    await heard(store)
    (parcel,) = await store.take_deliveries()
    await store.close_delivery(parcel, OK)
    await backend.clock.advance(HOUR)
    again = await store.resend(parcel.delivery_id)
    assert again.state is DeliveryState.PENDING
    (second,) = await store.take_deliveries()
    assert not await store.close_delivery(parcel, GONE), "what is said of the time before does not count"
    assert (second.key, second.body) == (parcel.key, parcel.body)
    assert await store.close_delivery(second, BUSY)
    (delivery,) = await store.deliveries()
    assert delivery.next_at == backend.clock.now() + 5 * SECOND, "it is tried as if for the first time"
    assert [each.accepted for each in delivery.attempts] == [True, False]


async def test_neither_address_nor_secret_is_ever_shown_again(store: Store, worker: Worker) -> None:
    made = await listen(store, Event.SUCCEEDED)
    assert made.secret is not None
    assert made.secret.startswith("whsec_")
    await finish(store, worker, [await start(store, worker)])
    told = repr([await store.channels(), await store.subscriptions(), await heard(store), made])
    (parcel,) = await store.take_deliveries()
    assert (parcel.secret, parcel.address) == (made.secret, "https://example.org/hook/s3cret")
    for hidden in (made.secret, "s3cret"):
        assert hidden not in told + repr(parcel)
    assert (await store.channels())[0].shown == "https://example.org/…"


async def test_a_secret_is_changed_and_the_old_one_goes_on_for_a_while(
    backend: Backend, store: Store, worker: Worker
) -> None:
    made = await listen(store, Event.SUCCEEDED, tenant="acme")
    again = await store.rotate_secret(made.channel.id, keep=HOUR, tenant="acme")
    assert again.channel == made.channel
    assert again.secret not in (None, made.secret)
    await finish(store, worker, [await start(store, worker, tenant="acme")])
    await heard(store)
    (parcel,) = await store.take_deliveries()
    assert (parcel.secret, parcel.old_secret) == (again.secret, made.secret)
    await store.close_delivery(parcel, BUSY)
    await backend.clock.advance(HOUR)
    (parcel,) = await store.take_deliveries()
    assert (parcel.secret, parcel.old_secret) == (again.secret, None)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what apprise imports
async def test_a_secret_that_cannot_be_changed_is_left_alone(store: Store) -> None:
    made = await listen(store, Event.SUCCEEDED, tenant="acme")
    service = await store.add_channel(ChannelSpec(name="mail", address="mailtos://user:hunter2@mail.example"))
    with pytest.raises(NotFound):
        await store.rotate_secret(made.channel.id, tenant="other")
    with pytest.raises(Invalid, match="webhook"):
        await store.rotate_secret(service.channel.id)
    with pytest.raises(Invalid, match="keep"):
        await store.rotate_secret(made.channel.id, keep=31 * DAY)


async def test_names_of_channels_are_taken_once(store: Store) -> None:
    await store.add_channel(ChannelSpec(name="a", address="https://example.org"))
    with pytest.raises(Conflict):
        await store.add_channel(ChannelSpec(name="a", address="https://example.org"))
    await store.add_channel(ChannelSpec(name="a", address="https://example.org", tenant="acme"))
    with pytest.raises(NotFound):
        await store.subscribe(SubscriptionSpec(channel="b", events=frozenset([Event.DEAD])))


async def test_a_removed_channel_takes_all_of_it_along(store: Store, worker: Worker) -> None:
    made = await listen(store, Event.SUCCEEDED)
    await finish(store, worker, [await start(store, worker)])
    await heard(store)
    await store.remove_channel(made.channel.id)
    assert await store.channels() == []
    assert await store.subscriptions() == []
    assert await store.deliveries() == []
    with pytest.raises(NotFound):
        await store.remove_channel(made.channel.id)


async def test_an_unsubscribed_wish_is_heard_no_more(store: Store, worker: Worker) -> None:
    await listen(store, Event.SUCCEEDED)
    (wish,) = await store.subscriptions()
    await store.unsubscribe(wish.id)
    await finish(store, worker, [await start(store, worker)])
    assert await store.spread_happenings() == 0
    with pytest.raises(NotFound):
        await store.unsubscribe(wish.id)


async def test_old_deliveries_are_forgotten_and_those_under_way_are_not(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await listen(store, Event.SUCCEEDED)
    await store.submit([a_job(), a_job()])
    await finish(store, worker, await claim(store, worker))
    await heard(store)
    sent, _ = await store.take_deliveries()
    await store.close_delivery(sent, OK)
    await backend.clock.advance(40 * DAY)
    assert await store.retire_deliveries() == 1
    assert [d.state for d in await store.deliveries()] == [DeliveryState.PENDING]


async def test_the_agenda_says_when_something_is_to_be_told(backend: Backend, store: Store, worker: Worker) -> None:
    await listen(store, Event.SUCCEEDED)
    assert not (await store.agenda()).happened
    await finish(store, worker, [await start(store, worker)])
    assert (await store.agenda()).happened
    await store.spread_happenings()
    agenda = await store.agenda()
    assert not agenda.happened
    assert agenda.next_delivery == backend.clock.now()


@pytest.mark.parametrize(
    "change",
    [
        '{"events": ["succeeded", "newer"]}',
        '{"events": ["newer"], "of": "a newer program"}',
        '{"label": {"of": "another kind"}}',
    ],
)
async def test_a_subscription_that_a_newer_program_made_keeps_nobody_else_from_being_told(
    backend: Backend, store: Store, worker: Worker, caplog: pytest.LogCaptureFixture, change: str
) -> None:
    told = ["new", "old"] if "succeeded" in change else ["old"]
    await listen(store, Event.SUCCEEDED, Event.LATE, name="new")
    await backend.subscribe_as_newer(change)
    await listen(store, Event.SUCCEEDED, name="old")
    await store.subscribe(SubscriptionSpec(channel="old", events=frozenset([Event.LATE])))
    for _ in range(2):
        await finish(store, worker, [await start(store, worker)])
        assert [delivery.channel for delivery in (await heard(store))[-len(told) :]] == told
    await submit(store)
    await backend.clock.advance(HOUR)
    await store.notice_late()
    assert "old" in {delivery.channel for delivery in await store.deliveries() if delivery.event == Event.LATE}
    assert {wish.channel for wish in await store.subscriptions()} == {"old"} | (
        {"new"} if "events" in change else set()
    )
    assert len([line for line in caplog.messages if "a newer program made it" in line]) == 1


async def test_an_event_that_is_not_known_waits_for_a_program_that_knows_it(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await listen(store, Event.SUCCEEDED)
    await finish(store, worker, [await start(store, worker) for _ in range(4)])
    await backend.happen_as_newer()
    await finish(store, worker, [await start(store, worker)])
    assert [await store.spread_happenings(limit=3), await store.spread_happenings(limit=3)] == [1, 0]
    assert len(await store.deliveries()) == 1
    assert await backend.count("outbox") == 4


async def test_a_delivery_of_an_event_that_is_not_known_is_listed_with_the_others(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await listen(store, Event.SUCCEEDED)
    for _ in range(2):
        await finish(store, worker, [await start(store, worker)])
    await store.spread_happenings()
    newest, _ = await store.deliveries()
    await backend.deliver_as_newer(newest.id)
    assert [delivery.event for delivery in await store.deliveries()] == ["newer", "succeeded"]
    assert (await store.resend(newest.id)).event == "newer"
