"""The harness catches a worker that breaks the promises, and has nothing to say against one that was left in peace."""

import signal
import sys

import pytest

from harness.arena import Arena
from harness.checker import History, check, require
from harness.processes import Process
from tests.builders import MINUTE
from tests.harness import naive_worker

pytestmark = [pytest.mark.chaos, pytest.mark.slow]


def naive(database: str) -> list[str]:
    return [sys.executable, "-m", naive_worker.__name__, database]


def rules_broken(history: History) -> set[str]:
    return {violation.rule for violation in check(history)}


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
async def test_jobs_that_are_left_in_peace_are_found_clean(store: str) -> None:
    async with Arena("postgres" if store == "postgres" else "sqlite", command=naive) as arena:
        jobs = [await arena.submit("nap", seconds=0.1) for _ in range(8)]
        waiting = await arena.submit("nap", seconds=0.1, wishes={"delay": MINUTE})
        await arena.client.cancel(waiting)

        ended = await arena.ended(*jobs)
        arena.cluster.kill((worker.supervisor for worker in arena.cluster.running), "supervisor")
        arena.size = 0
        history = await arena.finish()

        assert {job.state.value for job in ended} == {"succeeded"}
        assert arena.judge(history) == []
        figures = require(history, executions=8, succeeded=8, cancelled=1, kills=2, deaths=2)
        assert figures.executions == 8


@pytest.mark.proof
async def test_a_task_that_outlives_its_worker_is_caught() -> None:
    async with Arena("sqlite", command=naive) as arena:
        job = await arena.submit("nap", seconds=60)
        worker, _ = await arena.owner(job)

        arena.cluster.kill([worker.supervisor], "supervisor")
        await arena.runs(job, times=2)
        history = await arena.finish(patience=0)

        assert "CONCURRENT" in rules_broken(history)
        require(history, kills=1, executions=2)


@pytest.mark.proof
async def test_a_worker_that_was_stopped_past_its_lease_is_caught_when_it_goes_on() -> None:
    async with Arena("sqlite", command=naive) as arena:
        job = await arena.submit("nap", seconds=60)
        worker, task = await arena.owner(job)

        arena.cluster.freeze(worker.tree())
        before = len(arena.evidence(job))
        await arena.runs(job, times=2)
        locked = [record.alone for record in arena.evidence(job) if record.event == "start"]
        assert locked == [True, False], "even while it is stopped, the kernel knows that it is alive"
        arena.cluster.signal(worker.tree(), signal.SIGCONT)
        await arena.until(lambda: _goes_on(arena, task, before), "the first to go on")
        history = await arena.finish(patience=0)

        assert "CONCURRENT" in rules_broken(history)


async def _goes_on(arena: Arena, task: Process, since: int) -> bool:
    return any(record.pid == task.pid for record in arena.evidence()[since:])


async def test_what_is_left_of_a_killed_worker_is_seen_and_taken_away() -> None:
    async with Arena("sqlite", workers=1, command=naive) as arena:
        job = await arena.submit("nap", seconds=60)
        _, task = await arena.owner(job)
        arena.size = 0

        arena.cluster.kill([arena.cluster.running[0].supervisor], "supervisor")
        history = await arena.finish(patience=0)

        assert rules_broken(history) == {"LEAK", "STUCK"}
        assert [process.pid for process in arena.cluster.left()] == [task.pid]
    assert not arena.cluster.left()


async def test_a_worker_that_is_deaf_to_its_end_is_reported() -> None:
    async with Arena("sqlite", workers=1, command=naive) as arena:
        arena.cluster.freeze([arena.cluster.running[0].supervisor])

        assert not arena.cluster.stop(patience=0.5)
        assert arena.cluster.running
    assert not arena.cluster.running
