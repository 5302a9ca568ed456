"""Any executable as a job: what it gets, and how its end is read."""

import asyncio
import hashlib
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.worker.executors.tools import (
    Remembering,
    begun,
    command,
    command_executor,
    ended,
    names_in,
    order,
    outcome,
    result,
)
from tidewheel.worker.execution import End
from tidewheel.worker.executors.command import CommandExecutor


def shell(script: str, **more: Any) -> Any:
    return command("/bin/sh", "-c", script, **more)


async def test_exit_code_0_is_success_with_the_end_of_stdout_as_result(commands: CommandExecutor) -> None:
    ended_ = await outcome(commands, shell("echo hello; echo oops >&2"))

    assert (ended_.end, ended_.exit_code) == (End.RETURNED, 0)
    assert result(ended_) == {"exit_code": 0, "output": "hello\n"}


async def test_only_the_last_4_kib_of_stdout_are_in_the_result(commands: CommandExecutor) -> None:
    sink = Remembering()
    ended_ = await outcome(commands, shell("head -c 9000 /dev/zero | tr '\\0' a; echo end"), sink)

    assert result(ended_)["output"] == "a" * 4092 + "end\n"
    assert len(sink.said["stdout"]) == 9004


async def test_all_output_has_been_heard_when_the_result_is_made(commands: CommandExecutor) -> None:
    for _ in range(10):
        sink = Remembering(most=0)  # has had enough, so that its pipe is not read at once
        ended_ = await outcome(commands, shell("head -c 100000 /dev/zero | tr '\\0' a; echo end"), sink)

        assert sink.bytes_seen == 100_004
        assert result(ended_)["output"].endswith("aend\n")


async def test_output_of_any_bytes_becomes_storable_text_in_the_result(commands: CommandExecutor) -> None:
    ended_ = await outcome(commands, shell("printf '\\000\\377\\033[31m'"))

    assert result(ended_)["output"] == "\ufffd\ufffd\x1b[31m"


@pytest.mark.parametrize(
    ("code", "more", "end"),
    [
        (1, {}, End.ERROR),
        (75, {}, End.RETRY),
        (75, {"fatal_exit_codes": [75]}, End.FATAL),
        (3, {"fatal_exit_codes": [3, 4]}, End.FATAL),
        (3, {"ok_exit_codes": [0, 3]}, End.RETURNED),
        (0, {"ok_exit_codes": [3]}, End.ERROR),
        (127, {}, End.ERROR),
        (255, {}, End.ERROR),
    ],
)
async def test_exit_codes_say_how_it_ended(
    commands: CommandExecutor, code: int, more: dict[str, Any], end: End
) -> None:
    ended_ = await outcome(commands, shell(f"exit {code}", **more))

    assert (ended_.end, ended_.exit_code) == (end, code)


@pytest.mark.parametrize("name", ["KILL", "TERM", "SEGV", "HUP"])
async def test_a_command_that_is_killed_by_a_signal_says_which(commands: CommandExecutor, name: str) -> None:
    ended_ = await outcome(commands, shell(f"kill -{name} $$"))

    assert (ended_.end, ended_.message) == (End.SIGNAL, f"killed by SIG{name}")


@pytest.mark.parametrize("argv", [["/no/such/file"], ["no-such-program"], ["./relative"], ["/etc/passwd"], ["/etc"]])
async def test_what_cannot_be_executed_is_fatal_and_named(commands: CommandExecutor, argv: list[str]) -> None:
    ended_ = await outcome(commands, command(*argv))

    assert ended_.end is End.FATAL
    assert repr(argv[0]) in ended_.message


async def test_a_working_directory_that_is_not_there_is_fatal_and_named(commands: CommandExecutor) -> None:
    ended_ = await outcome(commands, command("true", cwd="/no/such/place"))

    assert ended_.end is End.FATAL
    assert "/no/such/place" in ended_.message


@pytest.mark.parametrize(
    ("args", "field"),
    [
        ({}, "argv"),
        ({"argv": []}, "argv"),
        ({"argv": "echo hello"}, "argv"),
        ({"argv": ["echo", 1]}, "argv"),
        ({"argv": [""]}, "argv"),
        ({"argv": ["echo", "a\0b"]}, "argv"),
        ({"argv": ["{artifact}"]}, "argv"),
        ({"argv": ["true"], "env": {"A": 1}}, "env"),
        ({"argv": ["true"], "env": {"A=B": "1"}}, "env"),
        ({"argv": ["true"], "env": {"": "1"}}, "env"),
        ({"argv": ["true"], "env": {"A": "a\0b"}}, "env"),
        ({"argv": ["true"], "cwd": "a\0b"}, "cwd"),
        ({"argv": ["true"], "shell": True}, "shell"),
        ({"argv": ["true"], "stdin": 1}, "stdin"),
        ({"argv": ["true"], "artifact": "../../etc/passwd"}, "artifact"),
        ({"argv": ["true"], "artifact": "0" * 64}, "artifact"),
        ({"argv": ["true"], "ok_exit_codes": [256]}, "ok_exit_codes"),
        ({"argv": ["true"], "fatal_exit_codes": ["1"]}, "fatal_exit_codes"),
        ({"argv": ["true", "x" * 200_000]}, "argv"),
    ],
)
async def test_wrong_arguments_are_fatal_and_name_the_field(
    commands: CommandExecutor, args: dict[str, Any], field: str
) -> None:
    ended_ = await outcome(commands, order("command", args))

    assert ended_.end is End.FATAL
    assert ended_.message.startswith(field), ended_.message


async def test_arguments_are_passed_on_as_they_are(commands: CommandExecutor) -> None:
    words = ["$HOME", "; ls", "'", "a b", "", "ü\n"]
    ended_ = await outcome(commands, command(sys.executable, "-c", "import sys; print(sys.argv[1:])", *words))

    assert result(ended_)["output"] == f"{words}\n"


async def test_stdin_is_what_the_job_says_or_nothing(commands: CommandExecutor) -> None:
    assert result(await outcome(commands, command("cat", stdin="line\n" * 400)))["output"] == "line\n" * 400
    assert result(await outcome(commands, command("cat")))["output"] == ""


async def test_the_environment_is_the_jobs_and_nothing_of_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDE_DATABASE", "postgresql://secret")
    monkeypatch.setenv("SOME_KEY", "secret")
    monkeypatch.setenv("LC_TIME", "C")
    async with command_executor(tmp_path) as commands:
        given = command("env", env={"MINE": "1", "LANG": "C", "TIDE_JOB_ID": "forged"})
        output = result(await outcome(commands, given))["output"]
    seen = dict(line.split("=", 1) for line in output.splitlines())

    assert (seen["MINE"], seen["LANG"], seen["LC_TIME"]) == ("1", "C", "C")
    assert seen["TIDE_JOB_ID"] == "11111111-2222-3333-4444-555555555555"
    assert (seen["TIDE_ATTEMPT"], seen["TIDE_FENCING_TOKEN"]) == ("3", "2:5")
    assert seen["HOME"] == seen["TMPDIR"]
    assert Path(seen["HOME"]).is_relative_to(tmp_path)
    assert "secret" not in output


async def test_no_descriptor_of_the_worker_is_open_in_a_command(commands: CommandExecutor) -> None:
    code = "import os; print([fd for fd in range(3, 4096) if not _closed(fd)])"
    closed = "import os\ndef _closed(fd):\n try: os.fstat(fd)\n except OSError: return True\n return False\n"
    ended_ = await outcome(commands, command(sys.executable, "-c", closed + code))

    assert result(ended_)["output"] == "[]\n"


async def test_signals_have_their_ordinary_meaning_in_a_command(commands: CommandExecutor) -> None:
    ended_ = await outcome(commands, shell("grep -E 'Sig(Blk|Ign)' /proc/self/status"))

    internal = 0b11 << 31  # the C library keeps two for itself
    assert [int(mask, 16) & ~internal for mask in result(ended_)["output"].split()[1::2]] == [0, 0]


async def test_output_files_are_regular_files_by_their_relative_names(commands: CommandExecutor) -> None:
    script = (
        'cd "$TIDE_OUTPUT_DIR"; mkdir -p deep/er; echo 1 > one; echo 2 > deep/er/two; '
        "ln -s /etc/passwd link; ln -s /etc dir; mkfifo pipe; echo no > ../three"
    )
    execution = await commands.start(shell(script), Remembering())
    ended_ = await ended(execution)

    assert {name: path.read_text() for name, path in ended_.files.items()} == {"one": "1\n", "deep/er/two": "2\n"}
    place = ended_.files["one"].parents[1]
    execution.close()
    await commands.close()
    assert not place.exists()


async def test_too_many_output_files_are_fatal(commands: CommandExecutor) -> None:
    ended_ = await outcome(commands, shell('cd "$TIDE_OUTPUT_DIR"; seq 1001 | xargs touch'))

    assert ended_.end is End.FATAL
    assert "more than 1000 files" in ended_.message


async def test_a_scratch_directory_that_resists_is_removed_all_the_same(
    commands: CommandExecutor, tmp_path: Path
) -> None:
    deep = (
        "import os\n"
        "for _ in range(1500): os.mkdir('d'); os.chdir('d')\n"
        "os.mkdir('closed'); open('closed/x', 'w').close(); os.chmod('closed', 0)"
    )
    ended_ = await outcome(commands, command(sys.executable, "-c", deep))
    assert ended_.end is End.RETURNED, ended_
    await outcome(commands, shell("mkdir closed; touch closed/x; chmod 0 closed"))
    await commands.close()

    assert names_in(tmp_path) == []


async def test_nothing_of_one_run_is_there_for_the_next(commands: CommandExecutor) -> None:
    await outcome(commands, shell("touch note; touch $TIDE_OUTPUT_DIR/out; chmod 755 ."))
    listing = result(await outcome(commands, shell("find . -printf '%P %m\n'")))["output"]

    assert listing == " 700\noutput 700\n"


class TestArtifacts:
    async def test_an_artifact_is_the_program_if_argv_is_empty_or_names_it(self, tmp_path: Path) -> None:
        async with self._executor(tmp_path, b"#!/bin/sh\necho ran $0 $1\n") as (commands, digest):
            alone = result(await outcome(commands, order("command", {"artifact": digest})))["output"]
            named = result(await outcome(commands, command("{artifact}", "x", artifact=digest)))["output"]
            passed = result(await outcome(commands, command("echo", "{artifact}", artifact=digest)))["output"]

        assert alone.endswith("/artifact\n")
        assert named.endswith("/artifact x\n")
        assert Path(passed.strip()).name == "artifact"

    async def test_a_task_cannot_change_the_original(self, tmp_path: Path) -> None:
        async with self._executor(tmp_path, b"#!/bin/sh\necho spoiled > $0\n") as (commands, digest):
            await outcome(commands, order("command", {"artifact": digest}))
            [original] = (tmp_path / "artifacts").iterdir()

            assert original.read_bytes() == b"#!/bin/sh\necho spoiled > $0\n"
            assert not original.stat().st_mode & stat.S_IXUSR

    async def test_an_artifact_that_is_no_program_is_fatal(self, tmp_path: Path) -> None:
        async with self._executor(tmp_path, b"\x00\x01 no program") as (commands, digest):
            ended_ = await outcome(commands, order("command", {"artifact": digest}))

        assert ended_.end is End.FATAL
        assert "cannot be executed" in ended_.message

    def _executor(self, tmp_path: Path, content: bytes) -> Any:
        return _with_artifact(tmp_path, content)


class _with_artifact:  # noqa: N801 - used like a function
    def __init__(self, tmp_path: Path, content: bytes) -> None:
        self._digest = hashlib.sha256(content).hexdigest()
        self._store, self._scratch = tmp_path / "artifacts", tmp_path / "scratch"
        for directory in (self._store, self._scratch):
            directory.mkdir()
        (self._store / self._digest).write_bytes(content)

    @asynccontextmanager
    async def _fetch(self, digest: str) -> AsyncIterator[Path]:
        yield self._store / digest

    async def __aenter__(self) -> tuple[CommandExecutor, str]:
        self._context = command_executor(self._scratch, artifacts=self._fetch)
        return await self._context.__aenter__(), self._digest

    async def __aexit__(self, *error: Any) -> None:  # noqa: PYI036 - passed on
        await self._context.__aexit__(*error)


async def test_a_command_that_listens_ends_within_the_grace(commands: CommandExecutor) -> None:
    script = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    execution, sink = await begun(commands, shell(script))
    execution.stop(End.STOPPED, 60)
    ended_ = await ended(execution)

    assert (ended_.end, ended_.exit_code) == (End.STOPPED, 0)
    assert sink.said["stdout"] == b"up\nbye\n"


async def test_a_command_that_does_not_listen_is_killed_after_the_grace(commands: CommandExecutor) -> None:
    execution, _ = await begun(commands, shell("trap '' TERM; echo up; while :; do sleep 600; done"))
    execution.stop(End.TIMEOUT, 0.05)

    assert (await ended(execution)).end is End.TIMEOUT


async def test_a_stop_right_after_the_start_is_not_lost(commands: CommandExecutor) -> None:
    execution = await commands.start(command("sleep", "600"), Remembering())
    execution.stop(End.STOPPED, 60)

    assert (await ended(execution)).end is End.STOPPED


async def test_many_commands_at_once_all_end(commands: CommandExecutor) -> None:
    numbers = range(60)
    ends = await asyncio.gather(*(outcome(commands, shell(f"echo {number}")) for number in numbers))

    assert [result(ended_)["output"] for ended_ in ends] == [f"{number}\n" for number in numbers]


async def test_what_a_command_used_is_known_also_if_it_must_be_killed(commands: CommandExecutor) -> None:
    for _ in range(2):  # the second one in the cell of an earlier one, whose use is not counted again
        await outcome(commands, command("/bin/true"))
        spin = "trap '' TERM; n=0; while [ $n -lt 20000 ]; do n=$((n+1)); done; echo up; while :; do sleep 600; done"
        execution, _ = await begun(commands, shell(spin))
        execution.stop(End.TIMEOUT, 0.05)
        usage = (await ended(execution)).usage
        execution.close()

        assert 0 < usage.cpu_seconds < 30
        assert usage.peak_rss_bytes > 1 << 19


async def test_usage_counts_what_the_command_and_its_children_used(commands: CommandExecutor) -> None:
    script = "python=$0; $python -c 'x = 0\nfor i in range(2000000): x += i' & wait"
    usage = (await outcome(commands, command("/bin/sh", "-c", script, sys.executable))).usage

    assert usage.cpu_seconds > 0.05
    assert usage.peak_rss_bytes > 1 << 20
