"""Words for jobs that wait for one another."""

from collections.abc import Iterable
from itertools import count
from typing import Any
from uuid import UUID

from tests.builders import a_job
from tests.contract.backends import Backend
from tests.contract.steps import claim, settle, submit
from tidewheel.model.ids import make_id
from tidewheel.model.job import JobSpec, Run
from tidewheel.model.outcome import Verdict
from tidewheel.model.states import Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store

_numbers = count(1)


def an_id(backend: Backend) -> UUID:
    """Make an id as a caller would who wants to give one."""
    return make_id(int(backend.clock.now().timestamp() * 1000), next(_numbers))


def a_child(*parents: UUID, kind: str = "child", **fields: Any) -> JobSpec:
    return a_job(kind, after=parents, **fields)


async def child_of(store: Store, *parents: UUID, kind: str = "child", **fields: Any) -> UUID:
    return await submit(store, kind, after=parents, **fields)


async def end(store: Store, worker: Worker, *jobs: UUID, cause: Cause = Cause.RETURNED, **fields: Any) -> list[Run]:
    """Let queued jobs run and end; there must be no others that are due."""
    runs = await claim(store, worker, 100)
    assert {run.job_id for run in runs} == set(jobs)
    for run in runs:
        assert await settle(store, worker, run, cause, **fields) is Verdict.ACCEPTED
    return runs


async def states(store: Store, jobs: Iterable[UUID]) -> list[State]:
    return [(await store.get(job)).state for job in jobs]


async def unblock_all(store: Store) -> int:
    """Do what the keeper does, until there is nothing left."""
    told = 0
    while piece := await store.unblock():
        told += piece
    return told
