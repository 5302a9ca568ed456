"""A task that takes too much harms itself alone."""

import asyncio
import os
import sys
from pathlib import Path

import psutil
import pytest

from tests.worker.executors.tools import (
    Remembering,
    begun,
    command,
    command_executor,
    ended,
    new_mark,
    order,
    outcome,
    process_executor,
    processes_with,
    result,
)
from tidewheel.worker.execution import End, Stream
from tidewheel.worker.executors.command import CommandExecutor
from tidewheel.worker.executors.output import RATE_WHEN_FULL
from tidewheel.worker.executors.process import ProcessExecutor
from tidewheel.worker.sandbox.layers import Grounds

MIB = 1 << 20


class Counting(Remembering):
    """Keeps nothing of the output, and never has enough."""

    def output(self, stream: Stream, data: bytes) -> None:  # noqa: ARG002 - either
        self.bytes_seen += len(data)


DOUBLINGS = 11
"""A bomb of 2 048 processes that go after a minute: enough to be stopped, and no danger to the machine if it is not."""


async def test_a_function_that_takes_more_memory_than_it_was_given_ends_as_oom(process: ProcessExecutor) -> None:
    ended_ = await outcome(process, order("hog", {"megabytes": 600}, memory=200 * MIB))

    assert ended_.end is End.OOM
    assert ended_.usage.peak_rss_bytes < 300 * MIB
    assert result(await outcome(process, order("hog", {"megabytes": 600}))) == 600 * MIB


async def test_the_memory_of_all_processes_of_a_task_counts(tmp_path: Path, grounds: Grounds) -> None:
    async with process_executor(tmp_path, grounds=grounds) as process:
        given = order("hog_in_children", {"megabytes": 150, "children": 3}, memory=400 * MIB)
        ended_ = await outcome(process, given)

    assert ended_.end is End.OOM
    assert str(400 * MIB) in ended_.message


async def test_a_command_that_takes_more_memory_than_it_was_given_ends_as_oom(tmp_path: Path, grounds: Grounds) -> None:
    script = "blocks = []\nwhile True: blocks.append(b'x' * (1 << 20))"
    async with command_executor(tmp_path, grounds=grounds) as commands:
        ended_ = await outcome(commands, command(sys.executable, "-c", script, memory=200 * MIB))

    assert ended_.end is End.OOM


async def test_a_task_within_its_memory_is_left_alone(process: ProcessExecutor) -> None:
    ended_ = await outcome(process, order("hog", {"megabytes": 50}, memory=400 * MIB))

    assert ended_.end is End.RETURNED


async def test_too_many_processes_end_their_task(tmp_path: Path, grounds: Grounds) -> None:
    mark = new_mark()
    script = "for number in $(seq 600); do sleep 600 & done; wait"
    async with command_executor(tmp_path, grounds=grounds) as commands:
        ended_ = await outcome(commands, command("/bin/sh", "-c", script, mark))

        assert (ended_.end, ended_.message) == (End.ERROR, "too many processes: more than 512")
        assert processes_with(mark) == []


@pytest.mark.chaos
async def test_a_fork_bomb_ends_and_nothing_of_it_is_left(tmp_path: Path, grounds: Grounds) -> None:
    _skip_if_unbounded(grounds)
    mark = new_mark()
    script = f"import os, time\nfor _ in range({DOUBLINGS}):\n try: os.fork()\n except OSError: pass\ntime.sleep(60)"
    async with command_executor(tmp_path, grounds=grounds) as commands:
        ended_ = await outcome(commands, command(sys.executable, "-c", script, mark))

        assert (ended_.end, ended_.message) == (End.ERROR, "too many processes: more than 512")
        assert processes_with(mark) == []
        assert (await outcome(commands, command("true"))).end is End.RETURNED


@pytest.mark.chaos
async def test_a_fork_bomb_in_a_function_leaves_other_runs_alone(tmp_path: Path, grounds: Grounds) -> None:
    _skip_if_unbounded(grounds)
    async with process_executor(tmp_path, grounds=grounds) as process:
        other, _ = await begun(process, order("until_cancelled"))
        bomb = await outcome(process, order("bomb"))
        other.stop(End.STOPPED, 60)

        assert (bomb.end, bomb.message) == (End.ERROR, "too many processes: more than 512")
        assert (await ended(other)).result == '"saw it"'


async def test_a_flood_of_output_is_read_in_chunks_and_slowed_down(commands: CommandExecutor) -> None:
    before = psutil.Process().memory_info().rss
    sink = Remembering(most=4 * MIB)
    execution = await commands.start(command("/bin/sh", "-c", "cat /dev/zero; exit"), sink)
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(60):
        while not sink.full:
            await sink.up.wait()
            sink.up.clear()
    at_full, began = sink.bytes_seen, loop.time()
    async with asyncio.timeout(60):
        while loop.time() - began < 1:
            await sink.up.wait()
            sink.up.clear()
    rate = (sink.bytes_seen - at_full) / (loop.time() - began)
    execution.stop(End.STOPPED, 0)
    await ended(execution)
    execution.close()

    assert sink.largest <= 64 * 1024
    assert rate < 2 * RATE_WHEN_FULL
    assert psutil.Process().memory_info().rss - before < 50 * MIB


@pytest.mark.slow
async def test_hundreds_of_megabytes_of_output_cost_the_host_no_memory(process: ProcessExecutor) -> None:
    before = psutil.Process().memory_info().rss
    sink = Counting(most=1 << 40)
    ended_ = await outcome(process, order("flood", {"megabytes": 300}), sink)

    assert ended_.end is End.RETURNED
    assert sink.bytes_seen == 300 * MIB
    assert psutil.Process().memory_info().rss - before < 50 * MIB


async def test_a_log_flood_is_slowed_down(process: ProcessExecutor) -> None:
    sink = Remembering(most=0)
    execution = await process.start(order("log_flood"), sink)
    loop = asyncio.get_running_loop()
    await asyncio.wait_for(_until_time(loop, 1.0), 60)
    seen = len(sink.logs)
    execution.stop(End.STOPPED, 0)
    await ended(execution)
    execution.close()

    assert 0 < seen * 1000 < 8 * MIB


def _skip_if_unbounded(grounds: Grounds) -> None:
    if os.getuid() == 0 and not grounds.namespaces:
        pytest.skip("the kernel sets no bound to the processes of root but in a namespace")


async def _until_time(loop: asyncio.AbstractEventLoop, seconds: float) -> None:
    passed: asyncio.Future[None] = loop.create_future()
    loop.call_later(seconds, passed.set_result, None)
    await passed
