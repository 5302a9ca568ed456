"""Processes are stopped for longer than a lease, and then go on, if they can."""

import asyncio

import pytest

from harness.arena import Arena, StoreName, tide_worker
from harness.nemesis import PAUSED, paused
from harness.processes import Role, look_at
from tests.chaos.verdict import safe
from tidewheel.model.states import State

pytestmark = [pytest.mark.chaos, pytest.mark.slow]


@pytest.mark.parametrize("store", ["postgres", pytest.param("sqlite", marks=pytest.mark.proof)])
async def test_a_worker_stopped_past_its_lease_is_dead_before_it_could_go_on(store: StoreName) -> None:
    async with Arena(store) as arena:
        jobs = [await arena.submit(kind, seconds=5) for kind in ("doze", "nap", "command")]
        worker, _ = await arena.owner(jobs[-1])  # whose host is up: one that is only starting has nothing to overlap
        tree = worker.tree()

        stopping = asyncio.create_task(paused(arena, "stop tree", tree, PAUSED))
        await arena.until(lambda: _none_alive([process.pid for process in tree]), "the kernel's timer to kill it")
        assert not stopping.done(), "it died while it was stopped, not because it was woken"
        await stopping
        done = await arena.ended(*jobs)

        assert {job.state for job in done} == {State.SUCCEEDED}
        await safe(arena, faults=1, reclaims=1)


def bare_worker(database: str) -> list[str]:
    """Return the words that start a worker whose tasks have no namespace around them."""
    return ["tests.chaos.bare_app:app" if word == "harness.chaos_app:app" else word for word in tide_worker(database)]


@pytest.mark.proof
async def test_without_a_namespace_what_is_stopped_past_its_lease_is_dead_before_it_could_go_on() -> None:
    async with Arena("sqlite", command=bare_worker) as arena:
        jobs = [await arena.submit(kind, seconds=5) for kind in ("nap", "obey")]
        for job in jobs:
            await arena.runs(job)
        trees = [process for worker in arena.cluster.running for process in worker.tree()]

        stopping = asyncio.create_task(paused(arena, "stop tree", trees, PAUSED))
        await arena.until(lambda: _none_alive([process.pid for process in trees]), "the kernel's timer to kill them")
        assert not stopping.done(), "they died while they were stopped, not because they were woken"
        arena.restore()
        await stopping
        done = await arena.ended(*jobs)

        assert {(job.state, job.token) for job in done} == {(State.SUCCEEDED, 2)}
        await safe(arena, faults=1, reclaims=1)


async def test_only_the_supervisor_is_stopped_and_its_tasks_end_with_its_lease() -> None:
    async with Arena("sqlite") as arena:
        jobs = [await arena.submit(kind, seconds=5) for kind in ("doze", "nap")]
        worker, _ = await arena.owner(jobs[0])
        tree = worker.tree()

        await paused(arena, "stop supervisor", [worker.supervisor])

        assert await _none_alive([process.pid for process in tree])
        done = await arena.ended(*jobs)
        assert {job.state for job in done} == {State.SUCCEEDED}
        await safe(arena, faults=1, reclaims=1)


@pytest.mark.proof
@pytest.mark.parametrize(("role", "kind", "next_kind"), [("runner", "cling", "doze"), ("host", "ignore", "nap")])
async def test_only_a_runner_or_host_is_stopped_and_the_supervisor_replaces_it_when_its_run_is_overdue(
    role: Role, kind: str, next_kind: str
) -> None:
    async with Arena("sqlite", workers=1) as arena:
        job = await arena.submit(kind, seconds=60)
        worker, _ = await arena.owner(job)
        part = await arena.part(role, worker)
        follower = await arena.submit(next_kind, seconds=0.1)

        with arena.journal.fault(f"stop {role}"):
            arena.cluster.freeze([part])
            done, after = await arena.ended(job, follower)

        assert await _none_alive([part.pid]), "nobody woke it: it was killed"
        assert worker.running, "the supervisor goes on"
        assert done.error is not None
        # Stopped in the middle of a write it holds SQLite's lock, and is ended with its lease; then it runs again.
        assert (done.state, done.error.reason) == (State.DEAD, "timeout")
        assert after.state is State.SUCCEEDED, "in the place of the stopped one there is another"
        await safe(arena, faults=1, executions=2)


@pytest.mark.proof
@pytest.mark.parametrize(("role", "kind"), [("runner", "doze"), ("host", "nap")])
async def test_a_runner_or_host_stopped_for_a_while_goes_on_and_nothing_runs_twice(role: Role, kind: str) -> None:
    async with Arena("sqlite", workers=2) as arena:
        job = await arena.submit(kind, seconds=1)
        worker, _ = await arena.owner(job)

        await paused(arena, f"stop {role}", [await arena.part(role, worker)])
        [done] = await arena.ended(job)

        assert (done.state, done.failures) == (State.SUCCEEDED, 0)
        await safe(arena, faults=1, executions=1)


async def test_only_the_task_is_stopped_and_its_timeout_ends_it() -> None:
    async with Arena("sqlite") as arena:
        job = await arena.submit("ignore", seconds=60)
        worker, task = await arena.owner(job)

        await paused(arena, "stop task", [task])
        [done] = await arena.ended(job)

        assert worker.running, "the supervisor kept its lease"
        assert done.error is not None
        assert (done.state, done.error.reason, done.token) == (State.DEAD, "timeout", 1)
        await safe(arena, faults=1, executions=1)


@pytest.mark.proof
async def test_a_task_stopped_for_less_than_its_timeout_goes_on_as_if_nothing_had_been() -> None:
    async with Arena("sqlite") as arena:
        job = await arena.submit("nap", seconds=1)
        _, task = await arena.owner(job)

        await paused(arena, "stop task", [task])
        [done] = await arena.ended(job)

        assert (done.state, done.token, done.losses) == (State.SUCCEEDED, 1, 0)
        await safe(arena, faults=1, executions=1)


async def _none_alive(pids: list[int]) -> bool:
    return all((process := look_at(pid)) is None or process.dead for pid in pids)
