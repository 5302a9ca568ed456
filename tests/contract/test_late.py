"""Jobs that are late: told while they still wait, once, whoever notices it and whatever becomes of them."""

import asyncio
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tests.builders import HOUR, MINUTE, SECOND, a_job, a_schedule, some_jobs
from tests.contract.backends import Backend
from tests.contract.planning import record_ahead
from tests.contract.steps import claim, finish, settle, submit
from tests.contract.test_notifications import heard, listen
from tidewheel.clock import SystemClock
from tidewheel.keeper.chores import chore_named, chores_of
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.notification import Event
from tidewheel.model.states import Cause
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store

LATE = timedelta(minutes=5)


async def told_of(store: Store) -> list[dict[str, Any]]:
    return [msgspec.json.decode(delivery.body) for delivery in await heard(store)]


async def test_a_job_that_still_waits_is_told_of_once(backend: Backend, store: Store, worker: Worker) -> None:
    await listen(store, Event.LATE, text="$kind: $detail")
    job = await submit(store, "mail", labels={"team": "blue"}, queue="slow")
    await backend.clock.advance(LATE - SECOND)
    assert await store.notice_late() == 0
    await backend.clock.advance(SECOND + SECOND)
    assert await store.notice_late() == 1
    assert await store.notice_late() == 0
    (event,) = await told_of(store)
    assert (event["id"], event["type"], event["subject"]) == (f"{job}.late", "dev.tidewheel.job.late", str(job))
    assert {"kind": "mail", "queue": "slow", "labels": {"team": "blue"}}.items() <= event["data"].items()
    assert "started_at" not in event["data"]
    (parcel,) = await store.take_deliveries()
    assert parcel.text == "mail: it waits for 5m1s beyond its time"
    await finish(store, worker, await claim(store, worker, queues=("slow",)))
    assert len(await told_of(store)) == 1, "what its run came to does not tell of it again"


async def test_a_job_that_began_late_between_two_looks_is_told_of_when_its_run_has_ended(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await listen(store, Event.LATE)
    job = await submit(store)
    await backend.clock.advance(LATE + SECOND)
    runs = await claim(store, worker)
    assert await store.notice_late() == 0
    await finish(store, worker, runs)
    assert [event["id"] for event in await told_of(store)] == [f"{job}.late"]


@pytest.mark.native("occurrences are made by the server")
async def test_an_occurrence_of_a_schedule_that_waits_is_told_of_each_time(backend: Backend, store: Store) -> None:
    await store.create_schedule(a_schedule("nightly"))
    await store.create_schedule(a_schedule("other"))
    await listen(store, Event.LATE, schedule="nightly", late_after=30 * SECOND)
    for _ in range(3):
        await record_ahead(store, MINUTE)
        await backend.clock.advance(MINUTE)
    await backend.clock.advance(31 * SECOND)
    while await store.notice_late():
        pass
    events = await told_of(store)
    assert {event["data"]["schedule"] for event in events} == {"nightly"}
    due = [event["data"]["due_at"] for event in events]
    assert len(due) == len(set(due)) >= 2


async def test_who_waits_for_a_limit_or_behind_a_gate_is_late_too(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await listen(store, Event.LATE)
    await store.set_limit("one", 1)
    await store.submit(some_jobs(2, limit_keys=("one",)))
    assert len(await claim(store, worker, 2)) == 1
    await store.close_gate(GateSpec(mode=GateMode.HOLD, kind="held"))
    held = await submit(store, "held")
    await backend.clock.advance(LATE + SECOND)
    assert await store.notice_late() == 2
    assert str(held) in {event["subject"] for event in await told_of(store)}


async def test_who_is_not_due_or_has_begun_before_is_not_late(backend: Backend, store: Store, worker: Worker) -> None:
    await listen(store, Event.LATE)
    await submit(store, "failing")
    (run,) = await claim(store, worker)
    await settle(store, worker, run, Cause.FAILED)
    await submit(store, delay=HOUR)
    await backend.clock.advance(HOUR + MINUTE)
    assert await store.notice_late() == 0
    await backend.clock.advance(LATE)
    assert await store.notice_late() == 1


async def test_each_subscription_has_a_patience_and_a_taste_of_its_own(backend: Backend, store: Store) -> None:
    await listen(store, Event.LATE, name="quick", late_after=MINUTE, kind="mail")
    await listen(store, Event.LATE, name="slow", late_after=10 * MINUTE)
    await listen(store, Event.LATE, name="theirs", late_after=MINUTE, tenant="other")
    await submit(store, "mail")
    await submit(store, "report")
    await backend.clock.advance(2 * MINUTE)
    await store.notice_late()
    assert [delivery.channel for delivery in await heard(store)] == ["quick"]
    await backend.clock.advance(9 * MINUTE)
    await store.notice_late()
    assert [delivery.channel for delivery in await heard(store)] == ["quick", "slow", "slow"]


async def test_many_of_one_instant_are_told_of_in_pieces_without_gaps(backend: Backend, store: Store) -> None:
    await listen(store, Event.LATE)
    jobs = {str(answer.job_id) for answer in await store.submit([a_job(f"kind-{n % 3}") for n in range(25)])}
    await backend.clock.advance(LATE + SECOND)
    pieces = [await store.notice_late(limit=4) for _ in range(8)]
    assert pieces == [4] * 6 + [1, 0]
    assert {event["subject"] for event in await told_of(store)} == jobs


async def test_two_keepers_that_notice_at_once_tell_once(backend: Backend, store: Store) -> None:
    await listen(store, Event.LATE)
    other = await backend.open()
    await store.submit(some_jobs(40))
    await backend.clock.advance(LATE + SECOND)
    await asyncio.gather(*(each.notice_late(limit=7) for each in (store, other) * 5))
    while await store.notice_late(limit=7):
        pass
    keys = [delivery.key for delivery in await heard(store)]
    assert len(keys) == len(set(keys)) == 40


async def test_who_asks_now_hears_of_what_becomes_late_from_now_on(backend: Backend, store: Store) -> None:
    await submit(store, "old")
    await backend.clock.advance(LATE + MINUTE)
    made = await listen(store, Event.LATE)
    await submit(store, "new")
    assert await store.notice_late() == 0
    await backend.clock.advance(LATE)
    assert await store.notice_late() == 1
    (event,) = await told_of(store)
    assert event["data"]["kind"] == "new"
    await store.remove_channel(made.channel.id)
    assert await store.notice_late() == 0


@pytest.mark.native("chores are the server's own")
async def test_the_duty_looks_while_someone_wants_to_hear_and_rests_otherwise(backend: Backend, store: Store) -> None:
    chore = chore_named(chores_of(store, SystemClock()), "lateness")
    assert chore.wanted is not None
    await listen(store, Event.DEAD)
    assert chore.wanted(await store.agenda()) is None
    await listen(store, Event.LATE, name="late")
    assert chore.wanted(await store.agenda()) == timedelta(0), "each time that a keeper looks, so within a second"
    await submit(store)
    await backend.clock.advance(LATE)
    assert await chore.run_once() == 1
