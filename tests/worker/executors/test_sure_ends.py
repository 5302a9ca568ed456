"""Whatever a task leaves behind, and whatever goes wrong when that is looked at, its run ends and its slot is free."""

import ctypes
import errno
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worker.executors.tools import command, command_executor, names_in, order, outcome, process_executor
from tidewheel.worker.execution import End, Executor, Order
from tidewheel.worker.executors import scratch

VERSION_3 = 0x20080522
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2
CLOSED = {
    "a folder whose files cannot be looked at": ("mkdir a; touch a/f; chmod 444 a", "a/"),
    "a folder that cannot be read": ("mkdir a; touch a/f; chmod 000 a", "a/"),
    "the output folder": ("touch f; chmod 000 .", "."),
}
AGAIN = "echo kept > $TIDE_OUTPUT_DIR/kept"


@pytest.fixture
def ordinary_rights() -> Iterator[None]:
    """Be bound by the rights of files, as a worker is whose user is not root."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = ctypes.create_string_buffer(struct.pack("<Ii", VERSION_3, 0), 8)
    before = ctypes.create_string_buffer(24)
    assert libc.capget(header, before) == 0
    effective, *rest = struct.unpack("<6I", before.raw)
    effective &= ~(1 << CAP_DAC_OVERRIDE | 1 << CAP_DAC_READ_SEARCH)
    assert libc.capset(header, ctypes.create_string_buffer(struct.pack("<6I", effective, *rest), 24)) == 0
    yield
    assert libc.capset(header, before) == 0


def _as_command(script: str) -> Order:
    return command("/bin/sh", "-c", script)


def _as_function(script: str) -> Order:
    return order("run_shell", {"script": script})


async def _check_closed_folder(executor: Executor, first: Order, again: Order, folder: str) -> None:
    ended = await outcome(executor, first)
    after = await outcome(executor, again)

    why = f"output: the folder {folder!r} of the output directory: Permission denied"
    assert (ended.end, ended.message) == (End.FATAL, why), ended
    assert (after.end, list(after.files)) == (End.RETURNED, ["kept"]), after


@pytest.mark.usefixtures("ordinary_rights")
@pytest.mark.parametrize("what", CLOSED)
async def test_a_command_whose_output_folder_cannot_be_read_ends_and_says_so(tmp_path: Path, what: str) -> None:
    script, folder = CLOSED[what]
    async with command_executor(tmp_path) as executor:
        first, again = _as_command(f"cd $TIDE_OUTPUT_DIR; {script}"), _as_command(AGAIN)
        await _check_closed_folder(executor, first, again, folder)
    assert names_in(tmp_path) == []


@pytest.mark.usefixtures("ordinary_rights")
@pytest.mark.parametrize("what", CLOSED)
async def test_a_function_whose_output_folder_cannot_be_read_ends_and_says_so(tmp_path: Path, what: str) -> None:
    script, folder = CLOSED[what]
    async with process_executor(tmp_path) as executor:
        first, again = _as_function(f"cd $TIDE_OUTPUT_DIR; {script}"), _as_function(AGAIN)
        await _check_closed_folder(executor, first, again, folder)
    assert names_in(tmp_path) == []


def _fail_once(monkeypatch: pytest.MonkeyPatch) -> None:
    real = scratch.output_files
    failures = iter([RuntimeError("the disk sings")])

    def output_files(place: str) -> dict[str, Path]:
        if (failure := next(failures, None)) is not None:
            raise failure
        return real(place)

    monkeypatch.setattr(scratch, "output_files", output_files)


async def _check_ends(executor: Executor, first: Order, again: Order) -> None:
    ended = await outcome(executor, first)
    after = await outcome(executor, again)

    assert (ended.end, ended.message) == (End.ERROR, "the worker could not see to its end: the disk sings")
    assert (after.end, list(after.files)) == (End.RETURNED, ["kept"]), after


async def test_a_command_ends_whatever_goes_wrong_at_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with command_executor(tmp_path) as executor:
        _fail_once(monkeypatch)
        await _check_ends(executor, _as_command(AGAIN), _as_command(AGAIN))


async def test_a_killed_command_ends_whatever_goes_wrong_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with command_executor(tmp_path) as executor:
        _fail_once(monkeypatch)
        await _check_ends(executor, _as_command(f"{AGAIN}; kill -9 $PPID"), _as_command(AGAIN))


@pytest.mark.parametrize("script", [AGAIN, f"{AGAIN}; echo > ../stash"], ids=["its runner goes on", "its runner ends"])
async def test_a_function_ends_whatever_goes_wrong_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    async with process_executor(tmp_path) as executor:
        _fail_once(monkeypatch)
        await _check_ends(executor, _as_function(script), _as_function(AGAIN))


async def test_trouble_of_the_machine_is_not_held_to_be_the_task_s_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_descriptor(_above: Path, _folder: Path) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    async with command_executor(tmp_path) as executor:
        monkeypatch.setattr(scratch, "open_beneath", no_descriptor)
        ended = await outcome(executor, _as_command(AGAIN))

    assert (ended.end, "Too many open files" in ended.message) == (End.ERROR, True)
