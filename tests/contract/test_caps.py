"""Caps: no submit brings more waiting jobs into a queue than it may have, whoever else submits at the same time."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from tests.builders import HOUR, MINUTE, SECOND, a_job, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import claim, everything, finish, in_order, settle, start, state_of, stores_on, submit
from tidewheel.errors import AlreadyActive, Invalid, NotFound, QueueFull
from tidewheel.model.cap import QueueCap
from tidewheel.model.job import Job
from tidewheel.model.states import WAITING, Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store


def cap(most: int, overflow: Any = "reject", queue: str = "default") -> QueueCap:
    return QueueCap("default", queue, most, overflow)


async def _waiting(store: Store, queue: str = "default") -> list[Job]:
    jobs = [job for job in await everything(store) if job.state in WAITING and job.queue == queue]
    return sorted(jobs, key=lambda job: job.id)


async def test_a_full_queue_rejects_what_comes_and_says_which_it_is(store: Store, worker: Worker) -> None:
    await store.set_cap(cap(3))
    await store.submit(some_jobs(3))
    with pytest.raises(QueueFull, match=r"'default' is full: at most 3 jobs") as refusal:
        await submit(store)
    assert (refusal.value.queue, refusal.value.most) == ("default", 3)
    assert len(await everything(store)) == 3
    runs = await claim(store, worker, 1)
    await submit(store)
    with pytest.raises(QueueFull):
        await submit(store)
    await finish(store, worker, runs)
    with pytest.raises(QueueFull):
        await submit(store)


async def test_a_batch_goes_in_as_a_whole_or_not_at_all(store: Store) -> None:
    await store.set_cap(cap(3))
    await submit(store)
    with pytest.raises(QueueFull):
        await store.submit([*some_jobs(3), a_job(queue="other")])
    assert len(await everything(store)) == 1
    await store.submit([*some_jobs(2), a_job(queue="other")])
    assert len(await everything(store)) == 4


async def test_other_queues_and_tenants_have_room(store: Store) -> None:
    await store.set_cap(cap(1))
    await submit(store)
    await store.submit(some_jobs(5, queue="other"))
    await store.submit(some_jobs(5, tenant="acme"))


async def test_the_oldest_is_dropped_for_a_new_one_and_says_why(store: Store, worker: Worker) -> None:
    await store.set_cap(cap(3, "drop_oldest"))
    ids = [await submit(store) for _ in range(5)]
    assert [job.id for job in await _waiting(store)] == ids[2:]
    job = await store.get(ids[0])
    assert job.state is State.DROPPED
    assert job.error is not None
    assert job.error.message == "queue default may have 3 waiting jobs, and it was the oldest"
    assert in_order(await claim(store, worker)) == ids[2:]


async def test_the_last_in_line_is_replaced_by_a_new_one(store: Store) -> None:
    await store.set_cap(cap(3, "replace"))
    ids = [await submit(store) for _ in range(5)]
    assert [job.id for job in await _waiting(store)] == [*ids[:2], ids[4]]
    job = await store.get(ids[2])
    assert job.error is not None
    assert "newer one took its place" in job.error.message


async def test_a_batch_that_is_larger_than_the_cap_leaves_its_last_ones(store: Store) -> None:
    await store.set_cap(cap(3, "drop_oldest"))
    await submit(store)
    ids = [answer.job_id for answer in await store.submit(some_jobs(5))]
    assert [job.id for job in await _waiting(store)] == ids[2:]


async def test_a_batch_that_replaces_more_than_waits_leaves_its_last_ones(store: Store) -> None:
    await store.set_cap(cap(2, "replace"))
    first = await submit(store)
    ids = [answer.job_id for answer in await store.submit(some_jobs(5))]
    assert [job.id for job in await _waiting(store)] == ids[3:]
    assert await state_of(store, first) is State.DROPPED


async def test_line_is_by_due_time(backend: Backend, store: Store) -> None:
    await store.set_cap(cap(2, "replace"))
    later = await submit(store, delay=HOUR)
    await backend.clock.advance(SECOND)
    now = await submit(store)
    new = await submit(store)
    assert await state_of(store, later) is State.DROPPED
    assert [job.id for job in await _waiting(store)] == [now, new]


async def test_who_is_limited_or_blocked_waits_too_and_may_be_dropped(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await store.set_limit("l", 1)
    run = await start(store, worker, limit_keys=("l",))
    limited = await submit(store, limit_keys=("l",))
    assert await claim(store, worker) == []
    await backend.clock.advance(SECOND)
    blocked = await submit(store, after=(run.job_id,))
    await store.set_cap(cap(2))
    with pytest.raises(QueueFull):
        await submit(store)
    await store.set_cap(cap(2, "drop_oldest"))
    for expected in (limited, blocked):
        await backend.clock.advance(SECOND)
        await submit(store)
        assert await state_of(store, expected) is State.DROPPED


async def test_children_of_a_dropped_job_are_told(store: Store) -> None:
    await store.set_cap(cap(1, "drop_oldest", "small"))
    parent = await submit(store, queue="small")
    child = await submit(store, after=(parent,))
    await submit(store, queue="small")
    assert await state_of(store, child) is State.SKIPPED


async def test_a_run_that_goes_back_to_the_queue_is_let_in_and_counts(store: Store, worker: Worker) -> None:
    await store.set_cap(cap(1))
    run = await start(store, worker)
    await submit(store)
    await settle(store, worker, run, Cause.FAILED)
    assert len(await _waiting(store)) == 2
    with pytest.raises(QueueFull):
        await submit(store)


async def test_keys_are_looked_at_first(store: Store) -> None:
    await store.set_cap(cap(1))
    spec = a_job(idempotency_key="i", unique_key="u")
    (first,) = await store.submit([spec])
    assert (await store.submit([spec]))[0].job_id == first.job_id
    assert (await store.submit([a_job(unique_key="u", unique="keep")]))[0].job_id == first.job_id
    with pytest.raises(AlreadyActive):
        await submit(store, unique_key="u")
    await submit(store, unique_key="u", unique="replace")
    with pytest.raises(QueueFull):
        await submit(store, idempotency_key="new")
    await store.remove_cap("default")
    (second,) = await store.submit([a_job(idempotency_key="new")])
    assert second.created, "a submit that was rejected keeps no key"


async def test_a_cap_that_was_lowered_takes_effect_with_the_next_submit(store: Store) -> None:
    await store.submit(some_jobs(10))
    await store.set_cap(cap(2, "drop_oldest"))
    last = await submit(store)
    waiting = await _waiting(store)
    assert (len(waiting), waiting[-1].id) == (2, last)


async def test_caps_are_listed_replaced_and_removed(store: Store) -> None:
    await store.set_cap(QueueCap("b", "q", 5))
    await store.set_cap(QueueCap("a", "q", 5, "replace"))
    await store.set_cap(QueueCap("b", "q", 6))
    assert await store.caps() == [QueueCap("a", "q", 5, "replace"), QueueCap("b", "q", 6)]
    assert await store.caps(tenant="b") == [QueueCap("b", "q", 6)]
    await store.remove_cap("q", tenant="a")
    for queue, tenant in (("q", "a"), ("x", "b"), ("q", "nobody")):
        with pytest.raises(NotFound):
            await store.remove_cap(queue, tenant=tenant)


@pytest.mark.parametrize("overflow", ["reject", "drop_oldest", "replace"])
async def test_however_many_submit_at_once_the_cap_is_never_exceeded(backend: Backend, overflow: Any) -> None:
    stores = await stores_on(backend, 4)
    await stores[0].set_cap(cap(7, overflow))
    specs = [some_jobs(1 + i % 3, f"k{i % 5}", limit_keys=("l",) if i % 2 else ()) for i in range(40)]
    for store in stores:  # so that nobody waits for the lanes, and all are under way at once
        await store.make_lanes([spec for batch in specs for spec in batch])
    answers = await asyncio.gather(
        *(stores[i % 4].submit(batch) for i, batch in enumerate(specs)), return_exceptions=True
    )
    states = Counter(job.state for job in await everything(stores[0]))
    assert states[State.QUEUED] <= 7
    accepted = sum(len(answer) for answer in answers if isinstance(answer, list))
    assert states[State.QUEUED] + states[State.DROPPED] == accepted
    if overflow == "reject":
        assert all(isinstance(answer, list | QueueFull) for answer in answers)
        assert states[State.DROPPED] == 0
    else:
        assert states[State.QUEUED] == 7
        assert accepted == sum(map(len, specs))


async def test_submits_and_claims_at_once_keep_to_the_cap(backend: Backend, worker: Worker) -> None:
    stores = await stores_on(backend, 3)
    await stores[0].set_cap(cap(5, "drop_oldest"))
    for _ in range(10):
        await asyncio.gather(
            *(stores[i % 3].submit(some_jobs(2)) for i in range(6)),
            claim(stores[0], worker, 3),
            return_exceptions=False,
        )
        assert len(await _waiting(stores[1])) <= 5
    jobs = await everything(stores[0])
    assert len(jobs) == 120


async def test_submits_that_lock_jobs_and_submits_that_drop_them_do_not_block_each_other(backend: Backend) -> None:
    stores = await stores_on(backend, 4)
    await stores[0].set_cap(cap(4, "drop_oldest"))
    for _ in range(5):
        parents = [answer.job_id for answer in await stores[0].submit(some_jobs(4, unique_key=None))]
        work = [
            stores[i % 4].submit(
                [a_job(after=tuple(parents), on_parent_failure="run")]
                if i % 2
                else [a_job(unique_key="u", unique="replace")]
            )
            for i in range(8)
        ]
        async with asyncio.timeout(20):
            await asyncio.gather(*work)
        assert len(await _waiting(stores[0])) <= 4


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (cap(0), "most"),
        (cap(-1), "most"),
        (cap(10_000_000), "most"),
        (cap(1, "forget"), "overflow"),
        (cap(1, queue="a b"), "queue"),
        (QueueCap("", "q", 1), "tenant"),
    ],
)
async def test_a_cap_that_cannot_be_is_refused(store: Store, bad: QueueCap, field: str) -> None:
    with pytest.raises(Invalid) as refusal:
        await store.set_cap(bad)
    assert refusal.value.field == field
    assert await store.caps() == []


async def test_a_cap_is_heard_of_by_every_store_at_once(backend: Backend) -> None:
    here, there = await stores_on(backend, 2)
    await there.submit(some_jobs(2))
    await here.set_cap(cap(2))
    with pytest.raises(QueueFull):
        await there.submit(some_jobs(1))
    await backend.clock.advance(MINUTE)
    await here.remove_cap("default")
    await there.submit(some_jobs(1))
