"""Tasks that fork, hide, eat, flood, hang, and kill."""

import psutil
import pytest

from harness.arena import Arena
from harness.bodies import MOST_SECONDS
from harness.processes import Role
from tests.chaos.verdict import safe
from tidewheel.model.job import Job
from tidewheel.model.states import State

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

MEBIBYTE = 1024 * 1024
WITHOUT_USER_CODE: tuple[Role, ...] = ("supervisor", "host", "launcher")


def reason_of(job: Job) -> str | None:
    return None if job.error is None else job.error.reason


@pytest.mark.proof
async def test_a_hidden_daemon_dies_with_the_timeout_of_its_task() -> None:
    async with Arena("sqlite", workers=1) as arena:
        job = await arena.submit("spawn_daemon", seconds=60)

        [done] = await arena.ended(job)

        assert (done.state, reason_of(done)) == (State.DEAD, "timeout")
        assert len({record.pid for record in arena.evidence(job)}) == 2, "the daemon did tick"
        await safe(arena, executions=1)


@pytest.mark.proof
async def test_a_hidden_daemon_dies_with_the_cancellation_of_its_task() -> None:
    async with Arena("sqlite", workers=1) as arena:
        job = await arena.submit("spawn_daemon", seconds=60)
        await arena.runs(job)

        await arena.client.cancel(job)
        [done] = await arena.ended(job)

        assert done.state is State.CANCELLED
        await safe(arena, cancelled=1, executions=1)


async def test_a_daemon_does_not_outlive_the_success_of_its_task() -> None:
    async with Arena("sqlite", workers=1) as arena:
        job = await arena.submit("abandon_daemon", seconds=60)

        [done] = await arena.ended(job)

        assert done.state is State.SUCCEEDED
        await safe(arena, executions=1)


async def test_a_fork_bomb_leaves_nothing_behind_and_others_go_on() -> None:
    async with Arena("sqlite", workers=1) as arena:
        bomb = await arena.submit("fork_bomb", forks=300)
        others = [await arena.submit("nap", seconds=0.1) for _ in range(5)]

        [exploded, *done] = await arena.ended(bomb, *others)

        ends = ((State.SUCCEEDED, None), (State.DEAD, "timeout"))  # so many forks may take a slow machine too long
        assert (exploded.state, reason_of(exploded)) in ends
        assert (exploded.token, exploded.losses) == (1, 0), "it took nothing of the worker with it"
        assert {job.state for job in done} == {State.SUCCEEDED}
        assert arena.cluster.running
        await safe(arena, succeeded=5, executions=6)


async def test_a_task_that_eats_memory_dies_alone() -> None:
    async with Arena("sqlite", workers=1) as arena:
        supervisor = arena.cluster.running[0].supervisor
        hog = await arena.submit("hog", mebibytes=1024)
        other = await arena.submit("nap", seconds=2)

        [eaten, spared] = await arena.ended(hog, other)

        assert (eaten.state, reason_of(eaten)) == (State.DEAD, "oom")
        assert (spared.state, spared.token) == (State.SUCCEEDED, 1)
        assert arena.cluster.running[0].supervisor.name == supervisor.name
        await safe(arena, executions=2)


@pytest.mark.parametrize("kind", ["kill_parent", "kill_runner"])
async def test_a_poison_pill_is_quarantined_and_its_siblings_finish(kind: str) -> None:
    async with Arena("sqlite", workers=1) as arena:
        pill = await arena.submit(kind)
        siblings = [await arena.submit(kind, seconds=0.2) for kind in ("doze", "nap") for _ in range(3)]

        [poison, *done] = await arena.ended(pill, *siblings)

        assert (poison.state, reason_of(poison), poison.losses) == (State.DEAD, "quarantined", 3)
        assert {job.state for job in done} == {State.SUCCEEDED}
        if kind == "kill_runner":
            assert {job.losses for job in done} == {0}, "it is held against the one whose code it was, and nobody else"
        await safe(arena, executions=9)


@pytest.mark.parametrize("kind", ["spin", "ignore", "block", "cling"])
@pytest.mark.proof
async def test_a_task_that_never_ends_is_ended_by_its_timeout(kind: str) -> None:
    async with Arena("sqlite", workers=1) as arena:
        endless = await arena.submit(kind, seconds=MOST_SECONDS)
        other = await arena.submit("nap", seconds=0.2)

        [ended, spared] = await arena.ended(endless, other)

        assert (ended.state, reason_of(ended), ended.token) == (State.DEAD, "timeout", 1)
        assert (spared.state, spared.token) == (State.SUCCEEDED, 1)
        assert arena.cluster.running
        await safe(arena, executions=2)


@pytest.mark.proof
async def test_a_flood_of_filth_is_taken_without_drowning() -> None:
    async with Arena("sqlite", workers=1) as arena:
        worker = arena.cluster.running[0]
        flood = await arena.submit("flood", mebibytes=200)
        await arena.until(lambda: _seen(arena), "the flood to begin")
        most = 0

        while (await arena.store.get(flood)).finished_at is None:
            parts = [process for role in WITHOUT_USER_CODE for process in worker.parts(role)]
            most = max([most, *(_resident(process.pid) for process in parts)])

        [done] = await arena.ended(flood)
        assert done.state is State.SUCCEEDED
        assert 0 < most < 200 * MEBIBYTE
        await safe(arena, executions=1)


async def _seen(arena: Arena) -> bool:
    return bool(arena.evidence())


def _resident(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.NoSuchProcess:
        return 0
