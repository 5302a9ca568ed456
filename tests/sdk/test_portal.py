"""The loop in the background: forks, exits, threads, and calls that would wait for themselves."""

import asyncio
import multiprocessing
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tidewheel import App, Conflict, State
from tidewheel.sdk.portal import portal


def run(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


DECLARED = """
from tidewheel import App
app = App("sqlite:///jobs.db")
@app.task(name="task")
def task(a: int) -> int: return a
"""


def test_a_program_that_closes_nothing_ends_quietly_and_loses_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, DECLARED + "print(task.enqueue(1).state())")

    assert (done.stdout, done.stderr, done.returncode) == ("queued\n", "", 0)
    assert not (tmp_path / "jobs.db-wal").exists(), "the store was not closed"


def test_each_run_of_a_loop_may_use_the_app_without_opening_it(tmp_path: Path) -> None:
    program = """
import asyncio, threading
async def main(): return await task.aenqueue(1)
jobs = {asyncio.run(main()).id for _ in range(20)}
print(len(jobs), threading.active_count() < 10)
"""
    done = run(tmp_path, DECLARED + program)

    assert (done.stdout, done.stderr) == ("20 True\n", "")


def test_a_forked_child_and_its_parent_both_go_on(tmp_path: Path) -> None:
    program = """
import os, sys
first = task.enqueue(1)
if (child := os.fork()) == 0:
    print("child", task.enqueue(2).info().args, first.state(), flush=True)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
print("parent", task.enqueue(3).info().args)
"""
    done = run(tmp_path, DECLARED + program)

    assert (done.stdout, done.stderr) == ("child {'a': 2} queued\nparent {'a': 3}\n", "")


def test_a_parent_on_postgresql_goes_on_after_its_child_has_ended(tmp_path: Path, postgres_database: str) -> None:
    program = """
import os, sys
tasks = [task.enqueue(n) for n in range(3)]
for _ in range(3):
    if (child := os.fork()) == 0:
        print(task.enqueue(2).state(), flush=True)
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    print(tasks[0].state(), flush=True)
"""
    done = run(tmp_path, DECLARED.replace("sqlite:///jobs.db", postgres_database) + program)

    assert (done.stdout, done.stderr) == ("queued\n" * 6, "")


def _enqueue_in_pool(url: str) -> str:
    app = App(url)
    app.task(name="task")(_nothing)
    return str(app.job(app.enqueue_many([app.task(name="other")(_nothing).s()])[0].id).state())


def _nothing() -> None: ...


def test_processes_of_a_pool_may_enqueue(app: App, url: str) -> None:
    app.task(name="task")(_nothing).enqueue()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(_enqueue_in_pool, [url] * 2) == ["queued"] * 2


def test_many_threads_share_one_loop(app: App) -> None:
    task = app.task(name="task")(_nothing)
    with ThreadPoolExecutor(8) as pool:
        jobs = list(pool.map(lambda _: task.enqueue(), range(40)))

    assert len(set(jobs)) == 40
    assert [thread.name for thread in threading.enumerate()].count("tide-portal") == 1


async def test_a_synchronous_call_works_beside_a_running_loop(app: App) -> None:
    assert app.task(name="task")(_nothing).enqueue().state() is State.QUEUED


def test_a_call_that_would_wait_for_itself_is_refused(app: App) -> None:
    task = app.task(name="task")(_nothing)

    async def careless() -> None:
        task.enqueue()

    with pytest.raises(Conflict, match="await its async twin"):
        portal().run(careless())


def test_ctrl_c_ends_a_wait(tmp_path: Path) -> None:
    # A shell lets what it starts in the background ignore Ctrl-C, and so would whatever runs there.
    program = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
async def wait():
    print("waiting", flush=True)
    await job.aresult()
job = task.enqueue(1)
try:
    app.run(wait())
except KeyboardInterrupt:
    print(job.state())
"""
    with subprocess.Popen(
        [sys.executable, "-c", DECLARED + program], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as waiter:
        assert waiter.stdout is not None
        assert waiter.stdout.readline() == "waiting\n"
        waiter.send_signal(signal.SIGINT)
        assert waiter.communicate(timeout=60)[0] == "queued\n"


def test_a_closed_app_opens_again(app: App) -> None:
    job = app.task(name="task")(_nothing).enqueue()
    app.close()
    app.close()

    assert job.state() is State.QUEUED


async def test_a_call_that_is_cancelled_ends_on_the_other_loop_too(app: App) -> None:
    job = await app.task(name="task")(_nothing).aenqueue()
    waiter = asyncio.ensure_future(job.aresult())
    await job.astate()
    waiter.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiter
