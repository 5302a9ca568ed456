"""Large families: bounded pieces, and time that grows with their number and not with its square."""

from uuid import UUID

import pytest

from tests.contract.backends import Backend
from tests.contract.family import a_child, an_id, child_of, end, unblock_all
from tests.contract.steps import claim, finish, state_of, submit
from tidewheel.model.dependency import AT_ONCE
from tidewheel.model.job import JobSpec
from tidewheel.model.states import Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store

CHUNK = 5_000
S = State


async def _counted(store: Store) -> dict[tuple[str, State], int]:
    await store.take_census()
    return {(row.kind, row.state): row.jobs for row in (await store.counts()).rows}


async def _children(store: Store, parent: UUID, count: int) -> None:
    for first in range(0, count, CHUNK):
        await store.submit([a_child(parent)] * min(CHUNK, count - first))


async def test_the_first_thousand_children_are_told_at_once_and_the_others_by_the_duty(
    store: Store, worker: Worker
) -> None:
    parent = await submit(store)
    await _children(store, parent, 2_500)
    await end(store, worker, parent)
    assert (await _counted(store))["child", S.QUEUED] == AT_ONCE
    assert await store.unblock(limit=100) == 100
    assert (await _counted(store))["child", S.QUEUED] == AT_ONCE + 100
    assert await unblock_all(store) >= 1_400
    assert await _counted(store) == {("echo", S.SUCCEEDED): 1, ("child", S.QUEUED): 2_500}


async def test_a_long_chain_is_skipped_to_its_end_in_pieces(backend: Backend, store: Store) -> None:
    chain = [an_id(backend) for _ in range(3_500)]
    await store.submit([a_job_in(chain, index) for index in range(len(chain))])
    await store.cancel(chain[0])
    skipped = (await _counted(store))["child", S.SKIPPED]
    assert 1 <= skipped <= AT_ONCE
    assert await unblock_all(store) >= len(chain) - 1 - skipped
    assert await _counted(store) == {("child", S.CANCELLED): 1, ("child", S.SKIPPED): len(chain) - 1}


def a_job_in(chain: list[UUID], index: int) -> JobSpec:
    return a_child(*chain[max(0, index - 1) : index], id=chain[index])


async def test_what_was_not_told_is_told_after_a_restart(backend: Backend, store: Store, worker: Worker) -> None:
    parent = await submit(store)
    await _children(store, parent, 1_500)
    await end(store, worker, parent, cause=Cause.GAVE_UP)
    await backend.close()
    again = await backend.open()
    assert await unblock_all(again) >= 500
    assert (await _counted(again))["child", S.SKIPPED] == 1_500


@pytest.mark.large
@pytest.mark.proof
@pytest.mark.timeout(600)
async def test_a_hundred_thousand_children_of_one_parent_are_let_go(store: Store, worker: Worker) -> None:
    parent = await submit(store)
    await _children(store, parent, 100_000)
    await end(store, worker, parent)
    assert (await _counted(store))["child", S.QUEUED] == AT_ONCE
    await unblock_all(store)
    assert (await _counted(store))["child", S.QUEUED] == 100_000


@pytest.mark.large
@pytest.mark.proof
@pytest.mark.timeout(600)
async def test_fifty_thousand_parents_of_one_child_let_it_go(backend: Backend, store: Store, worker: Worker) -> None:
    parents = await backend.fill(50_000)
    child = await child_of(store, *parents)
    assert (await store.get(child)).waiting_for == 50_000
    while runs := await claim(store, worker, 500):
        assert await state_of(store, child) is S.BLOCKED or runs[0].job_id == child
        await finish(store, worker, runs)
    assert await state_of(store, child) is S.SUCCEEDED


@pytest.mark.large
@pytest.mark.proof
@pytest.mark.timeout(600)
async def test_a_chain_of_a_hundred_thousand_is_skipped_to_its_end(backend: Backend, store: Store) -> None:
    chain = [an_id(backend) for _ in range(100_000)]
    for first in range(0, len(chain), CHUNK):
        await store.submit([a_job_in(chain, index) for index in range(first, first + CHUNK)])
    await store.cancel(chain[0])
    await unblock_all(store)
    assert await state_of(store, chain[-1]) is S.SKIPPED
    assert (await _counted(store))["child", S.SKIPPED] == len(chain) - 1
