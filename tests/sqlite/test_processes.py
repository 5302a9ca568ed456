"""Several processes on one file, processes that die in the middle of a write, and processes that fork."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from tests.builders import HOUR, a_claim, a_worker, outcome_of
from tests.contract.steps import check_conserved, everything
from tidewheel.clock import SystemClock
from tidewheel.model.outcome import Verdict
from tidewheel.store.base import JobFilter
from tidewheel.store.sqlite import check, open_store

SUBMIT = """
import asyncio, sys
from tidewheel.model.job import JobSpec
from tidewheel.store.sqlite import open_store

async def main(path, rounds):
    store = await open_store(path)
    async def one(n):
        for _ in range(rounds):
            for answer in await store.submit([JobSpec(kind=f"k{n}", args={"x": "y" * 200})] * 3):
                print(answer.job_id, flush=True)
    await asyncio.gather(*(one(n) for n in range(8)))
    await store.close()

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""

WORK = """
import asyncio, sys
from tidewheel.model.outcome import Outcome
from tidewheel.model.states import Cause
from tidewheel.model.worker import WorkerSpec
from tidewheel.store.base import ClaimRequest
from tidewheel.store.sqlite import open_store

async def main(path):
    store = await open_store(path)
    worker = await store.register(WorkerSpec(name="w"))
    idle = 0
    while idle < 20:
        runs = (await store.claim(ClaimRequest(worker_id=worker.id, limit=7))).runs
        idle = 0 if runs else idle + 1
        for run in runs:
            print(run.job_id, flush=True)
        await store.settle(worker.id, [Outcome(run.job_id, run.token, Cause.RETURNED) for run in runs])
    await store.deregister(worker.id)
    await store.close()

asyncio.run(main(sys.argv[1]))
"""

FORK = """
import asyncio, os, sys
from tidewheel.errors import Unavailable
from tidewheel.model.job import JobSpec
from tidewheel.store.sqlite import open_store

async def use(store):
    for call in (store.submit([JobSpec(kind="k")]), store.workers()):
        try:
            await call
        except Unavailable as error:
            assert "forked" in str(error), error
        else:
            raise AssertionError("the store was used in a child")
    await store.close()

with asyncio.Runner() as runner:
    store = runner.run(open_store(sys.argv[1]))
    runner.run(store.submit([JobSpec(kind="before")]))
    child = os.fork()
    if not child:
        asyncio.run(use(store))
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    runner.run(store.submit([JobSpec(kind="after")]))
    runner.run(store.close())
"""


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def told(process: subprocess.Popen[str]) -> list[UUID]:
    output, _ = process.communicate(timeout=60)
    return [UUID(line) for line in output.split()]


def kill_after(process: subprocess.Popen[str], lines: int) -> list[UUID]:
    """Let a process tell something, kill it at once, and return all that it told."""
    assert process.stdout is not None
    heard = [process.stdout.readline() for _ in range(lines)]
    process.kill()
    heard += process.stdout.readlines()
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()
    return [UUID(line.strip()) for line in heard if line.endswith("\n")]


@pytest.mark.slow
async def test_processes_share_a_file_and_each_job_runs_once(path: Path) -> None:
    submitters = [start(SUBMIT, path, 10) for _ in range(2)]
    workers = [start(WORK, path) for _ in range(2)]
    submitted = [job_id for process in submitters for job_id in told(process)]
    ran = [job_id for process in workers for job_id in told(process)]
    assert all(process.returncode == 0 for process in (*submitters, *workers))
    assert len(set(submitted)) == 2 * 8 * 10 * 3
    assert len(set(ran)) == len(ran)
    store = await open_store(path)
    await check_conserved(store, submitted)
    assert set(ran) <= set(submitted)
    await store.close()
    assert check(path) == 1


@pytest.mark.chaos
@pytest.mark.parametrize("lines", [1, 40, 200])
async def test_a_killed_writer_loses_nothing_that_it_acknowledged(path: Path, lines: int) -> None:
    acknowledged = kill_after(start(SUBMIT, path, 100_000), lines)
    store = await open_store(path)
    stored = {job.id for job in await everything(store, page=1000)}
    assert set(acknowledged) <= stored
    assert len(stored) % 3 == 0, "every batch is stored whole or not at all"
    worker = await store.register(a_worker(ttl=HOUR))
    runs = (await store.claim(a_claim(worker.id, 10))).runs
    verdicts = await store.settle(worker.id, [outcome_of(run) for run in runs])
    assert set(verdicts) <= {Verdict.ACCEPTED}
    await store.close()
    assert check(path) == 1


@pytest.mark.chaos
async def test_a_process_killed_beside_us_leaves_us_at_work(path: Path) -> None:
    store = await open_store(path, SystemClock())
    acknowledged = kill_after(start(SUBMIT, path, 100_000), 60)
    assert len((await store.find(JobFilter(), limit=60)).jobs) == 60
    stored = {job.id for job in await everything(store, page=1000)}
    assert set(acknowledged) <= stored
    await store.close()
    assert check(path) == 1


def test_a_store_is_refused_in_a_process_that_was_forked_off(path: Path) -> None:
    environment = {**os.environ, "PYTHONWARNINGS": "ignore::DeprecationWarning"}
    done = subprocess.run([sys.executable, "-c", FORK, str(path)], env=environment, timeout=60, check=False)
    assert done.returncode == 0
    assert check(path) == 1
