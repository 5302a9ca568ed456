"""How a plain function can end, and what the host is told of it."""

from datetime import timedelta
from typing import Any

import pytest

from tests.worker.executors.tools import JOB, Remembering, order, outcome, result
from tidewheel.worker.execution import End
from tidewheel.worker.executors.process import ProcessExecutor


async def test_a_function_returns_its_result_as_json(process: ProcessExecutor) -> None:
    ended = await outcome(process, order("add", {"a": 1, "b": 2}))

    assert (ended.end, ended.result) == (End.RETURNED, "3")


async def test_an_async_function_may_run_in_a_process_too(process: ProcessExecutor) -> None:
    assert result(await outcome(process, order("add_later", {"a": 1, "b": 2}))) == 3


async def test_a_function_that_returns_nothing_has_null_as_its_result(process: ProcessExecutor) -> None:
    assert (await outcome(process, order("nothing"))).result == "null"


async def test_a_task_knows_its_job_and_attempt(process: ProcessExecutor) -> None:
    known = result(await outcome(process, order("who", saved='{"page":7}')))

    assert known["job"] == str(JOB)
    assert (known["number"], known["attempt"], known["saved"]) == (3, [2, 5], {"page": 7})


async def test_an_exception_is_an_error_with_its_message_and_traceback(process: ProcessExecutor) -> None:
    ended = await outcome(process, order("fail", {"message": "no luck"}))

    assert (ended.end, ended.message) == (End.ERROR, "ValueError: no luck")
    assert ended.detail is not None
    assert "in fail" in ended.detail
    assert "tidewheel/worker/launcher" not in ended.detail


async def test_a_long_traceback_is_cut_at_its_beginning(process: ProcessExecutor) -> None:
    ended = await outcome(process, order("fail", {"message": "x" * 50_000 + "the end"}))

    assert ended.detail is not None
    assert len(ended.detail) == 16 * 1024
    assert ended.detail.rstrip().endswith("the end")
    assert len(ended.message) <= 2_000


async def test_a_message_with_nul_is_made_storable(process: ProcessExecutor) -> None:
    ended = await outcome(process, order("fail", {"message": "a\0b"}))

    assert "\0" not in ended.message
    assert "\0" not in (ended.detail or "")


async def test_fatal_gives_up(process: ProcessExecutor) -> None:
    ended = await outcome(process, order("give_up", {"message": "no such customer"}))

    assert (ended.end, ended.message) == (End.FATAL, "no such customer")


@pytest.mark.parametrize(
    ("after", "wait"),
    [
        (None, None),
        (1.5, timedelta(seconds=1.5)),
        ("5m", timedelta(minutes=5)),
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("timedelta", timedelta(seconds=7)),
    ],
)
async def test_retry_says_after_which_wait(process: ProcessExecutor, after: Any, wait: timedelta | None) -> None:
    ended = await outcome(process, order("again", {"after": after}))

    assert (ended.end, ended.message, ended.after) == (End.RETRY, "not yet", wait)


@pytest.mark.parametrize("after", ["soon", "", -1, True])
async def test_retry_with_a_wait_that_is_none_is_fatal_and_says_why(process: ProcessExecutor, after: Any) -> None:
    ended = await outcome(process, order("again", {"after": after}))

    assert ended.end is End.FATAL
    assert "after" in ended.message


@pytest.mark.parametrize("args", [{}, {"a": 1, "c": 2}])
async def test_wrong_arguments_are_fatal(process: ProcessExecutor, args: dict[str, Any]) -> None:
    ended = await outcome(process, order("add", args))

    assert ended.end is End.FATAL
    assert ended.message.startswith("the arguments do not fit add: ")


async def test_the_parameter_of_the_context_cannot_be_given_by_the_job(process: ProcessExecutor) -> None:
    ended = await outcome(process, order("who", {"ctx": 1}))

    assert ended.end is End.FATAL
    assert ended.message == "the arguments do not fit who: Object contains unknown field `ctx`"


async def test_a_type_error_inside_the_function_is_an_error_like_any_other(process: ProcessExecutor) -> None:
    assert (await outcome(process, order("fail_with_type_error"))).end is End.ERROR


async def test_an_unknown_kind_is_told_apart(process: ProcessExecutor) -> None:
    ended = await outcome(process, order("no.such.task"))

    assert (ended.end, ended.message) == (End.UNKNOWN, "the app has no task 'no.such.task'")


@pytest.mark.parametrize("what", ["nan", "set", "object", "deep", "nul", "huge"])
async def test_a_result_that_is_not_json_is_fatal_and_says_why(process: ProcessExecutor, what: str) -> None:
    ended = await outcome(process, order("odd", {"what": what}))

    assert ended.end is End.FATAL
    assert ended.message.startswith("the result cannot be stored: ")


@pytest.mark.parametrize("length", [0, 100_000, 5_000_000])
async def test_a_result_may_be_long(process: ProcessExecutor, length: int) -> None:
    ended = await outcome(process, order("long_result", {"length": length}))

    assert ended.result == '"' + "x" * length + '"'


async def test_a_result_beyond_all_bounds_is_fatal_and_harms_nobody(process: ProcessExecutor) -> None:
    ended = await outcome(process, order("long_result", {"length": 100_000_000}))

    assert ended.end is End.FATAL
    assert "at most 67108864 bytes" in ended.message
    assert result(await outcome(process, order("add", {"a": 1}))) == 11


async def test_sys_exit_is_an_error(process: ProcessExecutor) -> None:
    ended = await outcome(process, order("leave", {"code": 3}))

    assert (ended.end, ended.message) == (End.ERROR, "SystemExit: 3")


async def test_a_process_that_leaves_by_itself_is_an_error_with_its_exit_code(process: ProcessExecutor) -> None:
    ended = await outcome(process, order("leave_hard", {"code": 3}))

    assert (ended.end, ended.exit_code) == (End.ERROR, 3)
    assert "exit code 3" in ended.message


@pytest.mark.parametrize(("number", "name"), [(9, "SIGKILL"), (6, "SIGABRT"), (10, "SIGUSR1")])
async def test_a_task_that_is_killed_by_a_signal_says_which(process: ProcessExecutor, number: int, name: str) -> None:
    ended = await outcome(process, order("kill_self", {"number": number}))

    assert (ended.end, ended.message) == (End.SIGNAL, f"killed by {name}")


async def test_a_segmentation_fault_ends_that_run_alone(process: ProcessExecutor) -> None:
    ended = await outcome(process, order("crash"))

    assert (ended.end, ended.message) == (End.SIGNAL, "killed by SIGSEGV")
    assert result(await outcome(process, order("add", {"a": 1}))) == 11


async def test_words_and_output_reach_the_sink_before_the_end(process: ProcessExecutor) -> None:
    sink = Remembering()
    await outcome(process, order("talk"), sink)

    assert sink.progressed == [(0.5, "half")]
    assert sink.checkpoints == ['{"seen":3}']
    assert sink.logs == [("info", "by the context"), ("warning", "by logging")]
    assert sorted(sink.said["stdout"].splitlines()) == [b"by C", b"by a child", b"by the descriptor", b"to stdout"]
    assert sink.said["stderr"] == b"to stderr\n"


async def test_all_output_has_been_heard_when_the_end_is_told(process: ProcessExecutor) -> None:
    for _ in range(10):
        sink = Remembering(most=0)  # has had enough, so that its pipe is not read at once
        await outcome(process, order("print_blocks", {"count": 3}), sink)
        assert sink.bytes_seen == 120_000


async def test_a_task_that_forges_the_words_of_its_runner_is_ended(process: ProcessExecutor) -> None:
    ended = await outcome(process, order("speak_nonsense"))

    assert ended.end is End.ERROR
    assert "what no runner says" in ended.message
    assert result(await outcome(process, order("add", {"a": 1}))) == 11


async def test_usage_says_how_much_and_behind_which_layers(process: ProcessExecutor) -> None:
    usage = (await outcome(process, order("hog", {"megabytes": 60}))).usage

    assert usage.peak_rss_bytes > 60 << 20
    assert usage.cpu_seconds > 0
    assert {"session", "environment", "scratch", "shared-process"} <= set(usage.isolation)


async def test_the_app_is_loaded_once_and_tasks_run_elsewhere(process: ProcessExecutor) -> None:
    seen = {result(await outcome(process, order("imported_by"))) for _ in range(3)}

    assert len({text.partition(",")[0] for text in seen}) == 1
