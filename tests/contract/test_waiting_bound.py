"""Waiting is bounded: whatever keeps coming, who waits long enough starts."""

from datetime import timedelta

from tests.builders import HOUR, MINUTE, SECOND, a_worker, outcome_of, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import claim
from tidewheel.model.order import AGED_SHARE, AGING
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
