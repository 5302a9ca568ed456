"""Occurrences are recorded with their jobs, exactly once, whoever tries and however often."""

import asyncio
from datetime import timedelta

import pytest

from tests.builders import DAY, HOUR, MINUTE, SECOND, a_claim, a_schedule
from tests.contract.backends import START, Backend
from tests.contract.planning import fates, plans_of, record_ahead
from tidewheel.model.misfire import Misfire
from tidewheel.model.overlap import Overlap
from tidewheel.model.schedule import Fate
from tidewheel.model.states import State
from tidewheel.model.worker import Worker
from tidewheel.store.base import JobFilter, Store
from tidewheel.store.scheduling import SHARDS
from tidewheel.triggers import Cron, Interval, Once

MADE, MISSED = Fate.MADE, Fate.MISSED


async def test_jobs_are_there_before_they_are_due_and_start_on_time(
    store: Store, backend: Backend, worker: Worker
) -> None:
    made = await store.create_schedule(a_schedule(rule=Interval(30 * SECOND), limit_keys=("warehouse",)))

    assert await record_ahead(store, MINUTE) == 2

    occurrences = await store.occurrences(made.id)
    assert [each.fire_at for each in occurrences] == [START + MINUTE, START + 30 * SECOND]
    jobs = {job.id: job for job in (await store.find(JobFilter(schedule_id=made.id))).jobs}
    for occurrence in occurrences:
        assert occurrence.job_id is not None
        job = jobs[occurrence.job_id]
        assert (job.state, job.due_at, job.run_at) == (State.QUEUED, occurrence.fire_at, occurrence.fire_at)
        assert job.limit_keys == ("warehouse", made.limit_key)
    schedule = await store.get_schedule(made.id)
    assert (schedule.fired, schedule.next_fire_at, schedule.version) == (2, START + 90 * SECOND, 1)
    assert (await store.claim(a_claim(worker.id))).runs == []
    await backend.clock.advance(30 * SECOND)
    assert [run.job_id for run in (await store.claim(a_claim(worker.id))).runs] == [occurrences[1].job_id]


async def test_a_plan_that_is_recorded_twice_makes_no_second_job(store: Store) -> None:
    await store.create_schedule(a_schedule())
    plans = await plans_of(store, MINUTE)

    assert await store.record_occurrences(plans) == 1
    assert await store.record_occurrences(plans) == 0

    assert len((await store.find(JobFilter())).jobs) == 1


async def test_of_many_who_record_the_same_plans_each_occurrence_is_recorded_by_one(
    store: Store, backend: Backend
) -> None:
    for n in range(5):
        await store.create_schedule(a_schedule(f"s{n}", Interval(10 * SECOND)))
    stores = [store, await backend.open(), await backend.open()]
    plans = await plans_of(store, MINUTE)

    recorded = await asyncio.gather(*(stores[n % 3].record_occurrences(plans) for n in range(9)))

    assert sorted(recorded) == [*[0] * 8, 30]
    assert len((await store.find(JobFilter(), limit=1000)).jobs) == 30


async def test_an_occurrence_that_is_there_is_not_made_again_though_the_schedule_has_forgotten(
    store: Store, backend: Backend, worker: Worker
) -> None:
    """A clock that was set back: the job of the future runs already, and the schedule begins again before it."""
    made = await store.create_schedule(a_schedule())
    await record_ahead(store, MINUTE)
    (job,) = (await store.find(JobFilter())).jobs
    await backend.backdate(job.id, START - SECOND)
    assert len((await store.claim(a_claim(worker.id))).runs) == 1

    await store.change_schedule(made.id, a_schedule(), version=1)
    assert await record_ahead(store, MINUTE) == 0

    assert len((await store.find(JobFilter())).jobs) == 1
    assert (await store.get_schedule(made.id)).next_fire_at == START + 2 * MINUTE


@pytest.mark.parametrize("meanwhile", ["change", "pause", "delete", "advance"])
async def test_a_plan_from_before_a_change_records_nothing(store: Store, meanwhile: str) -> None:
    made = await store.create_schedule(a_schedule())
    plans = await plans_of(store, MINUTE)
    match meanwhile:
        case "change":
            await store.change_schedule(made.id, a_schedule(args={"new": True}), version=1)
        case "pause":
            await store.pause_schedule(made.id)
        case "delete":
            await store.delete_schedule(made.id)
        case "advance":
            await store.record_occurrences(await plans_of(store, 2 * MINUTE))

    assert await store.record_occurrences(plans) == 0


async def test_one_schedule_that_was_changed_does_not_hold_up_the_others(store: Store) -> None:
    first = await store.create_schedule(a_schedule("one"))
    await store.create_schedule(a_schedule("two"))
    plans = await plans_of(store, MINUTE)
    await store.pause_schedule(first.id)

    assert await store.record_occurrences(plans) == 1
    assert await fates(store, "two") == [(START + MINUTE, MADE)]


async def test_what_was_missed_is_recorded_with_its_reason_and_has_no_job(store: Store, backend: Backend) -> None:
    spec = a_schedule(rule=Interval(10 * MINUTE), misfire=Misfire(policy="skip", grace=15 * MINUTE))
    made = await store.create_schedule(spec)
    await backend.clock.advance(HOUR)

    assert await record_ahead(store, MINUTE) == 6

    recorded = await store.occurrences(made.id)
    assert [each.outcome for each in recorded] == [MADE, MADE, MISSED, MISSED, MISSED, MISSED]
    assert {(each.reason, each.job_id) for each in recorded[2:]} == {("more than 15m late", None)}
    jobs = (await store.find(JobFilter())).jobs
    assert {job.run_at for job in jobs} == {START + HOUR}
    assert {job.due_at for job in jobs} == {START + HOUR, START + 50 * MINUTE}
    assert (await store.get_schedule(made.id)).fired == 6
    assert (await store.missed(), await store.finished()) == (4, {})


async def test_a_schedule_that_has_had_its_occurrences_ends(store: Store, backend: Backend) -> None:
    made = await store.create_schedule(a_schedule(max_occurrences=3))
    once = await store.create_schedule(a_schedule("once", Once(START + MINUTE)))
    assert await record_ahead(store, 2 * MINUTE) == 3
    await backend.clock.advance(DAY)
    assert await record_ahead(store, MINUTE) == 1

    for schedule_id, fired in ((made.id, 3), (once.id, 1)):
        schedule = await store.get_schedule(schedule_id)
        assert (schedule.fired, schedule.next_fire_at) == (fired, None)
    assert await record_ahead(store, DAY) == 0


async def test_a_shard_tells_what_is_near_and_when_to_look_again(store: Store) -> None:
    made = [await store.create_schedule(a_schedule(f"s{n}", Cron(f"{n} 13 * * *"))) for n in range(40)]
    seen = [await store.look_ahead(shard, HOUR + 20 * MINUTE) for shard in range(SHARDS)]

    assert {ahead.now for ahead in seen} == {START}
    assert sorted(each.id for ahead in seen for each in ahead.schedules) == sorted(each.id for each in made[:21])
    assert min(ahead.next_fire_at for ahead in seen if ahead.next_fire_at) == START + HOUR + 21 * MINUTE
    few = await store.look_ahead(0, 2 * HOUR, limit=1)
    assert len(few.schedules) == 1
    fires = [each.next_fire_at for each in made if each.id.int % SHARDS == 0]
    assert few.schedules[0].next_fire_at == min(at for at in fires if at is not None)


async def test_the_next_decision_is_told_unless_there_is_none_to_make(store: Store) -> None:
    limited = await store.create_schedule(a_schedule("limited"))
    free = await store.create_schedule(a_schedule("free", overlap=Overlap.ALLOW))
    await record_ahead(store, MINUTE)

    decisions = {shard: (await store.look_ahead(shard, MINUTE)).next_decision for shard in range(SHARDS)}

    assert decisions[limited.id.int % SHARDS] == START + MINUTE
    if free.id.int % SHARDS != limited.id.int % SHARDS:
        assert decisions[free.id.int % SHARDS] is None


async def test_occurrences_go_page_by_page_and_are_kept_for_a_month(store: Store, backend: Backend) -> None:
    made = await store.create_schedule(a_schedule(rule=Interval(SECOND), overlap=Overlap.ALLOW))
    await record_ahead(store, 10 * SECOND)

    first = await store.occurrences(made.id, limit=4)
    rest = await store.occurrences(made.id, before=first[-1].fire_at)
    assert [each.fire_at for each in (*first, *rest)] == [START + n * SECOND for n in range(10, 0, -1)]

    await backend.clock.advance(timedelta(days=30))
    assert await store.retire_occurrences() == 0
    await backend.clock.advance(SECOND)
    assert await store.retire_occurrences(limit=7) == 7
    assert await store.retire_occurrences(limit=7) == 3
