"""Occurrences of the past that are made up for, and schedules that code declares."""

import asyncio
from datetime import timedelta

import pytest

from tests.builders import HOUR, MINUTE, SECOND, a_claim, a_schedule, outcome_of
from tests.contract.backends import START, Backend
from tests.contract.planning import decide_all, fates, record_ahead
from tidewheel.errors import Invalid, NotFound, StaleVersion
from tidewheel.model.misfire import Misfire
from tidewheel.model.overlap import Overlap
from tidewheel.model.priority import Priority
from tidewheel.model.schedule import Declared, Fate
from tidewheel.model.states import State
from tidewheel.model.worker import Worker
from tidewheel.store.base import JobFilter, Store
from tidewheel.store.scheduling import Backfill
from tidewheel.triggers import Interval
from tidewheel.triggers.backfilling import MAX_BACKFILL

PAST = [START - n * HOUR for n in (1, 3, 2)]


async def test_a_backfill_makes_jobs_for_times_of_the_past_in_order_and_apart(store: Store) -> None:
    made = await store.create_schedule(a_schedule(labels={"team": "data"}))
    wish = Backfill(times=PAST, spacing=10 * SECOND, priority=Priority.LOW)

    done = await store.backfill_schedule(made.id, wish, version=1)

    assert [each.fire_at for each in done] == sorted(PAST)
    assert {(each.source, each.outcome) for each in done} == {("backfill", Fate.MADE)}
    jobs = {job.id: job for job in (await store.find(JobFilter(schedule_id=made.id))).jobs}
    for number, each in enumerate(done):
        assert each.job_id is not None
        job = jobs[each.job_id]
        assert (job.run_at, job.priority) == (START + number * 10 * SECOND, Priority.LOW)
        assert job.labels == {"team": "data", "fire_at": each.fire_at.isoformat()}
        assert job.limit_keys == ()
    assert await store.occurrences(made.id) == done[::-1]
    schedule = await store.get_schedule(made.id)
    assert (schedule.fired, schedule.next_fire_at) == (0, START + MINUTE)


async def test_a_dry_run_tells_and_writes_nothing(store: Store) -> None:
    made = await store.create_schedule(a_schedule())

    told = await store.backfill_schedule(made.id, Backfill(times=PAST, dry_run=True), version=1)

    assert [(each.fire_at, each.job_id) for each in told] == [(at, None) for at in sorted(PAST)]
    assert await store.occurrences(made.id) == []
    assert (await store.find(JobFilter())).jobs == []


async def test_a_backfill_runs_what_was_missed_and_leaves_what_was_made(store: Store, backend: Backend) -> None:
    misfire = Misfire(policy="skip", grace=MINUTE)
    made = await store.create_schedule(a_schedule(rule=Interval(10 * MINUTE), misfire=misfire))
    await backend.clock.advance(30 * MINUTE)
    await record_ahead(store, MINUTE)
    assert [fate for _, fate in await fates(store)] == [Fate.MISSED, Fate.MISSED, Fate.MADE]
    times = [START + n * 10 * MINUTE for n in (1, 2, 3)]

    first = await store.backfill_schedule(made.id, Backfill(times=times), version=1)
    second = await store.backfill_schedule(made.id, Backfill(times=times), version=1)

    assert [each.fire_at for each in first] == times[:2]
    assert second == []
    assert [(each.outcome, each.source, each.reason) for each in await store.occurrences(made.id)] == [
        (Fate.MADE, "planned", ""),
        (Fate.MADE, "backfill", ""),
        (Fate.MADE, "backfill", ""),
    ]


async def test_a_backfill_neither_skips_the_live_ones_nor_waits_for_them(
    store: Store, backend: Backend, worker: Worker
) -> None:
    made = await store.create_schedule(a_schedule(overlap=Overlap.SKIP))
    await store.backfill_schedule(made.id, Backfill(times=PAST), version=1)
    assert len((await store.claim(a_claim(worker.id))).runs) == 3
    await record_ahead(store, MINUTE)
    await backend.clock.advance(MINUTE)
    await decide_all(store)

    (run,) = (await store.claim(a_claim(worker.id))).runs
    assert run.due_at == START + MINUTE
    assert (await fates(store))[-1] == (START + MINUTE, Fate.MADE)


async def test_a_change_leaves_the_jobs_of_a_backfill(store: Store, worker: Worker) -> None:
    made = await store.create_schedule(a_schedule())
    await store.backfill_schedule(made.id, Backfill(times=PAST, spacing=HOUR), version=1)

    await store.change_schedule(made.id, a_schedule(rule=Interval(HOUR)), version=1)
    assert {job.state for job in (await store.find(JobFilter())).jobs} == {State.QUEUED}
    (run,) = (await store.claim(a_claim(worker.id))).runs
    await store.settle(worker.id, [outcome_of(run)])
    await store.delete_schedule(made.id)
    assert sorted(job.state for job in (await store.find(JobFilter())).jobs) == [
        *[State.CANCELLED] * 2,
        State.SUCCEEDED,
    ]


async def test_a_backfill_is_bounded_and_knows_the_schedule_that_it_is_for(store: Store) -> None:
    made = await store.create_schedule(a_schedule())
    many = [START - n * MINUTE for n in range(MAX_BACKFILL + 1)]

    for wish, message in (
        (Backfill(times=many), "times: at most 10000 occurrences in one backfill, not 10001"),
        (Backfill(times=PAST, spacing=timedelta(days=11)), "spacing: must be between"),
        (Backfill(times=[START.replace(year=1999)]), "times: must lie between"),
    ):
        with pytest.raises(Invalid, match=message):
            await store.backfill_schedule(made.id, wish, version=1)
    with pytest.raises(StaleVersion):
        await store.backfill_schedule(made.id, Backfill(times=PAST), version=2)
    with pytest.raises(NotFound):
        await store.backfill_schedule(made.id, Backfill(times=PAST), version=1, tenant="other")


# Declared by code


async def test_declared_schedules_are_made_changed_left_alone_and_orphaned(store: Store) -> None:
    first = await store.declare_schedules("shop:app", [a_schedule("one"), a_schedule("two"), a_schedule("three")])
    assert first == Declared(created=("one", "two", "three"))
    one = await store.find_schedule("one", tenant="default")
    assert one.declared_by == "shop:app"

    second = await store.declare_schedules("shop:app", [a_schedule("one"), a_schedule("two", Interval(HOUR))])

    assert second == Declared(changed=("two",), unchanged=("one",), orphaned=("three",))
    assert await store.find_schedule("one", tenant="default") == one
    two, three = [await store.find_schedule(name, tenant="default") for name in ("two", "three")]
    assert (two.version, two.next_fire_at) == (2, START + HOUR)
    assert (three.version, three.orphaned_at, three.next_fire_at) == (1, START, START + MINUTE)
    third = await store.declare_schedules("shop:app", [a_schedule(name) for name in ("one", "two", "three")])
    assert third == Declared(changed=("two", "three"), unchanged=("one",))
    assert (await store.find_schedule("three", tenant="default")).orphaned_at is None


async def test_a_declaration_leaves_what_others_have_made_and_makes_nothing_that_never_fires(store: Store) -> None:
    by_hand = await store.create_schedule(a_schedule("one"))
    await store.declare_schedules("other:app", [a_schedule("two")])

    ended = a_schedule("ended", end=START - HOUR)

    told = await store.declare_schedules(
        "shop:app", [*(a_schedule(name, Interval(HOUR)) for name in ("one", "two")), ended, a_schedule("three")]
    )

    assert told == Declared(refused=("one", "two", "ended"), created=("three",))
    assert await store.get_schedule(by_hand.id) == by_hand
    assert (await store.find_schedule("two", tenant="default")).declared_by == "other:app"


async def test_many_workers_declare_the_same_and_each_schedule_is_made_once(store: Store, backend: Backend) -> None:
    stores = [store, await backend.open(), await backend.open()]
    specs = [a_schedule(f"s{n}") for n in range(10)]

    told = await asyncio.gather(*(stores[n % 3].declare_schedules("shop:app", specs) for n in range(9)))

    assert sum(len(each.created) for each in told) == 10
    assert all(each.changed == each.refused == each.orphaned == () for each in told)
    assert {schedule.version for schedule in await store.schedules()} == {1}


async def test_a_declared_schedule_that_a_person_paused_stays_paused(store: Store) -> None:
    await store.declare_schedules("shop:app", [a_schedule("one")])
    one = await store.find_schedule("one", tenant="default")
    await store.pause_schedule(one.id)

    await store.declare_schedules("shop:app", [a_schedule("one")])
    await store.declare_schedules("shop:app", [a_schedule("one", Interval(HOUR))])

    assert (await store.get_schedule(one.id)).paused


async def test_one_bad_declaration_refuses_all(store: Store) -> None:
    with pytest.raises(Invalid, match="name"):
        await store.declare_schedules("shop:app", [a_schedule("one"), a_schedule("a b")])

    assert await store.schedules() == []
