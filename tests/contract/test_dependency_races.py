"""Races of dependencies: a parent's end against whatever may happen to its children at the same moment."""

import asyncio
import random
from collections import Counter
from collections.abc import Coroutine
from typing import Any
from uuid import UUID

from tests.builders import HOUR, a_job, a_worker, outcome_of
from tests.contract.backends import Backend
from tests.contract.family import a_child, an_id, child_of, states, unblock_all
from tests.contract.steps import (
    check_conserved,
    claim,
    everything,
    in_order,
    settle,
    start,
    state_of,
    stores_on,
    submit,
)
from tidewheel.errors import IdTaken
from tidewheel.model.job import Run, Submitted
from tidewheel.model.states import ACTIVE, Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import JobFilter, Store

ROUNDS = 200
S = State


async def _race(turn: int, *calls: Coroutine[Any, Any, Any]) -> list[Any]:
    """Let calls race, in another order each time; errors are answers."""
    order = list(range(len(calls)))
    random.Random(turn).shuffle(order)
    answers = await asyncio.gather(*(calls[index] for index in order), return_exceptions=True)
    return [answers[order.index(index)] for index in range(len(calls))]


async def _runs_of(stores: list[Store], worker: Worker, count: int) -> list[Run]:
    for _ in range(count):
        await submit(stores[0])
    runs = await claim(stores[0], worker, count)
    assert len(runs) == count
    return runs


async def test_a_child_that_is_submitted_while_its_parent_ends_is_never_forgotten(backend: Backend) -> None:
    stores = await stores_on(backend, 2)
    worker = await stores[0].register(a_worker(ttl=HOUR))
    seen = Counter[State]()
    for turn in range(ROUNDS):
        (run,) = await _runs_of(stores, worker, 1)
        if turn % 3 == 0:
            await child_of(stores[0], run.job_id, delay=HOUR)  # then the parent is marked before
        good = turn % 4 != 0
        outcome = outcome_of(run, Cause.RETURNED if good else Cause.GAVE_UP)
        answers = await _race(
            turn, stores[turn % 2].settle(worker.id, [outcome]), stores[(turn + 1) % 2].submit([a_child(run.job_id)])
        )
        child = answers[1][0].job_id
        state = await state_of(stores[0], child)
        assert state is (S.QUEUED if good else S.SKIPPED), turn
        seen[state] += 1
        await stores[0].cancel(child)
    assert seen == {S.QUEUED: 150, S.SKIPPED: 50}
    assert await stores[0].recheck_blocked() == 0


async def test_two_parents_that_end_at_once_let_their_child_go_exactly_once(backend: Backend) -> None:
    stores = await stores_on(backend, 2)
    worker = await stores[0].register(a_worker(ttl=HOUR))
    for turn in range(ROUNDS):
        first, second = await _runs_of(stores, worker, 2)
        child = await child_of(stores[0], first.job_id, second.job_id)
        await _race(turn, *(settle(store, worker, run) for store, run in zip(stores, (first, second), strict=True)))
        (run,) = await claim(stores[turn % 2], worker)
        assert run.job_id == child
        await settle(stores[0], worker, run)


async def test_many_parents_that_end_at_once_are_each_counted_once(backend: Backend) -> None:
    stores = await stores_on(backend, 4)
    worker = await stores[0].register(a_worker(ttl=HOUR))
    for turn in range(10):
        runs = await _runs_of(stores, worker, 40)
        parents = in_order(runs)
        children = [await child_of(stores[0], *parents[i:]) for i in range(0, 40, 8)]
        await _race(turn, *(settle(stores[i % 4], worker, run) for i, run in enumerate(runs)))
        got = await claim(stores[0], worker, 40)
        assert sorted(in_order(got)) == sorted(children)
        await stores[0].settle(worker.id, [outcome_of(run) for run in got])


async def test_two_parents_that_end_at_once_one_well_and_one_badly_skip_their_child(backend: Backend) -> None:
    stores = await stores_on(backend, 2)
    worker = await stores[0].register(a_worker(ttl=HOUR))
    for turn in range(ROUNDS // 2):
        first, second = await _runs_of(stores, worker, 2)
        child = await child_of(stores[0], first.job_id, second.job_id)
        below = await child_of(stores[1], child)
        await _race(turn, settle(stores[0], worker, first), settle(stores[1], worker, second, Cause.GAVE_UP))
        assert await states(stores[0], [child, below]) == [S.SKIPPED, S.SKIPPED]


async def test_a_child_that_is_cancelled_while_its_parent_ends_runs_or_is_cancelled(backend: Backend) -> None:
    stores = await stores_on(backend, 2)
    worker = await stores[0].register(a_worker(ttl=HOUR))
    for turn in range(ROUNDS // 2):
        (run,) = await _runs_of(stores, worker, 1)
        child = await child_of(stores[0], run.job_id)
        below = await child_of(stores[0], child)
        await _race(turn, settle(stores[0], worker, run), stores[1].cancel(child))
        assert await states(stores[0], [child, below]) == [S.CANCELLED, S.SKIPPED]
        assert await claim(stores[0], worker) == []


async def test_a_child_of_a_child_that_is_being_skipped_is_never_forgotten(backend: Backend) -> None:
    stores = await stores_on(backend, 2)
    for turn in range(ROUNDS // 2):
        parent = await submit(stores[0])
        child = await child_of(stores[0], parent)
        if turn % 2:
            await child_of(stores[0], child)
        answers = await _race(turn, stores[0].cancel(parent), stores[1].submit([a_child(child)]))
        assert await state_of(stores[0], answers[1][0].job_id) is S.SKIPPED
    assert await everything(stores[0], JobFilter(states=frozenset(ACTIVE))) == []


async def test_a_child_that_holds_on_to_a_failed_parent_while_that_is_redriven_is_let_go(backend: Backend) -> None:
    stores = await stores_on(backend, 2)
    worker = await stores[0].register(a_worker(ttl=HOUR))
    for turn in range(ROUNDS // 2):
        run = await start(stores[0], worker)
        await settle(stores[0], worker, run, Cause.GAVE_UP)
        spec = a_child(run.job_id, on_parent_failure="hold")
        redriven, answers = await _race(turn, stores[0].redrive([run.job_id]), stores[1].submit([spec]))
        assert redriven == [run.job_id]
        (again,) = await claim(stores[0], worker)
        await settle(stores[0], worker, again)
        (last,) = await claim(stores[1], worker)
        assert last.job_id == answers[0].job_id
        await settle(stores[0], worker, last)


async def test_of_submits_with_the_same_id_one_wins(backend: Backend) -> None:
    stores = await stores_on(backend, 4)
    worker = await stores[0].register(a_worker(ttl=HOUR))
    for turn in range(ROUNDS // 4):
        job_id = an_id(backend)

        async def work() -> None:
            for run in await claim(stores[0], worker):
                await settle(stores[0], worker, run)

        calls = [store.submit([a_job(id=job_id)]) for store in stores]
        answers = await _race(turn, *calls, work(), work())
        made = [answer for answer in answers[:4] if answer == [Submitted(job_id, created=True)]]
        taken = [answer for answer in answers[:4] if isinstance(answer, IdTaken)]
        assert (len(made), len(taken)) == (1, 3), answers
        await work()


async def test_whole_graphs_come_to_their_end_whoever_works_on_them(backend: Backend) -> None:
    """Random graphs with all policies, worked off by several at once while some jobs are cancelled or fail."""
    stores = await stores_on(backend, 4)
    workers = [await store.register(a_worker(ttl=HOUR)) for store in stores]
    chance = random.Random(8433)
    ids: list[UUID] = []
    for _ in range(5):
        ids += await _plant(backend, stores[0], chance, 60)
        doomed = chance.sample(ids, 5)
        await asyncio.gather(
            *(_work(store, worker, chance) for store, worker in zip(stores, workers, strict=True)),
            *(stores[i % 4].cancel(job) for i, job in enumerate(doomed)),
            *(stores[i].unblock() for i in range(4)),
        )
        await _work(stores[0], workers[0], chance)
    assert await unblock_all(stores[0]) == 0
    assert await stores[0].recheck_blocked() == 0
    await check_conserved(stores[0], ids)
    for job in await everything(stores[0], JobFilter(states=frozenset(ACTIVE))):
        # Only those may be left that hold on to a parent that failed, and whoever waits for them.
        ends = {relative.state for relative in await stores[0].parents_of(job.id)}
        assert job.state is S.BLOCKED
        assert ends - {S.SUCCEEDED}
        assert S.BLOCKED in ends or job.on_parent_failure == "hold"


async def _plant(backend: Backend, store: Store, chance: random.Random, count: int) -> list[UUID]:
    ids = [an_id(backend) for _ in range(count)]
    specs = [
        a_job(
            id=job,
            after=tuple(chance.sample(ids[:index], min(index, chance.randrange(4)))),
            on_parent_failure=chance.choice(["skip", "skip", "run", "hold"]),
        )
        for index, job in enumerate(ids)
    ]
    await store.submit(specs)
    return ids


async def _work(store: Store, worker: Worker, chance: random.Random) -> None:
    while runs := await claim(store, worker, 5):
        causes = [Cause.GAVE_UP if chance.random() < 0.1 else Cause.RETURNED for _ in runs]
        await store.settle(worker.id, [outcome_of(run, cause) for run, cause in zip(runs, causes, strict=True)])
