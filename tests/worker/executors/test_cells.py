"""Cells are used again, and nothing of one command reaches the next."""

import os
import signal
from pathlib import Path

import pytest

from tests.worker.executors.tools import Remembering, begun, command, ended, names_in, order, outcome, result
from tidewheel.model.outcome import Usage
from tidewheel.worker.execution import End
from tidewheel.worker.executors import scratch
from tidewheel.worker.executors.cells import MAX_COMMANDS
from tidewheel.worker.executors.command import CommandExecutor
from tidewheel.worker.executors.underway import end_by_signal


async def _cell(commands: CommandExecutor, isolation: str = "standard") -> int | None:
    """Return which cell serves the next command."""
    execution = await commands.start(command("true", isolation=isolation), Remembering())
    assert (await ended(execution)).end is End.RETURNED
    execution.close()
    return execution.holder.pid  # type: ignore[attr-defined,no-any-return]


async def test_a_cell_is_used_again(commands: CommandExecutor) -> None:
    assert await _cell(commands) == await _cell(commands)


async def test_a_strict_cell_serves_one_command(commands: CommandExecutor) -> None:
    assert await _cell(commands, "strict") != await _cell(commands, "strict")


async def test_a_cell_is_replaced_after_many_commands(commands: CommandExecutor) -> None:
    first = await _cell(commands)
    [cell] = commands._idle._members
    cell._commands = MAX_COMMANDS - 1

    assert await _cell(commands) == first
    assert await _cell(commands) != first


async def test_a_cell_is_not_used_again_after_a_command_in_it_was_stopped_or_paused(commands: CommandExecutor) -> None:
    first = await _cell(commands)
    execution, _ = await begun(commands, command("/bin/sh", "-c", "echo up; exec sleep 600"))
    assert execution.holder.pid == first  # type: ignore[attr-defined]
    execution.stop(End.STOPPED, 60)
    await ended(execution)

    assert await _cell(commands) != first


async def test_a_command_that_cannot_be_executed_costs_no_cell(commands: CommandExecutor) -> None:
    first = await _cell(commands)
    assert (await outcome(commands, command("no-such-program"))).end is End.FATAL
    assert (await outcome(commands, order("command", {}))).end is End.FATAL

    assert await _cell(commands) == first


async def test_a_cell_that_dies_while_it_waits_is_replaced(commands: CommandExecutor) -> None:
    first = await _cell(commands)
    [cell] = commands._idle._members
    assert cell.pid is not None
    os.kill(cell.pid, signal.SIGKILL)
    await cell.ended()

    assert await _cell(commands) != first


async def test_output_files_are_out_of_the_reach_of_the_next_command(commands: CommandExecutor) -> None:
    first = await commands.start(command("/bin/sh", "-c", "echo kept > $TIDE_OUTPUT_DIR/out"), Remembering())
    kept = (await ended(first)).files["out"]
    attack = f"echo spoiled > {kept} || chmod 777 {kept.parent} || rm -rf {kept.parent}; ls -A; ls -A .."
    second = await outcome(commands, command("/bin/sh", "-c", attack))

    assert result(second)["output"] == "output\nrun\n"
    assert kept.read_text() == "kept\n"
    first.close()
    await scratch.settled()
    assert not kept.exists()


async def test_the_memory_bound_of_one_command_is_not_the_next_ones(commands: CommandExecutor) -> None:
    bounded = await outcome(commands, command("/bin/sh", "-c", "ulimit -d", memory=1 << 30))
    free = await outcome(commands, command("/bin/sh", "-c", "ulimit -d"))

    assert int(result(bounded)["output"]) == 2 << 20  # in KiB: the bound and a slack of 1 GiB
    assert result(free)["output"] == "unlimited\n"


async def test_usage_is_of_one_command_and_not_of_all_in_its_cell(commands: CommandExecutor) -> None:
    busy = await outcome(commands, command("/bin/sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"))
    idle = await outcome(commands, command("true"))

    assert idle.usage.cpu_seconds < busy.usage.cpu_seconds / 2


async def test_closing_leaves_no_directory(commands: CommandExecutor, tmp_path: Path) -> None:
    await outcome(commands, command("true"))
    await outcome(commands, command("touch", "x"))
    await commands.close()

    assert names_in(tmp_path) == []


@pytest.mark.parametrize(("kills", "end"), [(0, End.SIGNAL), (1, End.OOM)])
def test_a_kill_that_was_not_ours_is_oom_if_the_kernel_killed_for_want_of_memory(kills: int, end: End) -> None:
    judged = end_by_signal(-signal.SIGKILL, Usage(), oom_kills=lambda: kills)

    assert judged is not None
    assert judged.end is end
