"""Waiting is bounded: whatever keeps coming, who waits long enough starts."""

from datetime import timedelta
from itertools import pairwise

import pytest

from tests.builders import HOUR, MINUTE, SECOND, a_worker, outcome_of, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import claim
from tidewheel.model.order import AGED_SHARE, AGING
from tidewheel.model.priority import Priority
from tidewheel.model.states import Cause
from tidewheel.store.base import Store

SLOTS = 10
ROUND = 10 * SECOND


async def rounds_until_started(backend: Backend, store: Store, kind: str, number: int, **load: object) -> list[int]:
    """Let more come than can run, round after round, and return in which rounds the jobs of a kind start."""
    worker = await store.register(a_worker(ttl=HOUR))
    started: list[int] = []
    for turn in range(60):
        await store.beat([worker.id])
        await store.submit(some_jobs(2 * SLOTS, "endless", **load))
        runs = await claim(store, worker, SLOTS)
        assert len(runs) == SLOTS
        started += [turn for run in runs if run.kind == kind]
        await store.settle(worker.id, [outcome_of(run) for run in runs])
        if len(started) == number:
            break
        await backend.clock.advance(ROUND)
    return started


async def test_a_job_of_low_priority_starts_within_its_bound_under_endless_urgent_load(
    backend: Backend, store: Store
) -> None:
    """After five minutes the aged get a tenth of the starts, oldest first: of ten slots one, round by round."""
    await store.submit(some_jobs(5, "low", priority=2))
    started = await rounds_until_started(backend, store, "low", 5, priority=0)
    patient = int(AGING / ROUND)
    assert min(started) >= patient, "priority is strict until then"
    assert max(started) <= patient + 5 / (AGED_SHARE * SLOTS)


async def test_first_attempts_do_not_wait_for_endless_urgent_retries(backend: Backend, store: Store) -> None:
    """Nor for their five minutes: retries leave four fifths of the starts."""
    worker = await store.register(a_worker(ttl=HOUR))
    await store.submit(some_jobs(200, "failing", priority=0))
    runs = await claim(store, worker, 200)
    await store.settle(worker.id, [outcome_of(run, Cause.FAILED) for run in runs])
    await backend.clock.advance(SECOND)
    await store.submit(some_jobs(16, "low", priority=2))
    started: list[timedelta] = []
    began = backend.clock.now()
    for _ in range(4):
        await backend.clock.advance(ROUND)
        runs = await claim(store, worker, SLOTS)
        started += [backend.clock.now() - began for run in runs if run.kind == "low"]
        causes = [Cause.RETURNED if run.kind == "low" else Cause.FAILED for run in runs]
        await store.settle(worker.id, [outcome_of(run, cause) for run, cause in zip(runs, causes, strict=True)])
    assert len(started) == 16
    assert max(started) <= 3 * ROUND < MINUTE


async def rounds_under_a_full_key(backend: Backend, store: Store, low: int, *, others: int = 0) -> list[str]:
    """Let urgent jobs of one key come without end while one runs at a time, and return the kinds that start under it.

    The worker has more slots than that. With `others`, urgent jobs without a key fill them.
    """
    await store.set_limit("l", 1)
    worker = await store.register(a_worker(ttl=HOUR))
    await store.submit(some_jobs(low, "low", priority=2, limit_keys=("l",)))
    started: list[str] = []
    for _ in range(90):
        await store.beat([worker.id])
        await store.submit(
            [*some_jobs(2, "urgent", priority=0, limit_keys=("l",)), *some_jobs(others, "other", priority=0)]
        )
        runs = await claim(store, worker, SLOTS)
        started += [run.kind for run in runs if run.limit_keys] or ["nobody"]
        await store.settle(worker.id, [outcome_of(run) for run in runs])
        await backend.clock.advance(ROUND)
    return started


@pytest.mark.parametrize("others", [0, SLOTS - 1], ids=["alone", "among others"])
async def test_a_waiter_of_low_priority_starts_within_its_bound_under_an_endlessly_full_key(
    backend: Backend, store: Store, others: int
) -> None:
    """Of ten starts under a key one goes to the oldest that has waited for five minutes, whatever else is due."""
    started = await rounds_under_a_full_key(backend, store, 3, others=others)
    patient = int(AGING / ROUND)
    turns = [turn for turn, kind in enumerate(started) if kind == "low"]
    assert len(turns) == 3
    assert min(turns) >= patient, "priority is strict until then"
    assert max(turns) <= patient + 2 + 3 / AGED_SHARE
    assert all(later - turn >= 1 / AGED_SHARE for turn, later in pairwise(turns)), "and holds for nine of ten"
    assert started.count("nobody") <= 2, "no room is left unused for it"


async def test_urgent_waiters_wait_for_no_more_than_a_tenth_that_are_old(backend: Backend, store: Store) -> None:
    await store.set_limit("l", 1)
    worker = await store.register(a_worker(ttl=HOUR))
    await store.submit(some_jobs(200, "low", priority=2, limit_keys=("l",)))
    runs = await claim(store, worker)
    await backend.clock.advance(AGING)
    await store.submit(some_jobs(40, "urgent", priority=0, limit_keys=("l",)))
    assert await claim(store, worker) == []
    started: list[str] = []
    while started.count("urgent") < 40:
        await store.settle(worker.id, [outcome_of(run) for run in runs])
        runs = await claim(store, worker)
        started += [run.kind for run in runs]
    assert started.count("low") <= 40 / 9 + 1


@pytest.mark.parametrize("cause", [Cause.FAILED, Cause.RELEASED])
async def test_who_went_by_age_and_comes_back_waits_as_others_do(backend: Backend, store: Store, cause: Cause) -> None:
    await store.set_limit("l", 1)
    worker = await store.register(a_worker(ttl=HOUR))
    await store.submit(some_jobs(12, "low", priority=2, limit_keys=("l",)))
    runs = await claim(store, worker)
    await backend.clock.advance(AGING)
    for _ in range(10):
        await store.settle(worker.id, [outcome_of(run) for run in runs])
        runs = await claim(store, worker)
    (old,) = runs
    await store.settle(worker.id, [outcome_of(old, cause)])
    await store.submit(some_jobs(1, "urgent", priority=0, limit_keys=("l",)))
    await backend.clock.advance(ROUND)
    assert [run.kind for run in await claim(store, worker)] == ["urgent"]
    job = await store.get(old.job_id)
    assert (job.kind, job.priority) == ("low", Priority.LOW)
