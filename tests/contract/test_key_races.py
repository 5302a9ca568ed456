"""Races for idempotency and unique keys: however many ask at once, one of them gets the job."""

import asyncio
from collections import Counter

import pytest

from tests.builders import a_job
from tests.contract.backends import Backend
from tests.contract.steps import everything, stores_on
from tidewheel.errors import AlreadyActive, KeyReused
from tidewheel.model.job import Submitted
from tidewheel.model.states import State


async def test_the_same_key_a_hundred_times_in_parallel_gives_one_job(backend: Backend) -> None:
    stores = await stores_on(backend, 4)
    for turn in range(5):
        spec = a_job(args={"n": 1}, idempotency_key=f"k{turn}")
        answers = await asyncio.gather(*(stores[i % 4].submit([spec]) for i in range(100)))
        assert len({answer.job_id for (answer,) in answers}) == 1
        assert sum(answer.created for (answer,) in answers) == 1
    assert len(await everything(stores[0])) == 5


async def test_the_same_key_with_different_requests_in_parallel_gives_one_job(backend: Backend) -> None:
    stores = await stores_on(backend, 4)
    specs = [a_job(args={"n": i % 5}, idempotency_key="k") for i in range(100)]
    submits = [stores[i % 4].submit([spec]) for i, spec in enumerate(specs)]
    answers = await asyncio.gather(*submits, return_exceptions=True)
    (job,) = await everything(stores[0])
    for spec, answer in zip(specs, answers, strict=True):
        if spec.args == job.args:
            assert isinstance(answer, list)
            assert answer[0].job_id == job.id
        else:
            assert isinstance(answer, KeyReused)


async def test_batches_with_the_same_keys_in_other_orders_do_not_block_each_other(backend: Backend) -> None:
    stores = await stores_on(backend, 4)
    specs = [a_job(args={"n": i}, idempotency_key=f"k{i}", unique_key=f"u{i}") for i in range(20)]
    batches = [specs, specs[::-1], specs[10:] + specs[:10], specs[::-1]] * 5
    answers = await asyncio.gather(*(stores[i % 4].submit(batch) for i, batch in enumerate(batches)))
    assert sum(answer.created for batch in answers for answer in batch) == 20
    assert len(await everything(stores[0])) == 20


@pytest.mark.parametrize("unique", ["reject", "keep", "replace"])
async def test_the_same_unique_key_in_parallel_leaves_one_active_job(backend: Backend, unique: str) -> None:
    stores = await stores_on(backend, 4)
    submits = [stores[i % 4].submit([a_job(unique_key="u", unique=unique)]) for i in range(50)]
    answers = await asyncio.gather(*submits, return_exceptions=True)
    jobs = await everything(stores[0])
    (active,) = [job for job in jobs if job.state is State.QUEUED]
    if unique == "reject":
        assert sum(isinstance(answer, AlreadyActive) for answer in answers) == 49
        assert len(jobs) == 1
    elif unique == "keep":
        assert {answer[0].job_id for answer in answers if isinstance(answer, list)} == {active.id}
        assert sum(answer == [Submitted(active.id, created=True)] for answer in answers) == 1
    else:
        assert not any(isinstance(answer, BaseException) for answer in answers)
        assert Counter(job.state for job in jobs) == {State.QUEUED: 1, State.CANCELLED: 49}


@pytest.mark.parametrize("unique", ["reject", "keep", "replace"])
async def test_a_repeated_request_with_a_unique_key_in_parallel_gives_one_job(backend: Backend, unique: str) -> None:
    stores = await stores_on(backend, 4)
    spec = a_job(idempotency_key="k", unique_key="u", unique=unique)
    answers = await asyncio.gather(*(stores[i % 4].submit([spec]) for i in range(50)))
    (job,) = await everything(stores[0])
    assert {answer.job_id for (answer,) in answers} == {job.id}
    assert sum(answer.created for (answer,) in answers) == 1
