"""A change loses no occurrence, and one schedule that is bad, or too new, harms no other."""

from datetime import datetime
from itertools import count
from typing import Any

import msgspec
import pytest

from tests.builders import DAY, HOUR, MINUTE, SECOND, a_claim, a_schedule, outcome_of
from tests.contract.backends import START, Backend
from tests.contract.planning import decide_all, fates, plans_of, record_ahead
from tidewheel.errors import Invalid, Unavailable
from tidewheel.model.misfire import Misfire
from tidewheel.model.overlap import Overlap
from tidewheel.model.schedule import Declared, Fate, Schedule, ScheduleSpec
from tidewheel.model.worker import Worker
from tidewheel.store.base import JobFilter, Store
from tidewheel.store.scheduling import Backfill
from tidewheel.triggers import Cron, Interval
from tidewheel.triggers.planning import trigger_of

APP = "shop:app"
MADE, MISSED, SKIPPED = Fate.MADE, Fate.MISSED, Fate.SKIPPED


def moved_to_later_today(**fields: Any) -> tuple[ScheduleSpec, datetime]:
    """Return a daily schedule whose nominal time has passed, but whose own share of the spread has not."""
    for number in count():
        spec = a_schedule(f"s{number}", Cron("0 11 * * *"), spread=6 * HOUR, **fields)
        found = trigger_of(spec).next_after(START - DAY, key=spec.name)
        assert found is not None
        if START + HOUR < found.fire_at < START + 2 * HOUR:
            return spec, found.fire_at
    raise AssertionError


async def redone(store: Store, made: Schedule, how: str, spec: ScheduleSpec) -> Schedule:
    """Change a schedule in one of the ways in which that is done."""
    if how == "change":
        return await store.change_schedule(made.id, spec, version=made.version)
    if how == "pause":
        await store.pause_schedule(made.id)
        return await store.resume_schedule(made.id)
    assert (await store.declare_schedules(APP, [spec])).changed == (spec.name,)
    return await store.get_schedule(made.id)


@pytest.mark.parametrize("how", ["change", "pause", "declare"])
async def test_what_is_spread_to_later_today_is_not_lost_by_a_change(store: Store, how: str) -> None:
    spec, due = moved_to_later_today()
    assert (await store.declare_schedules(APP, [spec])).created == (spec.name,)
    made = await store.find_schedule(spec.name, tenant="default")
    assert made.next_fire_at == due
    await record_ahead(store, 3 * HOUR)

    again = await redone(store, made, how, moved_to_later_today(description="edited")[0])

    assert again.next_fire_at == due
    await record_ahead(store, 3 * HOUR)
    assert await fates(store, spec.name) == [(due, MADE)]


@pytest.mark.parametrize("how", ["change", "pause", "declare"])
async def test_what_is_overdue_when_a_schedule_is_changed_is_decided_by_its_old_definition(
    store: Store, backend: Backend, how: str
) -> None:
    spec = a_schedule(rule=Interval(HOUR), args={"n": 1}, misfire=Misfire(grace=10 * MINUTE))
    await store.declare_schedules(APP, [spec])
    made = await store.find_schedule("tidy", tenant="default")
    await backend.clock.advance(3 * HOUR + 30 * MINUTE)  # and no keeper was there

    again = await redone(store, made, how, a_schedule(rule=Interval(2 * HOUR), args={"n": 2}, misfire=Misfire()))

    assert await fates(store) == [(START + HOUR, MISSED), (START + 2 * HOUR, MISSED), (START + 3 * HOUR, MADE)]
    reasons = [each.reason for each in await store.occurrences(made.id)]
    assert reasons == ["", *["more than 10m late, and a later occurrence runs instead"] * 2]
    (job,) = (await store.find(JobFilter())).jobs
    assert (job.due_at, job.args) == (START + 3 * HOUR, {"n": 1})
    assert (again.fired, again.next_fire_at) == (3, START + 4 * HOUR)


@pytest.mark.native("occurrences are made by the server")
async def test_more_is_overdue_than_one_piece_holds(store: Store, backend: Backend) -> None:
    made = await store.create_schedule(a_schedule(misfire=Misfire(grace=SECOND)))
    await backend.clock.advance(2500 * MINUTE + SECOND)

    changed = await store.change_schedule(made.id, a_schedule(rule=Interval(HOUR)), version=1)

    assert changed.fired == 2500
    assert await backend.count("occurrence") == 2500
    assert [job.due_at for job in (await store.find(JobFilter())).jobs] == [START + 2500 * MINUTE]


async def test_time_that_goes_on_during_a_change_hides_no_occurrence(store: Store, backend: Backend) -> None:
    """What is taken back fires again, and what is due stays, though each look at the clock finds it seconds later."""
    made = await store.create_schedule(a_schedule(rule=Interval(5 * SECOND), overlap=Overlap.ALLOW))
    await record_ahead(store, MINUTE)
    await backend.let_time_run(4 * SECOND)

    changed = await store.change_schedule(
        made.id, a_schedule(rule=Interval(5 * SECOND), overlap=Overlap.ALLOW, description="edited"), version=1
    )

    kept = [at for at, _ in await fates(store)]
    assert kept == [START + n * 5 * SECOND for n in range(1, len(kept) + 1)]
    assert changed.next_fire_at == START + (len(kept) + 1) * 5 * SECOND
    assert changed.fired == len(kept) < 12


async def test_a_schedule_that_has_ended_does_not_stop_the_declaration_of_the_others(
    store: Store, backend: Backend
) -> None:
    end = START + HOUR
    await store.declare_schedules(APP, [a_schedule("ended", end=end), a_schedule("other")])
    await backend.clock.advance(2 * HOUR)

    told = await store.declare_schedules(APP, [a_schedule("ended", end=end, description="x"), a_schedule("other")])

    assert told == Declared(changed=("ended",), unchanged=("other",))
    ended = await store.find_schedule("ended", tenant="default")
    assert (ended.description, ended.next_fire_at) == ("x", None)
    (last,) = await store.occurrences(ended.id, limit=1)
    assert (last.fire_at, last.outcome) == (end, MADE)


@pytest.mark.native("occurrences are made by the server")
@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE, Overlap.CANCEL_PREVIOUS])
async def test_all_that_are_caught_up_with_run_one_after_the_other(
    store: Store, backend: Backend, worker: Worker, overlap: Overlap
) -> None:
    await store.create_schedule(
        a_schedule(rule=Interval(10 * MINUTE), misfire=Misfire(policy="all", grace=MINUTE), overlap=overlap)
    )
    await backend.clock.advance(55 * MINUTE)
    await record_ahead(store, MINUTE)
    ran = []
    for _ in range(5):
        await decide_all(store)
        (run,) = (await store.claim(a_claim(worker.id))).runs
        ran.append(run.due_at)
        await store.settle(worker.id, [outcome_of(run)])

    assert ran == [START + n * 10 * MINUTE for n in range(1, 6)]
    assert [fate for _, fate in await fates(store)] == [MADE] * 5


@pytest.mark.native("occurrences are made by the server")
async def test_what_is_due_after_a_catch_up_is_judged_by_overlap_again(
    store: Store, backend: Backend, worker: Worker
) -> None:
    await store.create_schedule(a_schedule(rule=Interval(10 * MINUTE), misfire=Misfire(policy="all", grace=MINUTE)))
    await backend.clock.advance(25 * MINUTE)
    await record_ahead(store, 10 * MINUTE)
    assert len((await store.claim(a_claim(worker.id))).runs) == 1
    await backend.clock.advance(5 * MINUTE)
    await decide_all(store)

    assert [fate for _, fate in await fates(store)] == [MADE, MADE, SKIPPED]


# Bad ones


BAD_ARGS = {
    "a secret without a name": {"args": {"password": {"$secret": "NOT valid"}}},
    "a result of nobody": {"args": {"x": {"$result_of": "0190b6a0-0000-7000-8000-000000000000"}}},
    "too large": {"args": {"x": "x" * 300_000}},
    "a key twice": {"limit_keys": ("a", "a")},
}


@pytest.mark.parametrize("fields", BAD_ARGS.values(), ids=BAD_ARGS)
async def test_what_no_job_could_be_made_of_is_refused_at_the_door(store: Store, fields: dict[str, Any]) -> None:
    made = await store.create_schedule(a_schedule("good"))
    (field,) = fields

    for refused in (
        store.create_schedule(a_schedule("bad", **fields)),
        store.change_schedule(made.id, a_schedule("good", **fields), version=1),
        store.declare_schedules(APP, [a_schedule("bad", **fields)]),
    ):
        with pytest.raises(Invalid, match=f"^{field}"):
            await refused

    assert [schedule.name for schedule in await store.schedules()] == ["good"]


@pytest.mark.native("occurrences are made by the server")
async def test_a_plan_of_which_no_job_can_be_made_says_so_and_holds_up_no_other(store: Store) -> None:
    """As if it had been accepted by a version that checked less."""
    for name in ("bad", "good"):
        await store.create_schedule(a_schedule(name, rule=Interval(20 * SECOND)))
    plans = [
        msgspec.structs.replace(plan, schedule=msgspec.structs.replace(plan.schedule, args={"x": {"$secret": "NO NO"}}))
        if plan.schedule.name == "bad"
        else plan
        for plan in await plans_of(store, MINUTE)
    ]

    assert await store.record_occurrences(plans) == 6

    assert [fate for _, fate in await fates(store, "good")] == [MADE] * 3
    bad = await store.find_schedule("bad", tenant="default")
    told = await store.occurrences(bad.id)
    assert [each.outcome for each in told] == [MISSED] * 3
    assert told[0].reason.startswith("its job could not be made: args: ")
    assert (bad.fired, bad.next_fire_at) == (3, START + 80 * SECOND)


async def test_its_own_limit_as_one_of_its_keys_is_no_second_one(store: Store) -> None:
    made = await store.create_schedule(a_schedule())
    await store.change_schedule(made.id, a_schedule(limit_keys=(made.limit_key,)), version=1)

    occurrence, _ = await store.trigger_schedule(made.id)

    assert occurrence.job_id is not None
    assert (await store.get(occurrence.job_id)).limit_keys == (made.limit_key,)


# Too new


@pytest.mark.native("a client tries again what is unavailable")
async def test_a_schedule_that_only_a_newer_version_can_read_stops_nothing_else(
    store: Store, backend: Backend, worker: Worker
) -> None:
    await store.declare_schedules(APP, [a_schedule(name, Interval(20 * SECOND)) for name in ("a", "new", "z")])
    new = await store.find_schedule("new", tenant="default")
    await record_ahead(store, MINUTE)
    await backend.clock.advance(20 * SECOND)
    assert len((await store.claim(a_claim(worker.id))).runs) == 3
    await backend.clock.advance(20 * SECOND)
    await backend.write_as_newer("new")

    assert await decide_all(store) == 6
    assert [schedule.name for schedule in await store.schedules()] == ["a", "z"]
    assert [schedule.name for schedule in await store.schedules(limit=2)] == ["a", "z"]
    with pytest.raises(Unavailable, match=f"schedule {new.id} cannot be read by this version: .*newer"):
        await store.get_schedule(new.id)
    again = [a_schedule(name, Interval(30 * SECOND)) for name in ("a", "new", "z")]
    assert await store.declare_schedules(APP, again) == Declared(changed=("a", "z"), refused=("new",))
    await backend.clock.advance(DAY)
    ahead = await store.look_ahead(new.id.int % 8, MINUTE)
    assert [each.schedule_id for each in ahead.unreadable] == [new.id]
    assert await record_ahead(store, MINUTE) > 2


# Made up for


@pytest.mark.native("occurrences are made by the server")
async def test_a_schedule_with_only_so_many_occurrences_gets_no_more_by_a_backfill(
    store: Store, backend: Backend
) -> None:
    misfire = Misfire(policy="skip", grace=MINUTE)
    made = await store.create_schedule(a_schedule(rule=Interval(10 * MINUTE), misfire=misfire, max_occurrences=3))
    await backend.clock.advance(30 * MINUTE)
    await record_ahead(store, MINUTE)
    await backend.clock.advance(HOUR)
    times = [START + n * 10 * MINUTE for n in range(-3, 9)]

    told = await store.backfill_schedule(made.id, Backfill(times=times), version=1)

    assert [each.fire_at for each in told] == times[4:6], "the two that were missed"
