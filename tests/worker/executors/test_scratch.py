"""What a run leaves is its own alone: no link in it leads the worker away, and nothing of it waits for the next."""

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.worker.executors.tools import (
    Remembering,
    command,
    command_executor,
    ended,
    names_in,
    order,
    outcome,
    process_executor,
    result,
)
from tidewheel.worker.execution import End, Executor, Order
from tidewheel.worker.executors import scratch
from tidewheel.worker.executors.command import CommandExecutor
from tidewheel.worker.executors.process import ProcessExecutor
from tidewheel.worker.executors.scratch import Place, output_files
from tidewheel.worker.sandbox.layers import Grounds

SWAPS = {
    "the output folder": "rmdir $TIDE_OUTPUT_DIR; ln -s {0} $TIDE_OUTPUT_DIR",
    "a folder in it": "ln -s {0} $TIDE_OUTPUT_DIR/deep; ln -s {0}/output/secret $TIDE_OUTPUT_DIR/file",
    "all of the place": "mv $HOME $HOME-away; ln -s {0} $HOME",
    "all of the place by a folder of folders": "mv $HOME ../away; mkdir ../x; ln -s {0} ../x/y; ln -s x/y $HOME",
}


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder of the worker that looks like a place, with rights that tell whether anyone changed them."""
    made = tmp_path / "elsewhere"
    (made / "output").mkdir(parents=True)
    for path in (made / "secret", made / "output" / "secret"):
        path.write_text("secret")
        path.chmod(0)
    made.chmod(0o550)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where places are."""
    made = tmp_path / "scratch"
    made.mkdir()
    return made


@pytest.fixture
async def strangers(folder: Path, elsewhere: Path) -> AsyncIterator[CommandExecutor]:
    """Runs commands that must not see what is elsewhere."""
    async with command_executor(folder, grounds=Grounds(hidden=(str(elsewhere),))) as executor:
        yield executor


def _rights(directory: Path) -> dict[str, int]:
    return {str(path): path.lstat().st_mode for path in (directory, *directory.rglob("*"))}


@pytest.mark.parametrize("what", SWAPS)
async def test_a_command_cannot_have_files_of_the_worker_taken_for_its_outputs(
    strangers: CommandExecutor, elsewhere: Path, folder: Path, what: str
) -> None:
    before = _rights(elsewhere)
    execution = await strangers.start(command("/bin/sh", "-c", SWAPS[what].format(elsewhere)), Remembering())
    ended_ = await ended(execution)
    execution.close()
    await strangers.close()

    assert (ended_.end, dict(ended_.files)) == (End.RETURNED, {}), ended_
    assert _rights(elsewhere) == before
    assert names_in(folder) == []


@pytest.mark.parametrize("isolation", ["none", "standard", "strict"])
@pytest.mark.parametrize("what", SWAPS)
async def test_a_function_cannot_have_files_of_the_worker_taken_for_its_outputs(
    folder: Path, elsewhere: Path, what: str, isolation: str
) -> None:
    before = _rights(elsewhere)
    async with process_executor(folder, grounds=Grounds(hidden=(str(elsewhere),))) as process:
        given = order("run_shell", {"script": SWAPS[what].format(elsewhere)}, isolation=isolation)
        ended_ = await outcome(process, given)
        after = await outcome(process, order("leave_output", {"name": "a", "text": "b"}, isolation=isolation))

    assert (ended_.end, dict(ended_.files)) == (End.RETURNED, {}), ended_
    assert _rights(elsewhere) == before
    assert names_in(folder) == []
    assert (after.end, list(after.files)) == (End.RETURNED, ["a"])


def test_files_are_collected_from_folders_and_never_through_links(tmp_path: Path, elsewhere: Path) -> None:
    real = tmp_path / "real"
    (real / "output" / "deep").mkdir(parents=True)
    (real / "output" / "deep" / "file").write_text("own")
    (real / "output" / "link").symlink_to(elsewhere)
    (tmp_path / "door").symlink_to(real)
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "output").symlink_to(real / "output")

    assert list(output_files(str(real))) == ["deep/file"]
    assert output_files(str(tmp_path / "door")) == {}
    assert output_files(str(inner)) == {}


async def test_folders_in_folders_without_end_do_not_hold_the_worker_up(commands: CommandExecutor) -> None:
    deep = "import os\nos.chdir('output')\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')"
    ended_ = await outcome(commands, command(sys.executable, "-c", deep))

    assert (ended_.end, "folders deep" in ended_.message) == (End.FATAL, True), ended_


@pytest.mark.parametrize("kind", ["link", "link to nothing", "file", "pipe"])
async def test_what_is_no_folder_is_removed_and_nothing_behind_it(tmp_path: Path, elsewhere: Path, kind: str) -> None:
    before, left = _rights(elsewhere), tmp_path / "left"
    if kind == "pipe":
        os.mkfifo(left)
    elif kind == "file":
        left.write_text("x")
    else:
        left.symlink_to(elsewhere if kind == "link" else tmp_path / "absent")
    scratch.remove(str(left))
    await scratch.settled()

    assert names_in(tmp_path) == ["elsewhere"]
    assert _rights(elsewhere) == before


def test_a_place_that_a_task_closed_is_set_aside_and_a_folder_behind_a_link_keeps_its_rights(
    folder: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, before = Place(folder, "one"), _rights(elsewhere)
    Path(place.run).symlink_to(elsewhere)
    Path(place.directory).chmod(0o500)
    rename, refused = os.rename, iter([True])

    def renamed(source: str, target: str) -> None:  # root is refused nothing
        if next(refused, False):
            raise PermissionError
        rename(source, target)

    monkeypatch.setattr(os, "rename", renamed)
    aside = place.set_aside()

    assert Path(aside).is_symlink()
    assert _rights(elsewhere) == before
    assert Path(place.directory).stat().st_mode & 0o777 == 0o700


STASHES = {
    "a file": "echo secret > ../stash",
    "a folder": "mkdir ../stash; echo secret > ../stash/file",
    "another name": "mkdir ../stash; mv $HOME ../stash/was; mkdir -m 700 $HOME $HOME/output",
    "rights": "chmod 755 ..",
}
LOOK = "cd ..; find . -printf '%P %m\\n'"


async def _seen_by_the_next(executor: Executor, first: Order, look: Order) -> str:
    assert (await outcome(executor, first)).end is End.RETURNED
    sink = Remembering()
    assert (await outcome(executor, look, sink)).end is End.RETURNED
    return sink.said["stdout"].decode()


@pytest.mark.parametrize("what", STASHES)
async def test_what_a_command_leaves_beside_its_place_does_not_wait_for_the_next(
    commands: CommandExecutor, what: str
) -> None:
    first, look = (command("/bin/sh", "-c", script) for script in (STASHES[what], LOOK))

    assert await _seen_by_the_next(commands, first, look) == " 700\nrun 700\nrun/output 700\n"


@pytest.mark.parametrize("isolation", ["none", "standard", "strict"])
@pytest.mark.parametrize("what", STASHES)
async def test_what_a_function_leaves_beside_its_place_does_not_wait_for_the_next(
    process: ProcessExecutor, what: str, isolation: str
) -> None:
    first, look = (order("run_shell", {"script": script}, isolation=isolation) for script in (STASHES[what], LOOK))

    assert await _seen_by_the_next(process, first, look) == " 700\nrun 700\nrun/output 700\n"


async def test_outputs_of_a_run_that_also_left_something_beside_are_kept(commands: CommandExecutor) -> None:
    script = "echo kept > $TIDE_OUTPUT_DIR/out; echo stash > ../stash"
    execution = await commands.start(command("/bin/sh", "-c", script), Remembering())
    files = (await ended(execution)).files

    assert {name: path.read_text() for name, path in files.items()} == {"out": "kept\n"}
    assert result(await outcome(commands, command("ls", "..")))["output"] == "run\n"
    execution.close()


async def test_a_cell_goes_on_after_files_were_left_in_the_place_alone(commands: CommandExecutor) -> None:
    holders = []
    for _ in range(3):
        execution = await commands.start(command("touch", "note"), Remembering())
        await ended(execution)
        execution.close()
        holders.append(execution.holder)  # type: ignore[attr-defined]

    assert len(set(map(id, holders))) == 1
