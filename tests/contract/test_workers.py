"""Workers: a lease each, renewed by beats; who is silent loses its runs, and only once."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.builders import DAY, HOUR, MINUTE, SECOND, a_worker, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import check_conserved, claim, in_order, settle, start, submit
from tidewheel.errors import Invalid, LeaseLost, NotFound
from tidewheel.model.liveness import ExpiredWorker
from tidewheel.model.resources import Offer
from tidewheel.model.states import FINAL, Cause, State
from tidewheel.model.worker import Reaped, Worker
from tidewheel.store.base import Store

TTL = 10 * SECOND


async def _dead(backend: Backend, store: Store, jobs: int = 0) -> Worker:
    """Return a worker whose lease has passed while it had runs."""
    dying = await store.register(a_worker("dying", ttl=TTL))
    await store.submit(some_jobs(jobs))
    assert len(await claim(store, dying, jobs or 1)) == jobs
    await backend.clock.advance(TTL)
    return dying


async def test_a_worker_is_alive_with_a_lease_of_its_ttl(backend: Backend, store: Store) -> None:
    offer = Offer(resources={"cpu": 4000}, labels={"zone": "eu"})
    spec = a_worker("web-1/runner-0", queues=("a", "b"), kinds=("x", "y"), offer=offer, ttl=TTL)
    now = backend.clock.now()
    made = await store.register(spec)
    assert made == Worker(
        id=made.id,
        name="web-1/runner-0",
        queues=("a", "b"),
        kinds=("x", "y"),
        offer=offer,
        ttl=TTL,
        alive=True,
        beat=made.beat,
        registered_at=now,
        beat_at=now,
        lease_until=now + TTL,
    )
    assert await store.workers() == [made]


async def test_registering_again_always_gives_a_new_id(store: Store) -> None:
    assert (await store.register(a_worker())).id != (await store.register(a_worker())).id


async def test_a_beat_renews_the_lease(backend: Backend, store: Store) -> None:
    worker = await store.register(a_worker(ttl=TTL))
    numbers = [worker.beat]
    for _ in range(5):
        await backend.clock.advance(0.9 * TTL)
        (beat,) = await store.beat([worker.id])
        assert (beat.worker_id, beat.lease_until) == (worker.id, backend.clock.now() + TTL)
        numbers.append(beat.beat)
        assert await store.expired() == []
    assert numbers == sorted(set(numbers))
    (shown,) = await store.workers()
    assert (shown.beat, shown.beat_at, shown.lease_until) == (
        numbers[-1],
        backend.clock.now(),
        backend.clock.now() + TTL,
    )


async def test_one_call_beats_for_many_each_with_its_own_ttl(backend: Backend, store: Store) -> None:
    workers = [await store.register(a_worker(ttl=(i + 2) * SECOND)) for i in range(5)]
    await backend.clock.advance(SECOND)
    beats = await store.beat([worker.id for worker in workers])
    expected = {worker.id: backend.clock.now() + worker.ttl for worker in workers}
    assert {beat.worker_id: beat.lease_until for beat in beats} == expected
    assert await store.beat([]) == []


async def test_who_is_no_longer_alive_is_missing_in_the_answer(backend: Backend, store: Store, worker: Worker) -> None:
    reaped = await _dead(backend, store)
    await store.reap(reaped.id, reaped.beat)
    left = await store.register(a_worker())
    await store.deregister(left.id)
    beats = await store.beat([reaped.id, worker.id, left.id, uuid4()])
    assert [beat.worker_id for beat in beats] == [worker.id]
    assert [shown.id for shown in await store.workers(alive=True)] == [worker.id]


async def test_a_lease_that_has_passed_but_was_not_reaped_is_renewed(backend: Backend, store: Store) -> None:
    late = await _dead(backend, store, 1)
    assert [found.id for found in await store.expired()] == [late.id]
    assert [beat.worker_id for beat in await store.beat([late.id])] == [late.id]
    assert await store.expired() == []
    assert await store.reap(late.id, late.beat) is None
    assert len(await store.owned(late.id)) == 1


async def test_a_lease_passes_at_one_instant_for_everybody(backend: Backend, store: Store) -> None:
    """There is no moment at which a worker may claim and be reaped, and none at which it may do neither."""
    worker = await store.register(a_worker(ttl=TTL))
    await backend.clock.advance(TTL - timedelta(milliseconds=1))
    assert await store.expired() == []
    assert await store.reap(worker.id, worker.beat) is None
    assert await claim(store, worker) == []
    await backend.clock.advance(timedelta(milliseconds=1))
    assert await store.expired() == [ExpiredWorker(id=worker.id, beat=worker.beat, ttl=TTL)]
    with pytest.raises(LeaseLost):
        await claim(store, worker)
    assert await store.reap(worker.id, worker.beat) == Reaped()


async def test_who_is_reaped_or_has_left_is_no_candidate(backend: Backend, store: Store) -> None:
    dead = await _dead(backend, store)
    left = await store.register(a_worker(ttl=TTL))
    await store.deregister(left.id)
    await backend.clock.advance(MINUTE)
    assert [found.id for found in await store.expired()] == [dead.id]
    await store.reap(dead.id, dead.beat)
    assert await store.expired() == []


async def test_reaping_takes_the_runs_back_with_one_more_loss(backend: Backend, store: Store, worker: Worker) -> None:
    dead = await _dead(backend, store, 5)
    lost = await store.owned(dead.id)
    assert await store.reap(dead.id, dead.beat) == Reaped(requeued=5)
    assert await store.owned(dead.id) == []
    runs = await claim(store, worker)
    assert {run.job_id for run in runs} == {run.job_id for run in lost}
    assert {(run.losses, run.failures) for run in runs} == {(1, 0)}
    assert min(run.token for run in runs) > max(run.token for run in lost)
    (attempt,) = await store.attempts(runs[0].job_id)
    assert (attempt.cause, attempt.worker_id, attempt.ended_at) == ("lost", dead.id, backend.clock.now())


async def test_reaping_takes_only_the_runs_of_that_worker(backend: Backend, store: Store, worker: Worker) -> None:
    mine = await start(store, worker)
    dead = await _dead(backend, store, 2)
    waiting = await submit(store, delay=HOUR)
    await store.reap(dead.id, dead.beat)
    assert in_order(await store.owned(worker.id)) == [mine.job_id]
    assert (await store.get(waiting)).losses == 0


async def test_a_worker_is_reaped_once(backend: Backend, store: Store) -> None:
    dead = await _dead(backend, store, 2)
    assert await store.reap(dead.id, dead.beat) == Reaped(requeued=2)
    assert await store.reap(dead.id, dead.beat) is None
    assert (await store.workers())[0].ended_at == backend.clock.now()
    assert await store.deregister(dead.id) == Reaped()


async def test_nobody_is_reaped_for_a_beat_that_is_not_the_last(backend: Backend, store: Store) -> None:
    """The reaper watched a beat for a whole lease; if another one came, the watch was for nothing."""
    dead = await _dead(backend, store, 1)
    await store.beat([dead.id])
    await backend.clock.advance(TTL)
    (found,) = await store.expired()
    assert await store.reap(dead.id, dead.beat) is None
    assert len(await store.owned(dead.id)) == 1
    assert await store.reap(dead.id, found.beat) == Reaped(requeued=1)


async def test_an_unknown_worker_cannot_be_reaped(store: Store) -> None:
    assert await store.reap(uuid4(), 0) is None
    assert await store.owned(uuid4()) == []


async def test_the_third_loss_quarantines_the_job(backend: Backend, store: Store, worker: Worker) -> None:
    job_id = await submit(store)
    for expected in (Reaped(requeued=1), Reaped(requeued=1), Reaped(quarantined=1)):
        dead = await _dead_with(backend, store)
        assert await store.reap(dead.id, dead.beat) == expected
    job = await store.get(job_id)
    assert (job.state, job.losses, job.failures) == (State.DEAD, 3, 0)
    assert job.error is not None
    assert job.error.reason == "quarantined"
    assert len(await store.attempts(job_id)) == 3
    assert await claim(store, worker) == []
    await check_conserved(store, [job_id])


async def _dead_with(backend: Backend, store: Store) -> Worker:
    """Return a worker whose lease has passed while it had the one job that is due."""
    dying = await store.register(a_worker(ttl=TTL))
    assert len(await claim(store, dying)) == 1
    await backend.clock.advance(TTL)
    return dying


async def test_crashes_and_losses_add_up(backend: Backend, store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    await settle(store, worker, run, Cause.CRASHED)
    (run,) = await claim(store, worker)
    await settle(store, worker, run, Cause.CRASHED)
    dead = await _dead_with(backend, store)
    assert await store.reap(dead.id, dead.beat) == Reaped(quarantined=1)


async def test_losses_of_an_outage_are_not_counted(backend: Backend, store: Store) -> None:
    job_id = await submit(store)
    for _ in range(5):
        dead = await _dead_with(backend, store)
        assert await store.reap(dead.id, dead.beat, count=False) == Reaped(requeued=1)
    job = await store.get(job_id)
    assert (job.state, job.losses) == (State.QUEUED, 0)


async def test_the_number_of_losses_can_be_set(backend: Backend, store: Store) -> None:
    dead = await _dead(backend, store, 3)
    assert await store.reap(dead.id, dead.beat, max_losses=1) == Reaped(quarantined=3)


async def test_a_worker_that_leaves_hands_its_runs_back_uncounted(
    backend: Backend, store: Store, worker: Worker
) -> None:
    leaving = await store.register(a_worker(ttl=TTL))
    await store.submit(some_jobs(3))
    await claim(store, leaving)
    assert await store.deregister(leaving.id) == Reaped(requeued=3)
    runs = await claim(store, worker)
    assert len(runs) == 3
    assert {(run.losses, run.failures) for run in runs} == {(0, 0)}
    assert await store.attempts(runs[0].job_id) == []
    shown = next(found for found in await store.workers() if found.id == leaving.id)
    assert (shown.alive, shown.ended_at) == (False, backend.clock.now())


async def test_leaving_twice_or_unknown_does_nothing(store: Store, worker: Worker) -> None:
    assert await store.deregister(uuid4()) == Reaped()
    assert await store.deregister(worker.id) == Reaped()
    assert await store.deregister(worker.id) == Reaped()


async def test_a_worker_is_found_by_its_id_and_knows_whose_it_is(store: Store) -> None:
    everyones = await store.register(a_worker())
    acmes = await store.register(a_worker(tenant="acme"))
    assert (await store.worker(everyones.id), await store.worker(acmes.id)) == (everyones, acmes)
    assert (everyones.tenant, acmes.tenant) == (None, "acme")
    with pytest.raises(NotFound):
        await store.worker(uuid4())
    with pytest.raises(Invalid, match="tenant"):
        await store.register(a_worker(tenant="a b"))


async def test_workers_are_listed_newest_first(backend: Backend, store: Store) -> None:
    made = []
    for name in ("one", "two", "three"):
        made.append(await store.register(a_worker(name)))
        await backend.clock.advance(SECOND)
    await store.deregister(made[1].id)
    assert [worker.name for worker in await store.workers()] == ["three", "two", "one"]
    assert [worker.name for worker in await store.workers(alive=True)] == ["three", "one"]
    assert [worker.name for worker in await store.workers(alive=False)] == ["two"]


async def test_workers_that_ended_are_kept_for_a_day(backend: Backend, store: Store) -> None:
    left = await store.register(a_worker())
    await store.deregister(left.id)
    await backend.clock.advance(23 * HOUR)
    await store.retire(dict.fromkeys(FINAL, HOUR))
    assert [worker.id for worker in await store.workers()] == [left.id]
    await backend.clock.advance(2 * DAY)
    await store.retire(dict.fromkeys(FINAL, HOUR))
    assert await store.workers() == []


@pytest.mark.parametrize("ttl", [timedelta(0), -SECOND, SECOND, 2 * HOUR])
async def test_a_lease_that_cannot_be_held_is_refused(store: Store, ttl: timedelta) -> None:
    with pytest.raises(Invalid) as refusal:
        await store.register(a_worker(ttl=ttl))
    assert refusal.value.field == "ttl"
    assert await store.workers() == []


async def test_a_worker_with_a_name_that_cannot_be_stored_is_refused(store: Store) -> None:
    with pytest.raises(Invalid) as refusal:
        await store.register(a_worker("nul\0"))
    assert refusal.value.field == "name"
    assert await store.workers() == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "  "),
        ("queues", ("good", "")),
        ("queues", ("a,b",)),
        ("kinds", ("",)),
        ("kinds", ("good", "nul\0")),
        ("kinds", ("half \ud800",)),
        ("kinds", ("x" * 201,)),
    ],
)
async def test_a_worker_is_refused_by_the_name_of_the_bad_field(store: Store, field: str, value: Any) -> None:
    with pytest.raises(Invalid) as refusal:
        await store.register(a_worker(**{field: value}))
    assert refusal.value.field == field
    assert await store.workers() == []
