"""Each layer confines in fact, and each is reported."""

import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.worker.executors.conftest import LAYERS
from tests.worker.executors.tools import (
    begun,
    command,
    command_executor,
    ended,
    order,
    outcome,
    process_executor,
    result,
)
from tidewheel.worker.execution import End
from tidewheel.worker.executors.command import CommandExecutor
from tidewheel.worker.executors.process import ProcessExecutor
from tidewheel.worker.sandbox.layers import Grounds, report

needs_landlock = pytest.mark.skipif(not LAYERS["landlock"].active, reason=LAYERS["landlock"].why)
needs_namespaces = pytest.mark.skipif(not LAYERS["pid-namespace"].active, reason=LAYERS["pid-namespace"].why)


async def said(process: ProcessExecutor, kind: str, args: dict[str, Any] | None = None, **more: Any) -> Any:
    return result(await outcome(process, order(kind, args, **more)))


@needs_landlock
@pytest.mark.parametrize("isolation", ["standard", "strict"])
async def test_a_task_writes_to_its_scratch_directory_and_nowhere_else(
    process: ProcessExecutor, tmp_path: Path, isolation: str
) -> None:
    assert await said(process, "write_to", {"path": "here"}, isolation=isolation) == "allowed: 1"
    assert await said(process, "write_to", {"path": "/dev/null"}, isolation=isolation) == "allowed: 1"
    for place in (tmp_path / "x", Path("/tmp/tidewheel-was-here"), Path(__file__)):
        answer = await said(process, "write_to", {"path": str(place)}, isolation=isolation)
        assert answer == "refused: Permission denied", place


@needs_landlock
async def test_tasks_may_write_where_the_operator_lets_them(tmp_path: Path) -> None:
    scratch, shared = tmp_path / "scratch", tmp_path / "shared"
    for directory in (scratch, shared):
        directory.mkdir()
    async with process_executor(scratch, grounds=Grounds(writable=(str(shared),))) as process:
        assert await said(process, "write_to", {"path": str(shared / "x")}) == "allowed: 1"


async def test_without_isolation_a_task_may_write_elsewhere(process: ProcessExecutor, tmp_path: Path) -> None:
    answer = await said(process, "write_to", {"path": str(tmp_path / "x")}, isolation="none")

    assert answer == "allowed: 1"


@needs_landlock
async def test_what_is_hidden_cannot_be_read_nor_its_companions(tmp_path: Path) -> None:
    scratch, data = tmp_path / "scratch", tmp_path / "data"
    for directory in (scratch, data):
        directory.mkdir()
    for name in ("tide.db", "tide.db-wal", "tide.dbx", "other"):
        (data / name).write_text("content")
    async with process_executor(scratch, grounds=Grounds(hidden=(str(data / "tide.db"),))) as process:
        (data / "tide.db-shm").write_text("made later")
        answers = {
            path.name: (await said(process, "read_from", {"path": str(path)})).partition(":")[0]
            for path in sorted(data.iterdir())
        }

    assert answers == {
        "other": "allowed",
        "tide.db": "refused",
        "tide.db-shm": "refused",
        "tide.db-wal": "refused",
        "tide.dbx": "allowed",
    }


@needs_landlock
async def test_strict_tasks_read_the_system_and_the_app_and_nothing_else(
    process: ProcessExecutor, tmp_path: Path
) -> None:
    (tmp_path / "private").write_text("x")
    readable = [__file__, "/etc/passwd", os.__file__]

    for path in readable:
        answer = await said(process, "read_from", {"path": path}, isolation="strict")
        assert answer.startswith("allowed"), path
    for path in (str(tmp_path / "private"), "/etc/hostname"):
        answer = await said(process, "read_from", {"path": path}, isolation="strict")
        assert answer == "refused: Permission denied", path


@needs_landlock
@pytest.mark.parametrize("hidden", ["tide.db", "folder", "folder/deep/key"])
async def test_what_is_hidden_in_the_folder_of_the_app_is_hidden_from_strict_tasks_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hidden: str
) -> None:
    scratch, app = tmp_path / "scratch", tmp_path / "app"
    for directory in (scratch, app / "folder" / "deep"):
        directory.mkdir(parents=True)
    for name in ("tide.db", "tide.db-wal", "module.py", "folder/deep/key", "folder/deep/module.py"):
        (app / name).write_text("content")
    (tmp_path / "link").symlink_to(app)
    path = os.pathsep.join(map(str, (tmp_path / "link", app / "folder" / "deep", os.environ.get("PYTHONPATH", ""))))
    monkeypatch.setenv("PYTHONPATH", path)
    refused = {}
    async with process_executor(scratch, grounds=Grounds(hidden=(str(app / hidden),))) as process:
        for isolation in ("standard", "strict"):
            refused[isolation] = [
                str(file.relative_to(app))
                for file in sorted(app.rglob("*"))
                if file.is_file()
                and (await said(process, "read_from", {"path": str(file)}, isolation=isolation)).startswith("refused")
            ]

    assert (
        refused["strict"]
        == refused["standard"]
        == {
            "tide.db": ["tide.db", "tide.db-wal"],
            "folder": ["folder/deep/key", "folder/deep/module.py"],
            "folder/deep/key": ["folder/deep/key"],
        }[hidden]
    )


@needs_landlock
async def test_strict_tasks_still_find_modules_beside_what_is_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch, app = tmp_path / "scratch", tmp_path / "app"
    for directory in (scratch, app):
        directory.mkdir()
    (app / "found_beside.py").write_text("")
    (app / "key").write_text("")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(app), os.environ.get("PYTHONPATH", ""))))
    async with process_executor(scratch, grounds=Grounds(hidden=(str(app / "key"),))) as process:
        assert await said(process, "import_module", {"name": "found_beside"}, isolation="strict") == "found_beside"


@pytest.mark.parametrize("isolation", ["standard", "strict", "none"])
async def test_nothing_of_the_workers_environment_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolation: str
) -> None:
    monkeypatch.setenv("TIDE_DATABASE", "postgresql://secret")
    monkeypatch.setenv("SOME_KEY", "secret")
    async with process_executor(tmp_path) as process:
        known = await said(process, "who", isolation=isolation)
        own = await said(process, "read_from", {"path": "/proc/self/environ"}, isolation=isolation)

    assert "secret" not in str(known["environment"])
    assert "secret" not in own
    assert known["environment"]["TIDE_FENCING_TOKEN"] == "2:5"


@pytest.mark.parametrize("who", ["host", "launcher"])
@pytest.mark.parametrize("file", ["environ", "mem", "maps"])
async def test_a_task_cannot_look_into_the_worker(tmp_path: Path, grounds: Grounds, who: str, file: str) -> None:
    if not (LAYERS["landlock"].active or grounds.namespaces):
        pytest.skip("neither Landlock nor namespaces")
    async with process_executor(tmp_path, grounds=grounds) as process:
        pid = os.getpid() if who == "host" else (await process._launchers.get()).pid
        answer = await said(process, "read_from", {"path": f"/proc/{pid}/{file}"})

    assert answer.startswith("refused"), answer


async def test_a_task_cannot_signal_the_worker(tmp_path: Path, grounds: Grounds) -> None:
    if not (LAYERS["landlock"].active or grounds.namespaces):
        pytest.skip("neither Landlock nor namespaces")
    async with process_executor(tmp_path, grounds=grounds) as process:
        for pid in (os.getpid(), (await process._launchers.get()).pid):
            answer = await said(process, "signal_to", {"pid": pid, "number": 0})
            assert answer.startswith("refused"), answer


@needs_namespaces
async def test_a_task_that_would_kill_its_parents_harms_itself_alone(process: ProcessExecutor) -> None:
    launcher = await process._launchers.get()
    execution, _ = await begun(process, order("until_cancelled"))
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1):
        answer = await said(process, "signal_to", {"pid": 1, "number": number})
        assert answer.startswith("allowed"), answer  # the init takes no word from inside
    await said(process, "signal_to", {"pid": -1, "number": signal.SIGKILL})
    execution.stop(End.STOPPED, 60)

    assert (await ended(execution)).result == '"saw it"'
    assert launcher.lives
    assert await process._launchers.get() is launcher


@needs_namespaces
@pytest.mark.parametrize("isolation", ["standard", "strict"])
async def test_a_task_sees_its_own_processes_alone(process: ProcessExecutor, isolation: str) -> None:
    ended_ = await outcome(process, order("visible_processes", isolation=isolation))
    if "own-proc" not in ended_.usage.isolation:
        pytest.skip("this kernel lets nobody mount a /proc here")

    assert sorted(result(ended_)) == [1, 2]


async def test_privileges_are_gone_for_good(process: ProcessExecutor) -> None:
    status = await said(process, "status")

    assert status["NoNewPrivs"] == "1"
    assert {status[name] for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")} == {"0" * 16}


async def test_a_command_of_root_gets_no_capability_back(commands: CommandExecutor) -> None:
    ended_ = await outcome(commands, command("grep", "Cap[EP]", "/proc/self/status"))

    assert set(result(ended_)["output"].split()[1::2]) == {"0" * 16}


async def test_limits_are_set(commands: CommandExecutor) -> None:
    ended_ = await outcome(commands, command("/bin/sh", "-c", "ulimit -c; ulimit -Hn", memory=1 << 30))
    core, files = map(int, result(ended_)["output"].split())

    assert core == 0
    assert files <= 4096


async def test_each_run_has_a_session_of_its_own(commands: CommandExecutor) -> None:
    ended_ = await outcome(commands, command("/bin/sh", "-c", "cut -d' ' -f1,5,6 /proc/self/stat; echo $$"))
    [_, group, session, shell] = result(ended_)["output"].split()

    assert group == session == shell


async def test_strict_tasks_have_no_network_and_others_do(process: ProcessExecutor) -> None:
    if not (LAYERS["network-namespace"].active or LAYERS["landlock"].active):
        pytest.skip("neither network namespaces nor Landlock")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        assert (await said(process, "connect_to", {"port": port})).startswith("allowed")
        assert (await said(process, "connect_to", {"port": port}, isolation="strict")).startswith("refused")


@needs_namespaces
async def test_strict_tasks_can_talk_to_themselves(commands: CommandExecutor) -> None:
    script = (
        "import socket\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "socket.create_connection(server.getsockname()).close()\n"
    )
    ended_ = await outcome(commands, command(sys.executable, "-c", script, isolation="strict"))

    assert ended_.end is End.RETURNED, ended_


async def test_the_report_names_every_layer_with_a_reason() -> None:
    layers = report()

    assert len({layer.name for layer in layers}) == len(layers)
    assert all(layer.why for layer in layers)


async def test_usage_names_the_layers_that_were_on(tmp_path: Path, grounds: Grounds) -> None:
    async with command_executor(tmp_path, grounds=grounds) as commands:
        layers = set((await outcome(commands, command("true"))).usage.isolation)

    assert {"session", "limits", "no-new-privileges", "no-capabilities", "scratch", "environment"} <= layers
    assert ("pid-namespace" in layers) == grounds.namespaces
    assert ("subreaper" in layers) == (not grounds.namespaces)
    assert ("landlock" in layers) == LAYERS["landlock"].active
