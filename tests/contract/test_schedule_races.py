"""All that happens to schedules happens at once: nobody waits for ever, and in the end everything fits together."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from tests.builders import HOUR, SECOND, a_claim, a_schedule, a_worker, outcome_of
from tests.contract.backends import Backend
from tests.contract.planning import decide_all, record_ahead
from tidewheel.errors import StaleVersion
from tidewheel.model.overlap import Overlap
from tidewheel.model.schedule import Fate, Schedule
from tidewheel.model.states import Cause, State
from tidewheel.store.base import JobFilter, Store
from tidewheel.triggers import Interval

pytestmark = pytest.mark.slow
ROUNDS = 12
LIMITS = {"skip": 1, "queue": 2, "cancel_previous": 1}


async def test_everything_at_once_leaves_every_occurrence_with_its_job(backend: Backend) -> None:
    stores = [await backend.open() for _ in range(3)]
    for name, most in LIMITS.items():
        spec = a_schedule(name, Interval(SECOND), kind=name, overlap=Overlap(name), max_concurrency=most)
        await stores[0].create_schedule(spec)
    chance = random.Random(3)
    for _ in range(ROUNDS):
        await backend.clock.advance(3 * SECOND)
        work: list[Callable[[Store], Awaitable[object]]] = [record, record, decide, decide, run_some, run_some, steer]
        chance.shuffle(work)
        await asyncio.gather(*(each(stores[n % 3]) for n, each in enumerate(work)))

    store = stores[0]
    await decide_all(store)
    jobs = {job.id: job for job in (await store.find(JobFilter(), limit=1000)).jobs}
    for schedule in await store.schedules():
        for occurrence in await store.occurrences(schedule.id, limit=1000):
            assert occurrence.job_id is not None, occurrence
            job = jobs.pop(occurrence.job_id)
            assert (job.schedule_id, job.due_at) == (schedule.id, occurrence.fire_at)
            assert (job.state is State.SKIPPED) == (occurrence.outcome is Fate.SKIPPED)
    assert {job.state for job in jobs.values()} <= {State.CANCELLED}, "all others were taken back"
    assert await store.repair_limits() == 0


async def record(store: Store) -> None:
    await record_ahead(store, 5 * SECOND)


async def decide(store: Store) -> None:
    await decide_all(store)


async def run_some(store: Store) -> None:
    """Run what is due, and see that no limit is passed."""
    worker = await store.register(a_worker(ttl=HOUR))
    runs = (await store.claim(a_claim(worker.id, 5))).runs
    running = Counter([job.kind for job in (await store.find(JobFilter(states=frozenset({State.RUNNING})))).jobs])
    assert all(running[name] <= most for name, most in LIMITS.items()), running
    causes = [Cause.STOPPED if (await store.get(run.job_id)).cancelling else Cause.RETURNED for run in runs]
    await store.settle(worker.id, [outcome_of(run, cause) for run, cause in zip(runs, causes, strict=True)])
    await store.deregister(worker.id)


async def steer(store: Store) -> None:
    """Change, pause and trigger schedules."""
    for schedule in await store.schedules():
        try:
            await store.change_schedule(schedule.id, schedule.definition, version=schedule.version)
        except StaleVersion:
            continue
        await restart(store, schedule)


async def restart(store: Store, schedule: Schedule) -> None:
    await store.pause_schedule(schedule.id)
    await store.trigger_schedule(schedule.id)
    await store.resume_schedule(schedule.id)
