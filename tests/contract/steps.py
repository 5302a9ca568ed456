"""What tests of stores do again and again."""

from collections import Counter
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from tests.builders import a_claim, a_job, outcome_of
from tests.contract.backends import Backend
from tidewheel.errors import OutcomeUnknown
from tidewheel.model.job import Job, Run
from tidewheel.model.outcome import Verdict
from tidewheel.model.states import ACTIVE, FINAL, Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import JobFilter, Store


async def stores_on(backend: Backend, count: int) -> list[Store]:
    """Open several stores on one database, as several processes would."""
    return [await backend.open() for _ in range(count)]


async def submit(store: Store, kind: str = "echo", **fields: Any) -> UUID:
    """Submit one job."""
    (answer,) = await store.submit([a_job(kind, **fields)])
    return answer.job_id


async def claim(store: Store, worker: Worker, limit: int = 10, **fields: Any) -> list[Run]:
    return (await store.claim(a_claim(worker.id, limit, **fields))).runs


async def start(store: Store, worker: Worker, kind: str = "echo", **fields: Any) -> Run:
    """Submit one job and claim it; it must be the only one that is due."""
    job_id = await submit(store, kind, **fields)
    (run,) = await claim(store, worker)
    assert run.job_id == job_id
    return run


async def settle(store: Store, worker: Worker, run: Run, cause: Cause = Cause.RETURNED, **fields: Any) -> Verdict:
    (verdict,) = await store.settle(worker.id, [outcome_of(run, cause, **fields)])
    return verdict


async def finish(store: Store, worker: Worker, runs: Iterable[Run], cause: Cause = Cause.RETURNED) -> None:
    """End runs, all of which must be accepted."""
    outcomes = [outcome_of(run, cause) for run in runs]
    assert set(await store.settle(worker.id, outcomes)) <= {Verdict.ACCEPTED}


async def drain(store: Store, worker: Worker, limit: int = 100, **fields: Any) -> list[Run]:
    """Claim and finish until nothing is left; return the runs in their order."""
    runs: list[Run] = []
    while got := await claim(store, worker, limit, **fields):
        await finish(store, worker, got)
        runs += got
    return runs


async def state_of(store: Store, job_id: UUID) -> State:
    return (await store.get(job_id)).state


async def everything(store: Store, where: JobFilter | None = None, page: int = 200) -> list[Job]:
    """Walk a list to its end."""
    jobs: list[Job] = []
    after: UUID | None = None
    while True:
        got = await store.find(where or JobFilter(), limit=page, after=after)
        assert len(got.jobs) <= page
        jobs += got.jobs
        if got.next is None:
            return jobs
        assert after is None or got.next < after, "a walk must come to an end"
        after = got.next


async def check_conserved(store: Store, ids: Iterable[UUID]) -> None:
    """Nothing is lost and nothing is doubled: each job is once among the active or once among the finished."""
    active = [job.id for job in await everything(store, JobFilter(states=frozenset(ACTIVE)))]
    finished = [job.id for job in await everything(store, JobFilter(states=frozenset(FINAL)))]
    assert Counter(active + finished) == Counter(set(ids))


def in_order(runs: Iterable[Run]) -> list[UUID]:
    return [run.job_id for run in runs]


class LostReplies:
    """A store whose calls happen, but whose answers never arrive."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def claim(self, worker: Worker, limit: int = 10) -> None:
        await self._store.claim(a_claim(worker.id, limit))
        raise OutcomeUnknown

    async def settle(self, worker: Worker, run: Run, cause: Cause) -> None:
        await self._store.settle(worker.id, [outcome_of(run, cause)])
        raise OutcomeUnknown
