"""Alerts: the numbers that a store gives, and what it keeps of what the rules found."""

from typing import Any

import msgspec
import pytest

from tests.builders import DAY, HOUR, MINUTE, SECOND, a_job, a_schedule, a_worker
from tests.contract.backends import Backend
from tests.contract.planning import record_ahead
from tests.contract.steps import claim, finish, start, submit
from tidewheel.clock import SystemClock
from tidewheel.errors import Invalid, NotFound
from tidewheel.keeper.alerts import Watch
from tidewheel.keeper.chores import chore_named, chores_of
from tidewheel.model.alert import AlertState, ClockFact, Finding, KindFact, QueueFact, Rule, WindowSpec
from tidewheel.model.alert_bounds import Bounds
from tidewheel.model.channel import ChannelSpec
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.notification import Event, SubscriptionSpec
from tidewheel.model.resources import Needs, Offer
from tidewheel.model.retention import Upkeep
from tidewheel.model.states import Cause
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store

OLD = Finding(Rule.QUEUE_AGE, "default", "it waits")
BAD = Finding(Rule.FAILURE_RATE, "mail", "all dead", "acme")


async def test_a_queue_says_how_long_its_first_job_waits_and_who_serves_it(backend: Backend, store: Store) -> None:
    await store.submit([a_job(queue="slow"), a_job(queue="slow"), a_job(queue="later", delay=HOUR)])
    await backend.clock.advance(2 * MINUTE)
    await submit(store, queue="slow")
    assert (await store.alert_facts()).queues == [QueueFact("slow", 2 * MINUTE, 0)]
    assert await store.queue_waits() == [QueueFact("slow", 2 * MINUTE, 0)]
    await store.register(a_worker(queues=("slow", "other"), ttl=HOUR))
    assert (await store.alert_facts()).queues == [QueueFact("slow", 2 * MINUTE, 1)]
    await store.close_gate(GateSpec(mode=GateMode.HOLD, queue="slow"))
    assert (await store.alert_facts()).queues == []


async def test_who_waits_for_a_limit_waits_in_its_queue_and_who_waits_for_a_parent_does_not(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await store.set_limit("account", 1)
    for queue in ("mail", "mail", "late", "held"):
        await submit(store, queue=queue, limit_keys=("account",))
    (parent,) = await claim(store, worker, 10, queues=("mail", "late", "held"))
    await submit(store, queue="child", after=(parent.job_id,))
    await store.close_gate(GateSpec(mode=GateMode.HOLD, queue="held"))
    await backend.clock.advance(2 * MINUTE)
    waits = {fact.queue: fact.waits for fact in await store.queue_waits()}
    assert waits == {"mail": 2 * MINUTE, "late": 2 * MINUTE}
    await backend.clock.advance(10 * MINUTE)
    await store.register(a_worker(queues=("mail", "late"), ttl=HOUR))
    await Watch(store).run_once()
    firing = await store.alerts(state=AlertState.FIRING)
    assert sorted((alert.rule, alert.subject) for alert in firing) == [
        (Rule.QUEUE_AGE, "late"),
        (Rule.QUEUE_AGE, "mail"),
    ]


async def test_kinds_say_how_many_of_those_that_ended_lately_are_dead(
    backend: Backend, store: Store, worker: Worker
) -> None:
    for cause in (Cause.GAVE_UP, Cause.GAVE_UP, Cause.RETURNED):
        await finish(store, worker, [await start(store, worker, "mail")], cause)
    await finish(store, worker, [await start(store, worker, "fine")])
    await store.fold_statistics()
    assert (await store.alert_facts()).kinds == [KindFact("default", "mail", 3, 2)]
    await backend.clock.advance(12 * MINUTE)
    assert (await store.alert_facts()).kinds == []


async def test_a_job_of_a_schedule_that_waits_beyond_its_time_is_told(backend: Backend, store: Store) -> None:
    schedule = await store.create_schedule(a_schedule("nightly"))
    await store.trigger_schedule(schedule.id)
    await backend.clock.advance(7 * MINUTE)
    (fact,) = (await store.alert_facts()).schedules
    assert (fact.tenant, fact.schedule, fact.waits, fact.missed) == ("default", "nightly", 7 * MINUTE, None)


async def test_a_clock_that_is_off_is_told_until_it_is_right_again(backend: Backend, store: Store) -> None:
    watch = Watch(store)
    fast, right = [await store.register(a_worker(name, ttl=HOUR)) for name in ("fast", "right")]
    await store.beat([fast.id], clock=backend.clock.now() + 7 * SECOND)
    await store.beat([right.id], clock=backend.clock.now() - SECOND / 2)
    assert (await store.alert_facts()).clocks == [ClockFact("fast", 7 * SECOND)]
    assert [worker.clock_ahead for worker in await store.workers()] == [-SECOND / 2, 7 * SECOND]
    assert await watch.run_once() == 1
    (alert,) = await store.alerts(state=AlertState.FIRING)
    assert (alert.rule, alert.subject, alert.told) == (
        Rule.CLOCK,
        "fast",
        "the clock of worker fast is 7s ahead of the database's",
    )
    await store.beat([fast.id])  # who says nothing changes nothing
    assert await watch.run_once() == 0
    await store.beat([fast.id], clock=backend.clock.now())
    assert await watch.run_once() == 1
    strict = Upkeep(bounds=Bounds(clock_offset=SECOND))
    chore = chore_named(chores_of(store, SystemClock(), strict), "alerts")
    assert await chore.run_once() == 0
    await store.beat([right.id], clock=backend.clock.now() - 2 * SECOND)
    assert await chore.run_once() == 1
    await store.deregister(right.id)
    assert (await store.alert_facts()).clocks == []


async def test_what_is_found_fires_once_and_is_resolved_when_it_is_over(backend: Backend, store: Store) -> None:
    assert await store.keep_alerts([OLD, BAD]) == 2
    assert await store.keep_alerts([OLD, BAD]) == 0
    await backend.clock.advance(MINUTE)
    assert await store.keep_alerts([BAD]) == 1
    over, bad = sorted(await store.alerts(), key=lambda alert: alert.rule, reverse=True)
    assert (over.state, over.resolved_at) == (AlertState.RESOLVED, backend.clock.now())
    assert (bad.state, bad.tenant, bad.told) == (AlertState.FIRING, "acme", "all dead")
    assert await store.keep_alerts([OLD]) == 2
    assert len(await store.alerts(state=AlertState.FIRING)) == 1
    assert len(await store.alerts()) == 3
    assert [alert.tenant for alert in await store.alerts(tenant="acme")] == ["acme"]


async def test_firing_and_resolving_are_events(store: Store) -> None:
    await store.add_channel(ChannelSpec(name="ops", address="https://example.org"))
    wanted = frozenset([Event.FIRING, Event.RESOLVED])
    await store.subscribe(SubscriptionSpec(channel="ops", events=wanted, text="$event: $detail"))
    for found in ([OLD], [OLD], []):
        await store.keep_alerts(found)
    await store.spread_happenings()
    parcels = await store.take_deliveries()
    assert sorted(parcel.text for parcel in parcels) == ["alert.firing: it waits", "alert.resolved: it waits"]
    (alert,) = await store.alerts()
    assert sorted(parcel.key for parcel in parcels) == [f"{alert.id}.alert.firing", f"{alert.id}.alert.resolved"]
    assert {msgspec.json.decode(parcel.body)["data"]["detail"]["alert_id"] for parcel in parcels} == {str(alert.id)}


async def test_each_time_that_an_alert_fires_is_told(store: Store) -> None:
    await store.add_channel(ChannelSpec(name="ops", address="https://example.org"))
    await store.subscribe(SubscriptionSpec(channel="ops", events=frozenset([Event.FIRING, Event.RESOLVED])))
    for found in ([OLD], [], [OLD], []):
        await store.keep_alerts(found)
    await store.spread_happenings()
    assert len({parcel.key for parcel in await store.take_deliveries()}) == 4


@pytest.mark.native("the server notes whose key it was")
async def test_an_alert_can_be_acknowledged_once(store: Store) -> None:
    await store.keep_alerts([BAD])
    (alert,) = await store.alerts()
    assert (await store.acknowledge(alert.id, "ann")).acknowledged_by == "ann"
    assert (await store.acknowledge(alert.id, "bob", tenant="acme")).acknowledged_by == "ann"
    with pytest.raises(NotFound):
        await store.acknowledge(alert.id, "eve", tenant="other")


async def test_in_a_maintenance_window_its_rules_neither_fire_nor_resolve(backend: Backend, store: Store) -> None:
    now = backend.clock.now()
    await store.keep_alerts([BAD])
    rules = frozenset([Rule.QUEUE_AGE, Rule.FAILURE_RATE])
    window = await store.add_window(WindowSpec(start=now, end=now + HOUR, rules=rules, reason="moving"))
    other = Finding(Rule.NO_WORKER, "default", "nobody")
    assert await store.keep_alerts([OLD, other]) == 1
    assert {a.rule for a in await store.alerts(state=AlertState.FIRING)} == {Rule.FAILURE_RATE, Rule.NO_WORKER}
    assert await store.windows() == [window]
    await backend.clock.advance(HOUR)
    assert await store.windows() == []
    assert await store.keep_alerts([OLD, other]) == 2
    with pytest.raises(Invalid, match="end"):
        await store.add_window(WindowSpec(start=now, end=now))


async def test_a_window_can_be_removed(backend: Backend, store: Store) -> None:
    now = backend.clock.now()
    window = await store.add_window(WindowSpec(start=now, end=now + HOUR))
    await store.remove_window(window.id)
    assert await store.keep_alerts([OLD]) == 1
    with pytest.raises(NotFound):
        await store.remove_window(window.id)


async def test_old_alerts_are_forgotten_and_those_that_fire_are_not(backend: Backend, store: Store) -> None:
    await store.keep_alerts([OLD, BAD])
    await store.keep_alerts([BAD])
    await backend.clock.advance(40 * DAY)
    assert await store.retire_alerts() == 1
    assert [alert.rule for alert in await store.alerts()] == [Rule.FAILURE_RATE]


async def test_the_watch_sees_a_queue_that_nobody_serves_until_someone_does(backend: Backend, store: Store) -> None:
    watch = Watch(store)
    await submit(store, queue="lonely")
    assert await watch.run_once() == 0
    await backend.clock.advance(2 * MINUTE)
    assert await watch.run_once() == 1
    (alert,) = await store.alerts(state=AlertState.FIRING)
    assert alert.told == "the first due job of queue lonely waits for 2m, and no live worker serves the queue"
    worker = await store.register(a_worker(queues=("lonely",), ttl=HOUR))
    await finish(store, worker, await claim(store, worker, queues=("lonely",)))
    assert await watch.run_once() == 1
    assert await store.alerts(state=AlertState.FIRING) == []


@pytest.mark.native("occurrences are made by the server")
async def test_a_schedule_that_nobody_looks_after_is_told_until_someone_does(backend: Backend, store: Store) -> None:
    await store.create_schedule(a_schedule("nightly"))
    await store.create_schedule(a_schedule("paused"))
    await store.pause_schedule((await store.find_schedule("paused", tenant="default")).id)
    watch = Watch(store)
    await backend.clock.advance(3 * MINUTE)
    assert await watch.run_once() == 0
    await backend.clock.advance(4 * MINUTE)
    assert [fact.overdue for fact in (await store.alert_facts()).schedules] == [6 * MINUTE]
    assert await watch.run_once() == 1
    (alert,) = await store.alerts(state=AlertState.FIRING)
    assert (alert.rule, alert.subject) == (Rule.SCHEDULE_OVERDUE, "nightly")
    assert alert.told == "schedule nightly was due 6m ago, and nobody has looked after it"
    await record_ahead(store, MINUTE)
    await watch.run_once()
    assert Rule.SCHEDULE_OVERDUE not in {each.rule for each in await store.alerts(state=AlertState.FIRING)}


@pytest.mark.parametrize(
    ("worker", "told"),
    [
        ({}, Rule.NO_WORKER_OF_KIND),
        ({"offer": Offer(labels={"gpu": "yes"})}, None),
        ({"offer": Offer(labels={"gpu": "no"})}, Rule.NO_WORKER_OF_KIND),
        ({"offer": Offer(labels={"gpu": "yes"}), "kinds": ("mail", "other")}, None),
        ({"offer": Offer(labels={"gpu": "yes"}), "kinds": ("other",)}, Rule.NO_WORKER_OF_KIND),
        ({"offer": Offer(labels={"gpu": "yes"}), "queues": ("other",)}, Rule.NO_WORKER),
    ],
)
@pytest.mark.native("a worker of another tenant comes with another key")
async def test_a_kind_that_no_worker_of_its_queue_takes_is_told(
    backend: Backend, store: Store, worker: dict[str, Any], told: Rule | None
) -> None:
    spec = {"ttl": HOUR, **worker}
    await store.register(a_worker("one", **spec))
    await store.register(a_worker("other's", **{**spec, "tenant": "other", "offer": Offer(labels={"gpu": "yes"})}))
    await submit(store, "mail", needs=Needs(labels={"gpu": "yes"}))
    await backend.clock.advance(2 * MINUTE)
    await Watch(store).run_once()
    firing = await store.alerts(state=AlertState.FIRING)
    assert [alert.rule for alert in firing] == ([] if told is None else [told])
    if told is Rule.NO_WORKER_OF_KIND:
        assert (firing[0].subject, firing[0].tenant) == ("mail", "default")
        assert firing[0].told.endswith("waits for 2m, and no live worker of queue default can take it")
