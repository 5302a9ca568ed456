"""Workers are asked to end."""

import signal
from pathlib import Path

import pytest

from harness.arena import Arena, StoreName
from tests.chaos.verdict import BOTH, safe
from tidewheel.model.states import State

pytestmark = [pytest.mark.chaos, pytest.mark.proof]


@BOTH
async def test_a_worker_that_is_asked_to_end_loses_nothing_and_waits_for_no_lease(store: StoreName) -> None:
    async with Arena(store) as arena:
        short = [await arena.submit(kind, seconds=0.5) for kind in ("doze", "nap", "command") for _ in range(2)]
        long = [await arena.submit(kind, seconds=8) for kind in ("doze", "nap")]
        worker, _ = await arena.owner(long[0])

        arena.cluster.signal([worker.supervisor], signal.SIGTERM)
        await arena.until(lambda: _ended(worker.pid, arena), "the worker to end")
        done = await arena.ended(*short, *long)

        assert {job.state for job in done} == {State.SUCCEEDED}
        assert sum(job.losses for job in done) == 0, "what was given back was not lost"
        await safe(arena, succeeded=8)


async def test_a_second_signal_hurries_and_still_loses_nothing() -> None:
    async with Arena("sqlite") as arena:
        jobs = [await arena.submit(kind, seconds=10) for kind in ("doze", "ignore")]
        worker, _ = await arena.owner(jobs[0])

        arena.cluster.signal([worker.supervisor], signal.SIGTERM)
        await arena.until(lambda: _has_heard(worker.pid), "the first signal to be delivered")
        arena.cluster.signal([worker.supervisor], signal.SIGTERM)
        await arena.until(lambda: _ended(worker.pid, arena), "the worker to end")

        [done, _] = await arena.ended(*jobs)
        assert done.state is State.SUCCEEDED
        await safe(arena, executions=3)


async def _ended(pid: int, arena: Arena) -> bool:
    return pid not in {worker.pid for worker in arena.cluster.running}


async def _has_heard(pid: int) -> bool:
    return not _is_pending(pid, signal.SIGTERM)


def _is_pending(pid: int, number: signal.Signals) -> bool:
    """Tell whether a signal has not come yet: a second one would be one with it."""
    status = Path(f"/proc/{pid}/status").read_text()
    pending = next(line for line in status.splitlines() if line.startswith("ShdPnd:"))
    return bool(int(pending.split()[1], 16) >> (number - 1) & 1)
