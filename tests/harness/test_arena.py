"""The harness catches a worker that breaks the promises, and has nothing to say against one that was left in peace."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from harness.arena import Arena
from harness.checker import History, check, require
from harness.nemesis import paused
from tests.builders import MINUTE
from tests.harness import naive_worker

pytestmark = [pytest.mark.chaos, pytest.mark.slow]


def naive(database: str, _: Path) -> list[str]:
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


async def test_a_task_that_outlives_its_worker_is_caught() -> None:
    async with Arena("sqlite", command=naive) as arena:
        job = await arena.submit("nap", seconds=12)
        await arena.runs(job)
        owner = next(worker for worker in arena.cluster.running if len(worker.tree()) > 1)

        arena.cluster.kill([owner.supervisor], "supervisor")
        await arena.runs(job, times=2)
        await arena.ended(job)
        history = await arena.finish()

        assert "CONCURRENT" in rules_broken(history)
        require(history, kills=1)


async def test_a_worker_that_was_stopped_past_its_lease_is_caught_when_it_goes_on() -> None:
    async with Arena("sqlite", command=naive) as arena:
        job = await arena.submit("nap", seconds=9)
        await arena.runs(job)
        owner = next(worker for worker in arena.cluster.running if len(worker.tree()) > 1)

        pause = asyncio.create_task(paused(arena, "stop tree", owner.tree(), 8))
        await arena.runs(job, times=2)
        await pause
        await arena.ended(job)
        history = await arena.finish()

        assert "CONCURRENT" in rules_broken(history)
        assert require(history, faults=1).faults == 1


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
        supervisor = arena.cluster.running[0].supervisor
        arena.cluster.signal([supervisor], signal.SIGSTOP)

        assert not arena.cluster.stop(patience=0.5)
        assert arena.cluster.running
    assert not arena.cluster.running
