"""Runners are used again, and replaced when they should be."""

import asyncio
import errno
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.worker.executors import sample_app
from tests.worker.executors.tools import Remembering, begun, ended, names_in, order, outcome, process_executor, result
from tidewheel.worker.execution import End, Execution
from tidewheel.worker.executors import scratch
from tidewheel.worker.executors.groups import Groups
from tidewheel.worker.executors.launching import Tree
from tidewheel.worker.executors.process import ProcessExecutor
from tidewheel.worker.launcher.runner import MAX_JOBS
from tidewheel.worker.sandbox.layers import Grounds


async def _runner(process: ProcessExecutor) -> int:
    """Return which tree serves the next run."""
    execution = await process.start(order("nothing"), _Deaf())
    await ended(execution)
    execution.close()
    return execution.holder.number  # type: ignore[attr-defined,no-any-return]


class _Deaf:
    def output(self, stream: str, data: bytes) -> None: ...
    def log(self, level: str, text: str) -> None: ...
    def progress(self, fraction: float, message: str) -> None: ...
    def checkpoint(self, data: str) -> None: ...


async def test_a_runner_is_used_again(process: ProcessExecutor) -> None:
    assert await _runner(process) == await _runner(process)


async def test_a_runner_that_a_function_spoiled_is_not_used_again(process: ProcessExecutor) -> None:
    for how in sample_app.WAYS_TO_SPOIL:
        before = await _runner(process)
        execution = await process.start(order("spoil", {"how": how}), _Deaf())
        spoiled = await ended(execution)
        execution.close()
        sink = Remembering()
        await outcome(process, order("print_and_go", {"text": how}), sink)

        assert (spoiled.end, spoiled.message) == (End.RETURNED, ""), how
        assert sink.said["stdout"].decode().strip() == how
        assert await _runner(process) != before, how


@pytest.mark.parametrize("times", [1, 2])
async def test_a_runner_that_is_larger_than_a_run_may_become_is_replaced(
    process: ProcessExecutor, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """The kernel refuses a bound that is below what is there: memory that others have left is no fault of this run."""
    before = await _runner(process)
    bound, refused = Groups.bound, list[Tree]()

    async def refuse(self: Groups, holder: Tree, memory: int | None) -> Any:
        if len(refused) < times:
            refused.append(holder)
            raise OSError(errno.EBUSY, "busy")
        return await bound(self, holder, memory)

    monkeypatch.setattr(Groups, "bound", refuse)
    assert (await outcome(process, order("nothing"))).end is (End.RETURNED if times == 1 else End.ERROR)
    await asyncio.wait([holder.gone for holder in refused])
    assert await _runner(process) != before


@pytest.mark.parametrize("left", [300, 120], ids=["more than its bound", "what would leave it too little"])
async def test_what_others_left_in_memory_is_not_held_against_a_run_where_there_are_no_control_groups(
    tmp_path: Path, left: int
) -> None:
    async with process_executor(tmp_path, slots=1, grounds=Grounds(cgroups=False)) as process:
        before = await _runner(process)
        assert (await outcome(process, order("grow", {"megabytes": left}))).end is End.RETURNED
        assert await _runner(process) == before, "without a bound it is as good as any"

        bounded = await outcome(process, order("hog", {"megabytes": 120}, memory=200 << 20))

        assert (bounded.end, bounded.message) == (End.RETURNED, "")
        assert bounded.usage.peak_rss_bytes < 200 << 20
        fresh = await _runner(process)
        assert (await outcome(process, order("nothing", memory=200 << 20))).end is End.RETURNED
        assert await _runner(process) == fresh != before, "one that nobody made large is used again"


async def test_runs_at_the_same_time_have_runners_of_their_own(process: ProcessExecutor) -> None:
    runs = [(await begun(process, order("until_cancelled")))[0] for _ in range(2)]
    for run in runs:
        run.stop(End.STOPPED, 60)

    assert [(await ended(run)).end for run in runs] == [End.STOPPED, End.STOPPED]
    assert len({run.holder.number for run in runs}) == 2  # type: ignore[attr-defined]


async def test_a_function_sees_that_it_was_asked_to_stop(process: ProcessExecutor) -> None:
    execution, _ = await begun(process, order("until_cancelled"))
    execution.stop(End.STOPPED, 60)
    ended_ = await ended(execution)

    assert (ended_.end, ended_.result) == (End.STOPPED, '"saw it"')


async def test_what_does_not_listen_is_killed_after_the_grace(process: ProcessExecutor) -> None:
    for kind in ("deaf", "spin"):
        execution, _ = await begun(process, order(kind))
        execution.stop(End.TIMEOUT, 0.05)

        assert (await ended(execution)).end is End.TIMEOUT


async def test_a_second_stop_may_shorten_the_grace(process: ProcessExecutor) -> None:
    execution, _ = await begun(process, order("deaf"))
    execution.stop(End.STOPPED, 600)
    execution.stop(End.TIMEOUT, 0)

    assert (await ended(execution)).end is End.STOPPED


async def test_a_stop_after_the_end_changes_nothing(process: ProcessExecutor) -> None:
    execution = await process.start(order("add", {"a": 1}), _Deaf())
    first = await ended(execution)
    execution.stop(End.TIMEOUT, 0)
    execution.pause()
    execution.resume()
    execution.pause()

    assert await ended(execution) is first
    assert result(await outcome(process, order("add", {"a": 2}))) == 12


async def test_a_stop_never_reaches_the_next_run_of_the_same_runner(process: ProcessExecutor) -> None:
    for _ in range(30):
        execution = await process.start(order("nothing"), _Deaf())
        execution.stop(End.STOPPED, 60)
        assert (await ended(execution)).end is End.STOPPED
        assert (await outcome(process, order("add", {"a": 1}))).end is End.RETURNED


@pytest.mark.parametrize("word", ["stop", "pause"])
async def test_what_is_said_at_the_very_end_never_reaches_the_next_run(process: ProcessExecutor, word: str) -> None:
    class Late(_Deaf):
        execution: Execution

        def progress(self, fraction: float, message: str) -> None:  # noqa: ARG002 - only the moment counts
            if word == "stop":
                self.execution.stop(End.STOPPED, 60)
            else:
                self.execution.pause()
                self.execution.resume()
                self.execution.pause()

    for _ in range(20):
        sink = Late()
        sink.execution = await process.start(order("report_and_return"), sink)
        if word == "stop":
            await ended(sink.execution)
        else:
            sink.execution.stop(End.STOPPED, 0.2)
            await ended(sink.execution)
        assert result(await outcome(process, order("report_and_return"))) is False


async def test_a_pause_never_reaches_the_next_run_of_the_same_runner(process: ProcessExecutor) -> None:
    for _ in range(10):
        execution = await process.start(order("nothing"), _Deaf())
        execution.pause()
        execution.resume()
        assert (await ended(execution)).end is End.RETURNED
        assert (await outcome(process, order("add", {"a": 1}))).end is End.RETURNED


async def test_a_runner_with_a_thread_left_in_it_is_replaced(process: ProcessExecutor) -> None:
    before = await _runner(process)
    assert (await outcome(process, order("leave_thread"))).end is End.RETURNED

    assert await _runner(process) != before


async def test_a_runner_with_a_thread_left_in_it_that_threading_does_not_know_is_replaced(
    process: ProcessExecutor,
) -> None:
    before = await _runner(process)
    assert (await outcome(process, order("leave_low_thread"))).end is End.RETURNED

    assert await _runner(process) != before


async def test_a_runner_whose_threads_have_ended_is_used_again(process: ProcessExecutor) -> None:
    before = await _runner(process)
    for _ in range(50):
        assert (await outcome(process, order("use_threads"))).end is End.RETURNED

    assert await _runner(process) == before


async def test_a_runner_is_used_again_after_a_job_with_a_bound(process: ProcessExecutor) -> None:
    before = await _runner(process)
    assert (await outcome(process, order("nothing", memory=1 << 30))).end is End.RETURNED

    assert await _runner(process) == before


@pytest.mark.parametrize("how", sample_app.ODD_STREAMS)
async def test_whatever_a_function_leaves_as_its_output_stream_it_has_returned(
    process: ProcessExecutor, how: str
) -> None:
    sink = Remembering()
    ended_ = await outcome(process, order("put_odd_stream", {"how": how}), sink)
    after = Remembering()
    await outcome(process, order("print_and_go", {"text": "next"}), after)

    assert (ended_.end, ended_.result, sink.said["stdout"].decode()) == (End.RETURNED, f'"{how}"', f"{how}\n"), ended_
    assert after.said["stdout"] == b"next\n"


async def test_a_runner_that_has_become_large_is_replaced(process: ProcessExecutor) -> None:
    before = await _runner(process)
    assert (await outcome(process, order("grow", {"megabytes": 600}))).end is End.RETURNED

    assert await _runner(process) != before


async def test_a_runner_is_replaced_after_many_jobs(process: ProcessExecutor) -> None:
    before = await _runner(process)
    for _ in range(MAX_JOBS - 1):
        assert (await outcome(process, order("nothing"))).end is End.RETURNED

    assert await _runner(process) != before


async def test_a_runner_that_dies_while_it_waits_is_replaced(process: ProcessExecutor) -> None:
    before = await _runner(process)
    [child] = process._idle._members
    assert child.tree.pid is not None
    os.kill(child.tree.pid, signal.SIGKILL)
    async with asyncio.timeout(60):
        await child.ended()

    assert await _runner(process) != before


async def test_there_are_never_more_runners_than_slots(tmp_path: Path) -> None:
    async with process_executor(tmp_path, slots=2) as process:
        for isolation in ("standard", "strict", "none", "standard", "strict"):
            ended_ = await outcome(process, order("add", {"a": 1}, isolation=isolation))
            assert ended_.end is End.RETURNED, ended_
            assert len(process._idle) <= len(process._children) <= 2


async def test_what_a_task_changes_in_its_process_is_set_back(process: ProcessExecutor) -> None:
    before = result(await outcome(process, order("who")))
    await outcome(process, order("spoil_environment"))
    known = result(await outcome(process, order("who")))

    assert known["environment"] == before["environment"]
    assert known["cwd"] == known["environment"]["HOME"]


async def test_a_task_that_begins_does_not_push_the_worker_aside(process: ProcessExecutor) -> None:
    assert result(await outcome(process, order("who")))["policy"] == os.SCHED_BATCH


async def test_scratch_files_are_gone_and_output_files_are_kept_until_close(
    process: ProcessExecutor, tmp_path: Path
) -> None:
    assert (await outcome(process, order("leave_file", {"name": "note", "text": "x"}))).end is End.RETURNED
    execution = await process.start(order("leave_output", {"name": "a/b.txt", "text": "kept"}), _Deaf())
    ended_ = await ended(execution)

    assert {name: path.read_text() for name, path in ended_.files.items()} == {"a/b.txt": "kept"}
    known = result(await outcome(process, order("who")))
    assert not ended_.files["a/b.txt"].is_relative_to(known["cwd"])

    execution.close()
    await process.close()
    assert names_in(tmp_path) == []


async def test_a_runner_goes_on_after_what_a_run_left_was_removed(process: ProcessExecutor) -> None:
    before = await _runner(process)
    for _ in range(3):
        assert (await outcome(process, order("leave_file", {"name": "note", "text": "x"}))).end is End.RETURNED
        await scratch.settled()

    assert await _runner(process) == before


async def test_output_files_outlive_their_runner_until_close(process: ProcessExecutor, tmp_path: Path) -> None:
    execution = await process.start(order("leave_output", {"name": "b.txt", "text": "kept"}), _Deaf())
    ended_ = await ended(execution)
    await process.close()

    assert ended_.files["b.txt"].read_text() == "kept"
    execution.close()
    await _removed(tmp_path)


async def test_what_a_killed_run_leaves_is_removed(process: ProcessExecutor, tmp_path: Path) -> None:
    execution, _ = await begun(process, order("deaf"))
    execution.stop(End.STOPPED, 0)
    await ended(execution)
    execution.close()
    await process.close()

    await _removed(tmp_path)


async def _removed(directory: Path) -> None:
    await scratch.settled()
    assert names_in(directory) == []
