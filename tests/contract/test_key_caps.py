"""Caps by key: no submit brings more waiting jobs with a key than a rule allows, whoever else submits meanwhile."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from tests.builders import a_job, a_schedule, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import claim, everything, finish, in_order, settle, start, state_of, stores_on, submit
from tidewheel.errors import Invalid, NotFound, QueueFull
from tidewheel.model.cap import QueueCap
from tidewheel.model.job import Job
from tidewheel.model.limit import LimitRule
from tidewheel.model.rate import parse_pace
from tidewheel.model.states import WAITING, Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store


def rule(waiting: int | None, overflow: Any = "reject", name: str = "cap:k") -> LimitRule:
    return LimitRule(name, waiting=waiting, overflow=overflow)


async def _waiting(store: Store, key: str = "cap:k=a") -> list[Job]:
    jobs = [job for job in await everything(store) if job.state in WAITING and key in job.limit_keys]
    return sorted(jobs, key=lambda job: job.id)


async def test_a_full_key_rejects_what_comes_and_says_which_it_is(store: Store, worker: Worker) -> None:
    await store.set_rule(rule(2))
    await store.submit(some_jobs(2, limit_keys=("cap:k=a",)))
    with pytest.raises(QueueFull, match=r"key 'cap:k=a' is full: at most 2 jobs") as refusal:
        await submit(store, limit_keys=("cap:k=a",))
    assert (refusal.value.key, refusal.value.queue, refusal.value.most) == ("cap:k=a", None, 2)
    runs = await claim(store, worker, 1)
    await submit(store, limit_keys=("cap:k=a",))
    with pytest.raises(QueueFull):
        await submit(store, limit_keys=("cap:k=a",))
    await finish(store, worker, runs)
    assert len(await _waiting(store)) == 2


async def test_each_key_and_each_tenant_is_counted_for_itself_across_queues(store: Store) -> None:
    await store.set_rule(rule(1))
    for others in ({}, {"tenant": "acme"}):
        for key in ("cap:k=a", "cap:k=b", "cap:k"):
            await submit(store, limit_keys=(key,), **others)
            with pytest.raises(QueueFull):
                await submit(store, limit_keys=(key,), queue="other", **others)
    await submit(store, limit_keys=("cap:kk=a",))
    await submit(store, limit_keys=("cap:kk=a",))


async def test_a_batch_with_one_key_too_many_stores_nothing(store: Store) -> None:
    await store.set_rule(rule(2))
    with pytest.raises(QueueFull):
        await store.submit([*some_jobs(3, limit_keys=("cap:k=a",)), a_job(limit_keys=("cap:k=b",)), a_job()])
    assert await everything(store) == []
    await store.submit([*some_jobs(2, limit_keys=("cap:k=a",)), a_job(limit_keys=("cap:k=b",)), a_job()])
    assert len(await everything(store)) == 4


async def test_the_oldest_of_a_key_is_dropped_and_no_other(store: Store, worker: Worker) -> None:
    await store.set_rule(rule(2, "drop_oldest"))
    other = await submit(store, limit_keys=("cap:k=b",))
    plain = await submit(store)
    ids = [await submit(store, limit_keys=("cap:k=a",)) for _ in range(4)]
    assert [job.id for job in await _waiting(store)] == ids[2:]
    job = await store.get(ids[0])
    assert job.state is State.DROPPED
    assert job.error is not None
    assert job.error.message == "key cap:k=a may have 2 waiting jobs, and it was the oldest"
    assert in_order(await claim(store, worker)) == [other, plain, *ids[2:]]


async def test_the_last_of_a_key_is_replaced(store: Store) -> None:
    await store.set_rule(rule(2, "replace"))
    ids = [await submit(store, limit_keys=("cap:k=a",)) for _ in range(4)]
    assert [job.id for job in await _waiting(store)] == [ids[0], ids[3]]
    batch = [answer.job_id for answer in await store.submit(some_jobs(3, limit_keys=("cap:k=a",)))]
    assert [job.id for job in await _waiting(store)] == batch[1:]


async def test_who_is_limited_or_blocked_counts_and_may_be_dropped(store: Store, worker: Worker) -> None:
    await store.set_rule(rule(2, "drop_oldest"))
    await store.set_limit("l", 1)
    run = await start(store, worker, limit_keys=("l", "cap:k=a"))
    limited = await submit(store, limit_keys=("l", "cap:k=a"))
    assert await claim(store, worker) == []
    assert await state_of(store, limited) is State.LIMITED
    blocked = await submit(store, after=(run.job_id,), limit_keys=("cap:k=a",))
    for expected in (limited, blocked):
        await submit(store, limit_keys=("cap:k=a",))
        assert await state_of(store, expected) is State.DROPPED


async def test_a_key_of_a_cap_asks_for_nothing_when_its_job_starts(store: Store, worker: Worker) -> None:
    await store.set_rule(rule(5))
    await store.set_rule(LimitRule("l", 1))
    await store.submit(some_jobs(2, limit_keys=("cap:k=a",)))
    await store.submit(some_jobs(2, limit_keys=("l", "cap:k=a")))
    runs = await claim(store, worker)
    assert len(runs) == 3
    assert [limit.key for limit in await store.limits()] == ["l"]
    await finish(store, worker, runs)
    assert len(await claim(store, worker)) == 1
    assert await store.repair_limits() == 0


async def test_a_run_that_goes_back_is_let_in_and_counts(store: Store, worker: Worker) -> None:
    await store.set_rule(rule(1))
    run = await start(store, worker, limit_keys=("cap:k=a",))
    await submit(store, limit_keys=("cap:k=a",))
    await settle(store, worker, run, Cause.FAILED)
    assert len(await _waiting(store)) == 2
    with pytest.raises(QueueFull):
        await submit(store, limit_keys=("cap:k=a",))


async def test_a_redriven_job_and_those_of_schedules_are_let_in_and_count(store: Store, worker: Worker) -> None:
    await store.set_rule(rule(1))
    run = await start(store, worker, limit_keys=("cap:k=a",))
    await settle(store, worker, run, Cause.GAVE_UP)
    schedule = await store.create_schedule(a_schedule(limit_keys=("cap:k=a",)))
    await submit(store, limit_keys=("cap:k=a",))
    assert await store.redrive([run.job_id]) == [run.job_id]
    await store.trigger_schedule(schedule.id)
    assert len(await _waiting(store)) == 3
    with pytest.raises(QueueFull):
        await submit(store, limit_keys=("cap:k=a",))
    with pytest.raises(Invalid, match="one key that begins with cap:"):
        await store.create_schedule(a_schedule(name="two", limit_keys=("cap:a", "cap:b")))


async def test_what_waits_already_counts_when_a_cap_is_set_and_all_stores_hear_of_it(backend: Backend) -> None:
    here, there = await stores_on(backend, 2)
    await there.submit(some_jobs(3, limit_keys=("cap:k=a",)))
    await here.set_rule(rule(3))
    with pytest.raises(QueueFull):
        await there.submit(some_jobs(1, limit_keys=("cap:k=a",)))
    await here.set_rule(rule(2, "drop_oldest"))
    await there.submit(some_jobs(1, limit_keys=("cap:k=a",)))
    assert len(await _waiting(there)) == 2
    await here.remove_rule("cap:k")
    await there.submit(some_jobs(5, limit_keys=("cap:k=a",)))
    with pytest.raises(NotFound):
        await here.remove_rule("cap:k")


async def test_a_queue_and_a_key_both_bound_what_waits(store: Store) -> None:
    await store.set_cap(QueueCap("default", "default", 3, "drop_oldest"))
    await store.set_rule(rule(1, "drop_oldest"))
    plain = [await submit(store) for _ in range(3)]
    first = await submit(store, limit_keys=("cap:k=a",))
    second = await submit(store, limit_keys=("cap:k=a",))
    assert await state_of(store, first) is State.DROPPED
    left = [job.id for job in await everything(store) if job.state in WAITING]
    assert set(left) <= {*plain, second}
    assert second in left


@pytest.mark.parametrize("overflow", ["reject", "drop_oldest", "replace"])
async def test_however_many_submit_at_once_no_key_exceeds_its_cap(backend: Backend, overflow: Any) -> None:
    stores = await stores_on(backend, 4)
    await stores[0].set_rule(rule(5, overflow))
    await stores[0].set_cap(QueueCap("default", "small", 3, "drop_oldest"))
    specs = [
        some_jobs(
            1 + i % 3,
            limit_keys=(f"cap:k={'ab'[i % 2]}", *(["l"] if i % 5 == 0 else [])),
            queue="small" if i % 7 == 0 else "default",
        )
        for i in range(40)
    ]
    for store in stores:  # so that nobody waits for the lanes, and all are under way at once
        await store.make_lanes([spec for batch in specs for spec in batch])
    answers = await asyncio.gather(
        *(stores[i % 4].submit(batch) for i, batch in enumerate(specs)), return_exceptions=True
    )
    jobs = await everything(stores[0])
    waiting = Counter(job.limit_keys[0] for job in jobs if job.state is State.QUEUED)
    accepted = sum(len(answer) for answer in answers if isinstance(answer, list))
    assert len(jobs) == accepted
    assert all(isinstance(answer, list | QueueFull) for answer in answers)
    assert set(waiting) == {"cap:k=a", "cap:k=b"}
    assert max(waiting.values()) <= 5
    if overflow != "reject":
        assert accepted == sum(map(len, specs))


async def test_declared_caps_give_way_to_those_set_by_hand(store: Store) -> None:
    assert await store.declare_rules([rule(5)]) == 1
    assert await store.declare_rules([rule(5)]) == 0
    assert await store.declare_rules([rule(5, "replace")]) == 1
    await store.set_rule(rule(1))
    assert await store.declare_rules([rule(5)]) == 0
    assert await store.rules() == [LimitRule("cap:k", by_hand=True, waiting=1)]


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (rule(0), "waiting"),
        (rule(None), "waiting"),
        (rule(10_000_000), "waiting"),
        (rule(1, "forget"), "overflow"),
        (rule(1, name="k"), "name"),
        (LimitRule("cap:k", 1, waiting=1), "name"),
        (LimitRule("cap:k", 1), "name"),
        (LimitRule("cap:k", rate=parse_pace("1/s")), "name"),
    ],
)
async def test_a_rule_that_cannot_be_is_refused(store: Store, bad: LimitRule, field: str) -> None:
    with pytest.raises(Invalid) as refusal:
        await store.set_rule(bad)
    assert refusal.value.field == field
    assert await store.rules() == []


async def test_a_key_of_a_cap_has_no_limit_of_its_own_and_a_job_has_one_at_most(store: Store) -> None:
    with pytest.raises(Invalid, match="begins with cap:"):
        await store.set_limit("cap:k=a", 1)
    with pytest.raises(Invalid, match="one key that begins with cap:") as refusal:
        await submit(store, limit_keys=("cap:a", "cap:b"))
    assert refusal.value.field == "limit_keys"
