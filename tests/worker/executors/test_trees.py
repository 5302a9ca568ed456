"""Nothing of a run outlives it: not after a return, a stop, a time-out, a crash, or the death of the launcher."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.worker.executors.tools import (
    begun,
    child_of,
    command,
    command_executor,
    ended,
    new_mark,
    order,
    outcome,
    process_executor,
    processes_with,
    result,
    until,
)
from tidewheel.worker.execution import End
from tidewheel.worker.sandbox import tree
from tidewheel.worker.sandbox.layers import Grounds

DAEMON = (
    "import os, signal, sys, time\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    if os.fork() == 0:\n"
    "        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(number, signal.SIG_IGN)\n"
    "        os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(600)', sys.argv[1]])\n"
    "    os._exit(0)\n"
    "os.wait()\n"
)
STAY = "print('up', flush=True); time.sleep(600)\n"


async def test_a_daemon_that_a_function_leaves_is_gone_when_it_returns(tmp_path: Path, grounds: Grounds) -> None:
    mark = new_mark()
    async with process_executor(tmp_path, grounds=grounds) as process:
        ended_ = await outcome(process, order("leave_daemon", {"mark": mark, "stay": False}))

        assert ended_.end is End.RETURNED
        assert processes_with(mark) == []
        assert result(await outcome(process, order("add", {"a": 1}))) == 11


@pytest.mark.parametrize("end", [End.TIMEOUT, End.STOPPED])
async def test_a_daemon_is_gone_when_its_function_is_stopped(tmp_path: Path, grounds: Grounds, end: End) -> None:
    mark = new_mark()
    async with process_executor(tmp_path, grounds=grounds) as process:
        execution, _ = await begun(process, order("leave_daemon", {"mark": mark, "stay": True}))
        await until(lambda: processes_with(mark), "the daemon runs")
        execution.stop(end, 0.1)

        assert (await ended(execution)).end is end
        assert processes_with(mark) == []


async def test_a_daemon_that_a_command_leaves_is_gone_when_it_exits(tmp_path: Path, grounds: Grounds) -> None:
    mark = new_mark()
    async with command_executor(tmp_path, grounds=grounds) as commands:
        ended_ = await outcome(commands, command(sys.executable, "-c", DAEMON, mark))

        assert ended_.end is End.RETURNED
        assert processes_with(mark) == []


@pytest.mark.parametrize("end", [End.TIMEOUT, End.STOPPED])
async def test_a_daemon_is_gone_when_its_command_is_stopped(tmp_path: Path, grounds: Grounds, end: End) -> None:
    mark = new_mark()
    async with command_executor(tmp_path, grounds=grounds) as commands:
        execution, _ = await begun(commands, command(sys.executable, "-c", DAEMON + STAY, mark))
        await until(lambda: processes_with(mark), "the daemon runs")
        execution.stop(end, 0.1)

        assert (await ended(execution)).end is end
        assert processes_with(mark) == []


async def test_a_daemon_is_gone_when_its_function_crashes(tmp_path: Path, grounds: Grounds) -> None:
    mark = new_mark()
    async with process_executor(tmp_path, grounds=grounds) as process:
        execution, _ = await begun(process, order("leave_daemon", {"mark": mark, "stay": True}))
        await until(lambda: processes_with(mark), "the daemon runs")
        os.kill(child_of(_root(execution)), signal.SIGSEGV)

        assert (await ended(execution)).end is End.SIGNAL
        assert processes_with(mark) == []


async def test_everything_is_gone_when_the_launcher_is_killed_and_a_new_one_serves(
    tmp_path: Path, grounds: Grounds
) -> None:
    mark, other = new_mark(), new_mark()
    async with process_executor(tmp_path, grounds=grounds) as process:
        first, _ = await begun(process, order("leave_daemon", {"mark": mark, "stay": True}))
        second, _ = await begun(process, order("leave_daemon", {"mark": other, "stay": True}))
        await until(lambda: processes_with(mark) and processes_with(other), "the daemons run")
        os.kill((await process._launchers.get()).pid, signal.SIGKILL)

        assert [(await ended(run)).end for run in (first, second)] == [End.SIGNAL, End.SIGNAL]
        assert processes_with(mark) + processes_with(other) == []
        assert result(await outcome(process, order("add", {"a": 1}))) == 11


async def test_commands_are_gone_when_the_launcher_is_killed(tmp_path: Path, grounds: Grounds) -> None:
    mark = new_mark()
    async with command_executor(tmp_path, grounds=grounds) as commands:
        execution, _ = await begun(commands, command(sys.executable, "-c", DAEMON + STAY, mark))
        await until(lambda: processes_with(mark), "the daemon runs")
        os.kill((await commands._launchers.get()).pid, signal.SIGKILL)

        assert (await ended(execution)).end is End.SIGNAL
        assert processes_with(mark) == []
        assert (await outcome(commands, command("true"))).end is End.RETURNED


@pytest.mark.parametrize("isolation", ["none", "standard"])
async def test_a_stopped_function_is_gone_with_its_launcher_though_nobody_wakes_it(
    tmp_path: Path, grounds: Grounds, isolation: str
) -> None:
    mark = new_mark()
    async with process_executor(tmp_path, grounds=grounds) as process:
        given = order("leave_daemon", {"mark": mark, "stay": True}, isolation=isolation)
        execution, _ = await begun(process, given)
        await until(lambda: processes_with(mark), "the daemon runs")
        stopped = _stopped((await process._launchers.get()).pid)
        os.kill(stopped[0], signal.SIGKILL)

        await until(lambda: not [pid for pid in stopped if _lives(pid)], "all of it is gone")
        assert processes_with(mark) == []
        assert (await ended(execution)).end is End.SIGNAL


@pytest.mark.parametrize("isolation", ["none", "standard"])
async def test_a_stopped_command_is_gone_with_its_launcher_though_nobody_wakes_it(
    tmp_path: Path, grounds: Grounds, isolation: str
) -> None:
    mark = new_mark()
    async with command_executor(tmp_path, grounds=grounds) as commands:
        execution, _ = await begun(commands, command(sys.executable, "-c", DAEMON + STAY, mark, isolation=isolation))
        await until(lambda: len(processes_with(mark)) == 2, "the daemon runs")
        stopped = _stopped((await commands._launchers.get()).pid)
        os.kill(stopped[0], signal.SIGKILL)

        await until(lambda: not [pid for pid in stopped if _lives(pid)], "all of it is gone")
        assert processes_with(mark) == []
        assert (await ended(execution)).end is End.SIGNAL


async def test_a_tree_that_was_stopped_and_woken_goes_on(tmp_path: Path, grounds: Grounds) -> None:
    async with process_executor(tmp_path, grounds=grounds) as process:
        execution, _ = await begun(process, order("until_cancelled"))
        for pid in _stopped((await process._launchers.get()).pid):
            os.kill(pid, signal.SIGCONT)
        execution.stop(End.STOPPED, 60)

        assert (await ended(execution)).result == '"saw it"'


async def test_a_command_dies_with_the_root_of_its_tree(tmp_path: Path, grounds: Grounds) -> None:
    mark = new_mark()
    async with command_executor(tmp_path, grounds=grounds) as commands:
        execution, _ = await begun(commands, command(sys.executable, "-c", "import time\n" + STAY, mark))
        os.kill(_root(execution), signal.SIGKILL)

        assert (await ended(execution)).end is End.SIGNAL
        await until(lambda: processes_with(mark) == [], "it is gone")


async def test_a_function_dies_with_the_root_of_its_tree(tmp_path: Path, grounds: Grounds) -> None:
    async with process_executor(tmp_path, grounds=grounds) as process:
        execution, _ = await begun(process, order("until_cancelled"))
        runner = child_of(_root(execution))
        os.kill(_root(execution), signal.SIGKILL)

        assert (await ended(execution)).end is End.SIGNAL
        await until(lambda: not _lives(runner), "it is gone")


async def test_closing_an_executor_ends_what_runs(tmp_path: Path, grounds: Grounds) -> None:
    mark = new_mark()
    async with process_executor(tmp_path, grounds=grounds) as process:
        execution, _ = await begun(process, order("leave_daemon", {"mark": mark, "stay": True}))
        await until(lambda: processes_with(mark), "the daemon runs")

    assert (await ended(execution)).end is End.SIGNAL
    assert processes_with(mark) == []


async def test_without_isolation_a_daemon_is_gone_as_well(tmp_path: Path) -> None:
    mark = new_mark()
    async with command_executor(tmp_path) as commands:
        ended_ = await outcome(commands, command(sys.executable, "-c", DAEMON, mark, isolation="none"))

        assert set(ended_.usage.isolation) == {"session", "subreaper", "scratch", "environment"}
        assert processes_with(mark) == []


async def test_pausing_stops_all_processes_and_resuming_lets_them_go_on(tmp_path: Path, grounds: Grounds) -> None:
    script = (
        "import os, threading\n"
        "if os.fork() == 0: os.setsid()\n"
        "print('up', flush=True)\n"
        "while True: threading.Event().wait(0.01)\n"
    )
    mark = new_mark()
    async with command_executor(tmp_path, grounds=grounds) as commands:
        execution, _ = await begun(commands, command(sys.executable, "-c", script, mark))
        await until(lambda: len(processes_with(mark)) == 2, "both run")

        execution.pause()
        await until(lambda: [_state(pid) for pid in processes_with(mark)] == ["T", "T"], "both are stopped")
        execution.resume()
        await until(lambda: "T" not in [_state(pid) for pid in processes_with(mark)], "both go on")
        execution.pause()
        execution.stop(End.STOPPED, 60)  # also reaches what is paused, and lets it hear

        assert (await ended(execution)).end is End.STOPPED


async def test_a_paused_function_goes_on_where_it_was(tmp_path: Path, grounds: Grounds) -> None:
    async with process_executor(tmp_path, grounds=grounds) as process:
        execution, _ = await begun(process, order("until_cancelled"))
        runner = child_of(_root(execution))
        execution.pause()
        await until(lambda: _state(runner) == "T", "it is stopped")
        execution.resume()
        await until(lambda: _state(runner) != "T", "it goes on")
        execution.stop(End.STOPPED, 60)

        assert (await ended(execution)).result == '"saw it"'


def _root(execution: object) -> int:
    root = execution.holder.pid  # type: ignore[attr-defined]
    assert isinstance(root, int)
    return root


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"


def _stopped(root: int) -> list[int]:
    """Stop a process and all below it, and return them once they are."""
    pids = [root, *tree.descendants(root)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    while {_state(pid) for pid in pids} != {"T"}:
        os.sched_yield()
    return pids


def _lives(pid: int) -> bool:
    return _state(pid) not in ("gone", "Z")
