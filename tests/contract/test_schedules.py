"""Schedules are made, changed, paused, resumed, triggered and deleted."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from tests.builders import DAY, HOUR, MINUTE, SECOND, a_claim, a_job, a_schedule, needing
from tests.contract.backends import START, Backend
from tests.contract.planning import record_ahead
from tests.contract.steps import claim, everything, settle, stores_on
from tidewheel.errors import Invalid, KeyReused, NameTaken, NotFound, StaleVersion
from tidewheel.model.misfire import Misfire
from tidewheel.model.overlap import Overlap
from tidewheel.model.priority import Priority
from tidewheel.model.retry import RetryPolicy
from tidewheel.model.schedule import Fate, ScheduleSpec, Triggered
from tidewheel.model.states import Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import JobFilter, Store
from tidewheel.triggers import Cron, Interval, Once


async def test_a_schedule_comes_back_as_it_was_made(store: Store) -> None:
    spec = a_schedule(
        "nightly",
        Cron("30 2 * * *", "Europe/Berlin"),
        tenant="acme",
        description="all\nof it",
        queue="night",
        args={"deep": [1, {"x": None}]},
        labels={"team": "data"},
        priority=Priority.LOW,
        needs=needing({"cpu": 500}, zone="eu"),
        retry=RetryPolicy(max_attempts=7),
        timeout=timedelta(seconds=90),
        limit_keys=("warehouse",),
        misfire=Misfire(policy="all", most=3, grace=HOUR),
        overlap=Overlap.CANCEL_PREVIOUS,
        max_concurrency=2,
        end=START + 30 * DAY,
        jitter=SECOND,
    )

    made = await store.create_schedule(spec)

    assert made.definition == spec
    assert (made.version, made.fired, made.paused, made.declared_by, made.orphaned_at) == (1, 0, False, None, None)
    assert made.created_at == made.updated_at == START
    assert made.next_fire_at is not None
    assert made.next_fire_at.replace(microsecond=0) == START.replace(day=2, hour=1, minute=30)
    assert await store.get_schedule(made.id) == made
    assert await store.get_schedule(made.id, tenant="acme") == made
    assert await store.find_schedule("nightly", tenant="acme") == made


async def test_a_name_is_taken_once_in_each_tenant(store: Store) -> None:
    await store.create_schedule(a_schedule("tidy"))
    await store.create_schedule(a_schedule("tidy", tenant="acme"))

    with pytest.raises(NameTaken, match="there is a schedule named 'tidy' already"):
        await store.create_schedule(a_schedule("tidy", Interval(HOUR)))

    assert len(await store.schedules()) == 2


async def test_of_many_who_make_the_same_name_one_succeeds(store: Store, backend: Backend) -> None:
    stores = [store, await backend.open()]
    made = await asyncio.gather(
        *(stores[n % 2].create_schedule(a_schedule("tidy")) for n in range(10)), return_exceptions=True
    )

    assert sum(not isinstance(each, Exception) for each in made) == 1
    assert sum(isinstance(each, NameTaken) for each in made) == 9


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (a_schedule("a b"), "name: must consist"),
        (a_schedule(rule=Once(START - SECOND)), "trigger: never fires after 2030-01-01T12:00:00"),
        (a_schedule(end=START - SECOND), "trigger: never fires .* its end was"),
        (a_schedule(max_concurrency=0), "max_concurrency: must be between"),
        (a_schedule(limit_keys=tuple("abcdefgh")), "limit_keys: at most 7"),
        (ScheduleSpec(name="x", kind="x", trigger=msgspec.Raw(b'{"rule":{"type":"cron"}}')), "rule: "),
        (ScheduleSpec(name="x", kind="x", trigger=msgspec.Raw(b"5")), "trigger: "),
    ],
)
async def test_what_cannot_be_or_never_fires_is_refused(store: Store, spec: ScheduleSpec, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        await store.create_schedule(spec)

    assert await store.schedules() == []


async def test_a_change_names_the_version_that_it_was_made_from(store: Store) -> None:
    made = await store.create_schedule(a_schedule())

    changed = await store.change_schedule(made.id, a_schedule(rule=Interval(HOUR)), version=1)

    assert (changed.version, changed.next_fire_at) == (2, START + HOUR)
    assert changed.id == made.id
    with pytest.raises(StaleVersion, match="schedule 'tidy' is at version 2 by now, not 1"):
        await store.change_schedule(made.id, a_schedule(rule=Interval(DAY)), version=1)
    assert await store.get_schedule(made.id) == changed


async def test_a_schedule_gets_another_name_if_that_is_free(store: Store) -> None:
    made = await store.create_schedule(a_schedule("one"))
    await store.create_schedule(a_schedule("two"))

    with pytest.raises(NameTaken, match="two"):
        await store.change_schedule(made.id, a_schedule("two"), version=1)
    assert (await store.change_schedule(made.id, a_schedule("three"), version=1)).name == "three"
    with pytest.raises(NotFound):
        await store.find_schedule("one", tenant="default")


@pytest.mark.parametrize(
    ("spec", "field"),
    [(a_schedule(tenant="acme"), "tenant"), (a_schedule(rule=Once(START)), "trigger"), (a_schedule(kind=""), "kind")],
)
async def test_a_bad_change_changes_nothing(store: Store, spec: ScheduleSpec, field: str) -> None:
    made = await store.create_schedule(a_schedule())
    await record_ahead(store, MINUTE)
    before = await store.get_schedule(made.id), await store.occurrences(made.id)

    with pytest.raises(Invalid) as refused:
        await store.change_schedule(made.id, spec, version=1)

    assert refused.value.field == field
    assert (await store.get_schedule(made.id), await store.occurrences(made.id)) == before


async def test_a_change_replaces_what_was_written_ahead_and_leaves_what_is_due(store: Store, backend: Backend) -> None:
    made = await store.create_schedule(a_schedule(rule=Interval(10 * SECOND), overlap=Overlap.ALLOW))
    await record_ahead(store, MINUTE)
    await backend.clock.advance(25 * SECOND)

    changed = await store.change_schedule(made.id, a_schedule(rule=Interval(15 * SECOND)), version=1)

    kept = await store.occurrences(made.id)
    assert [occurrence.fire_at for occurrence in kept] == [START + 20 * SECOND, START + 10 * SECOND]
    states = [job.state for job in (await store.find(JobFilter())).jobs]
    assert sorted(states) == [*[State.CANCELLED] * 4, *[State.QUEUED] * 2]
    assert (changed.fired, changed.next_fire_at) == (2, START + 30 * SECOND)
    await record_ahead(store, MINUTE)
    again = [occurrence.fire_at for occurrence in await store.occurrences(made.id)]
    assert again[:2] == [START + 75 * SECOND, START + 60 * SECOND]
    assert len(again) == len(set(again))


async def test_a_paused_schedule_fires_no_more_and_resumes_from_now(store: Store, backend: Backend) -> None:
    made = await store.create_schedule(a_schedule(rule=Interval(20 * SECOND)))
    await record_ahead(store, MINUTE)

    paused = await store.pause_schedule(made.id)
    assert (paused.paused, paused.next_fire_at, paused.version, paused.fired) == (True, None, 2, 0)
    assert await store.pause_schedule(made.id) == paused
    assert await store.occurrences(made.id) == []
    assert {job.state for job in (await store.find(JobFilter())).jobs} == {State.CANCELLED}

    await backend.clock.advance(DAY)
    assert await record_ahead(store, MINUTE) == 0
    resumed = await store.resume_schedule(made.id)
    assert (resumed.paused, resumed.next_fire_at) == (False, START + DAY + 20 * SECOND)
    assert await record_ahead(store, MINUTE) == 3


async def test_a_deleted_schedule_is_gone_and_what_waits_is_cancelled(
    store: Store, backend: Backend, worker: Worker
) -> None:
    made = await store.create_schedule(a_schedule(rule=Interval(20 * SECOND), overlap=Overlap.QUEUE))
    await record_ahead(store, MINUTE)
    await backend.clock.advance(41 * SECOND)
    (running,) = (await store.claim(a_claim(worker.id))).runs

    with pytest.raises(StaleVersion):
        await store.delete_schedule(made.id, version=3)
    await store.delete_schedule(made.id, version=1)

    for asked in (store.get_schedule(made.id), store.occurrences(made.id), store.delete_schedule(made.id)):
        with pytest.raises(NotFound, match="no schedule"):
            await asked
    states = {job.id: job.state for job in (await store.find(JobFilter())).jobs}
    assert states.pop(running.job_id) is State.RUNNING
    assert set(states.values()) == {State.CANCELLED}
    assert await store.limits() == []
    assert (await store.create_schedule(a_schedule())).id != made.id


async def test_a_trigger_makes_a_job_at_once_and_changes_no_plan(store: Store, backend: Backend) -> None:
    made = await store.create_schedule(a_schedule(args={"a": 1}, labels={"x": "y"}))

    first, second = [(await store.trigger_schedule(made.id)).occurrence for _ in range(2)]

    assert first.fire_at == START < second.fire_at < START + SECOND
    assert (first.source, first.outcome) == ("manual", Fate.MADE)
    assert first.job_id is not None
    job = await store.get(first.job_id)
    assert (job.schedule_id, job.kind, job.args, job.labels, job.due_at) == (
        made.id,
        "tidy",
        {"a": 1},
        {"x": "y"},
        START,
    )
    assert await store.get_schedule(made.id) == made
    assert await store.occurrences(made.id) == [second, first]
    await store.pause_schedule(made.id)
    await backend.clock.advance(SECOND)
    assert (await store.trigger_schedule(made.id)).occurrence.fire_at == START + SECOND


async def test_a_trigger_with_a_key_that_was_seen_before_answers_with_the_first(store: Store, backend: Backend) -> None:
    made, other = [await store.create_schedule(a_schedule(name)) for name in ("one", "other")]
    first = await store.trigger_schedule(made.id, key="größe 7")
    await store.trigger_schedule(made.id)
    await backend.clock.advance(SECOND)

    assert await store.trigger_schedule(made.id, key="größe 7") == Triggered(first.occurrence, created=False)

    assert first.created
    assert first.occurrence.job_id is not None
    assert (await store.get(first.occurrence.job_id)).idempotency_key == "größe 7"
    assert len(await everything(store)) == 2
    for reused in (
        store.trigger_schedule(other.id, key="größe 7"),
        store.submit([a_job(idempotency_key="größe 7")]),
    ):
        with pytest.raises(KeyReused, match="größe 7"):
            await reused
    await store.submit([a_job(idempotency_key="submitted")])
    with pytest.raises(KeyReused):
        await store.trigger_schedule(made.id, key="submitted")
    with pytest.raises(Invalid, match="key"):
        await store.trigger_schedule(made.id, key="")
    theirs = await store.create_schedule(a_schedule(tenant="acme"))
    assert (await store.trigger_schedule(theirs.id, key="größe 7")).created


async def test_however_many_trigger_with_one_key_at_once_there_is_one_job(backend: Backend) -> None:
    stores = await stores_on(backend, 3)
    made = [await stores[0].create_schedule(a_schedule(name)) for name in ("one", "other")]
    answers = await asyncio.gather(
        *(stores[n % 3].trigger_schedule(made[n % 2].id, key="k") for n in range(12)), return_exceptions=True
    )
    told = [answer for answer in answers if isinstance(answer, Triggered)]
    assert (len(told), sum(answer.created for answer in told)) == (6, 1)
    assert len({answer.occurrence.job_id for answer in told}) == 1
    assert len(await everything(stores[0])) == 1


async def test_a_change_leaves_what_was_triggered_by_hand(store: Store) -> None:
    made = await store.create_schedule(a_schedule())
    manual = [(await store.trigger_schedule(made.id)).occurrence for _ in range(3)]
    assert manual[2].fire_at > START, "each has an instant of its own, though time stands still"

    await store.change_schedule(made.id, a_schedule(rule=Interval(HOUR)), version=1)

    assert await store.occurrences(made.id) == manual[::-1]
    assert {job.state for job in (await store.find(JobFilter())).jobs} == {State.QUEUED}


async def test_jobs_say_which_schedule_made_them_and_how_it_recurs(store: Store) -> None:
    made = await store.create_schedule(a_schedule(timeout=timedelta(seconds=5), retry=RetryPolicy(max_attempts=9)))
    occurrence, _ = await store.trigger_schedule(made.id)

    assert occurrence.job_id is not None
    job = await store.get(occurrence.job_id)
    assert job.recurrence is not None
    assert job.recurrence.startswith("Every 1m")
    assert (job.timeout, job.retry.max_attempts, job.recurring) == (timedelta(seconds=5), 9, True)


async def test_lists_go_page_by_page_and_keep_tenants_apart(store: Store) -> None:
    made = [await store.create_schedule(a_schedule(f"s{n}", tenant="acme" if n % 3 else "other")) for n in range(7)]

    first = await store.schedules(limit=3)
    rest = await store.schedules(limit=1000, after=first[-1].id)
    assert [*first, *rest] == made
    assert await store.schedules(tenant="other") == made[::3]
    assert await store.schedules(tenant="nobody") == []
    for limit in (0, 1001):
        with pytest.raises(Invalid, match="limit"):
            await store.schedules(limit=limit)


async def test_those_that_fire_next_come_first(store: Store) -> None:
    late = await store.create_schedule(a_schedule("late", Interval(3 * HOUR)))
    soon = await store.create_schedule(a_schedule("soon", Interval(MINUTE)))
    paused = await store.create_schedule(a_schedule("paused", Interval(SECOND)))
    await store.pause_schedule(paused.id)
    middle = await store.create_schedule(a_schedule("middle", Interval(HOUR)))
    theirs = await store.create_schedule(a_schedule("theirs", Interval(SECOND), tenant="acme"))

    assert await store.coming_schedules(tenant="default") == [soon, middle, late]
    assert await store.coming_schedules(tenant="default", limit=2) == [soon, middle]
    assert await store.coming_schedules(tenant="acme") == [theirs]
    assert await store.coming_schedules(tenant="nobody") == []


async def test_what_became_of_the_last_occurrences_of_many_is_told_at_once(
    store: Store, backend: Backend, worker: Worker
) -> None:
    """Also of one that failed first: it is its first run that was on time, or was not."""
    kept = await store.create_schedule(a_schedule("kept"))
    other = await store.create_schedule(a_schedule("other", queue="nobody"))
    never = await store.create_schedule(a_schedule("never", tenant="acme"))
    await store.trigger_schedule(kept.id)
    await backend.clock.advance(2 * SECOND)
    [run] = await claim(store, worker)
    await settle(store, worker, run, Cause.FAILED)
    await backend.clock.advance(3 * SECOND)
    [run] = await claim(store, worker)
    assert [one.state for one in await store.past_occurrences([kept.id])] == [State.RUNNING]
    await settle(store, worker, run)
    for schedule in (kept, other, other, other):
        await store.trigger_schedule(schedule.id)
    await backend.clock.advance(SECOND)

    past = await store.past_occurrences([other.id, never.id, kept.id, uuid4()], each=2)

    told = [(one.occurrence.schedule_id, one.state, one.started_at) for one in past]
    assert told == [
        (other.id, State.QUEUED, None),
        (other.id, State.QUEUED, None),
        (kept.id, State.QUEUED, None),
        (kept.id, State.SUCCEEDED, START + 2 * SECOND),
    ]
    recorded = [*(await store.occurrences(other.id))[:2], *await store.occurrences(kept.id)]
    assert [one.occurrence for one in past] == recorded
    assert await store.past_occurrences([kept.id], tenant="acme") == []
    assert await store.past_occurrences([]) == []


async def test_another_tenants_schedule_does_not_exist(store: Store) -> None:
    made = await store.create_schedule(a_schedule(tenant="acme"))
    theirs: dict[str, Any] = {"tenant": "other"}

    for asked in (
        store.get_schedule(made.id, **theirs),
        store.change_schedule(made.id, a_schedule(), version=1, **theirs),
        store.pause_schedule(made.id, **theirs),
        store.resume_schedule(made.id, **theirs),
        store.delete_schedule(made.id, **theirs),
        store.trigger_schedule(made.id, **theirs),
        store.occurrences(made.id, **theirs),
        store.find_schedule("tidy", **theirs),
        store.get_schedule(uuid4()),
    ):
        with pytest.raises(NotFound, match="no schedule"):
            await asked
    assert await store.get_schedule(made.id) == made
