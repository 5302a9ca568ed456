"""Processes of a worker are killed."""

import asyncio

import pytest

from harness.arena import Arena, StoreName
from harness.checker import require
from harness.checker.intervals import deaths_by_pid
from harness.checker.records import Death
from harness.processes import Role, look_at
from tests.chaos.verdict import safe
from tidewheel.model.states import State

pytestmark = [pytest.mark.chaos, pytest.mark.slow]


@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=pytest.mark.proof)])
async def test_a_runner_is_killed_and_its_job_runs_again(store: StoreName) -> None:
    async with Arena(store) as arena:
        job = await arena.submit("doze", seconds=3)
        worker, runner = await arena.owner(job)
        assert runner.pid in {process.pid for process in worker.parts("runner")}

        arena.cluster.kill([runner], "runner")
        [done] = await arena.ended(job)

        assert worker.running, "only the runner dies"
        assert (done.state, done.token, done.losses, done.result) == (State.SUCCEEDED, 2, 1, 2)
        await safe(arena, kills=1, reclaims=1, executions=2)


@pytest.mark.parametrize("role", ["host", "launcher", "task"])
@pytest.mark.proof
async def test_a_part_above_or_below_a_task_is_killed_and_the_job_runs_again(role: Role) -> None:
    async with Arena("sqlite") as arena:
        jobs = [await arena.submit(kind, seconds=3) for kind in ("nap", "command")]
        owners = await asyncio.gather(*(arena.owner(job) for job in jobs))

        for worker, task in owners:
            victims = [task] if role == "task" else worker.parts(role)
            arena.cluster.kill(victims, role)
        done = await arena.ended(*jobs)

        assert all(worker.running for worker, _ in owners)
        assert [job.state for job in done] == [State.SUCCEEDED, State.SUCCEEDED]
        assert all(job.losses == 1 for job in done)
        await safe(arena, kills=1, reclaims=2, executions=4)


@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=pytest.mark.proof)])
async def test_a_supervisor_is_killed_and_everything_below_it_dies(store: StoreName) -> None:
    async with Arena(store) as arena:
        jobs = [await arena.submit(kind, seconds=4) for kind in ("doze", "nap", "command")]
        owners = await asyncio.gather(*(arena.owner(job) for job in jobs))
        worker = owners[0][0]
        tree = worker.tree()

        arena.cluster.kill([worker.supervisor], "supervisor")
        await arena.until(lambda: _all_dead([process.pid for process in tree]), "the tree to die", patience=5)
        arena.restore()
        done = await arena.ended(*jobs)

        assert {job.state for job in done} == {State.SUCCEEDED}
        await safe(arena, kills=1, reclaims=1, deaths=len(tree))


@pytest.mark.proof
async def test_all_workers_are_killed_at_once_and_nothing_is_lost() -> None:
    async with Arena("sqlite") as arena:
        jobs = [await arena.submit(kind, seconds=1) for kind in ("doze", "nap") for _ in range(4)]
        await arena.runs(jobs[0])

        for worker in arena.cluster.running:
            arena.cluster.kill(worker.tree(), "tree")
        arena.restore()
        done = await arena.ended(*jobs)

        assert {job.state for job in done} == {State.SUCCEEDED}
        await safe(arena, kills=2, reclaims=1)


@pytest.mark.proof
async def test_a_killed_worker_is_seen_dead_by_the_harness() -> None:
    async with Arena("sqlite", workers=1) as arena:
        job = await arena.submit("nap", seconds=3)
        worker, task = await arena.owner(job)
        await arena.until(lambda: _watched(arena, [worker.pid, task.pid]), "both to be seen")

        arena.cluster.kill([worker.supervisor], "supervisor")
        await arena.until(lambda: _all_dead([worker.pid, task.pid]), "both to die", patience=5)
        history = await arena.finish()

        assert {worker.pid, task.pid} <= deaths_by_pid(history.of(Death)).keys()
        assert arena.judge(history) == []
        require(history, kills=1, reclaims=1)


async def _watched(arena: Arena, pids: list[int]) -> bool:
    return all(arena.cluster.watches(pid) for pid in pids)


async def _all_dead(pids: list[int]) -> bool:
    return all((process := look_at(pid)) is None or process.dead for pid in pids)
