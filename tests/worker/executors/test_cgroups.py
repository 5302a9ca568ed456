"""Control groups: where there can be some, the kernel holds tasks to their bounds, however quick they are."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.worker.executors.tools import command, command_executor, order, outcome, process_executor, result
from tidewheel.worker.execution import End
from tidewheel.worker.executors import watch
from tidewheel.worker.sandbox import cgroups, tree
from tidewheel.worker.sandbox.cgroups import LEAF, find_home, own_groups
from tidewheel.worker.sandbox.layers import Grounds

MIB = 1 << 20
HOG = f"import sys; sys.exit(len(b'x' * (300 * {MIB})) == 0)"

HOME = find_home()
needs_groups = pytest.mark.skipif(HOME is None, reason="no control group was handed over to the tests")


@pytest.fixture
def _blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody watch from outside."""
    monkeypatch.setattr(watch, "_EVERY", 3600.0)


def _left_behind() -> list[Path]:
    assert HOME is not None
    return [path for place in HOME.directories for path in Path(place).glob(f"tide-{os.getpid()}-*")]


@needs_groups
@pytest.mark.usefixtures("_blind")
async def test_a_command_that_wants_too_much_is_killed_by_the_kernel_and_ends_as_oom(tmp_path: Path) -> None:
    async with command_executor(tmp_path) as commands:
        ended_ = await outcome(commands, command(sys.executable, "-c", HOG, memory=100 * MIB))

    assert (ended_.end, ended_.message) == (End.OOM, "the kernel killed it for want of memory")
    assert cgroups.LAYER in ended_.usage.isolation
    await asyncio.get_running_loop().shutdown_default_executor()  # a thread of it removes the group
    assert _left_behind() == []


@needs_groups
@pytest.mark.usefixtures("_blind")
async def test_a_command_whose_child_was_killed_for_want_of_memory_ends_as_oom(tmp_path: Path) -> None:
    script = f'{sys.executable} -c "{HOG}" || exit 3'
    async with command_executor(tmp_path) as commands:
        ended_ = await outcome(commands, command("sh", "-c", script, memory=100 * MIB))

    assert (ended_.end, ended_.message) == (End.OOM, "the kernel killed a process of it for want of memory")


@needs_groups
async def test_a_function_one_of_whose_processes_was_killed_for_want_of_memory_ends_as_oom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "resident", lambda _: 0)  # what is counted from outside says nothing
    async with process_executor(tmp_path) as functions:
        given = order("hog_in_children", {"megabytes": 60, "children": 3}, memory=100 * MIB)
        ended_ = await outcome(functions, given)

    assert (ended_.end, ended_.message) == (
        End.OOM,
        f"wanted more than the {100 * MIB} bytes of memory that were allowed",
    )


@needs_groups
async def test_a_bound_goes_with_the_run_that_had_it(tmp_path: Path) -> None:
    async with command_executor(tmp_path) as commands:
        first = await outcome(commands, command("sh", "-c", "echo $PPID; cat /proc/$PPID/cgroup", memory=100 * MIB))
        second = await outcome(commands, command(sys.executable, "-c", HOG))

    assert "tide-" in result(first)["output"]
    assert second.end is End.RETURNED
    assert cgroups.LAYER in second.usage.isolation, "it was another cell, and this proves nothing"


async def test_without_a_bound_nobody_is_moved(tmp_path: Path) -> None:
    async with command_executor(tmp_path) as commands:
        ended_ = await outcome(commands, command("true"))

    assert cgroups.LAYER not in ended_.usage.isolation


async def test_without_groups_a_bound_is_watched_from_outside(tmp_path: Path) -> None:
    script = f"import threading; block = b'x' * (300 * {MIB}); threading.Event().wait()"
    async with command_executor(tmp_path, grounds=Grounds(cgroups=False)) as commands:
        ended_ = await outcome(commands, command(sys.executable, "-c", script, memory=100 * MIB))

    assert ended_.end is End.OOM
    assert cgroups.LAYER not in ended_.usage.isolation


def test_the_groups_of_a_process_are_found_in_both_versions_and_below_the_root_of_a_mount() -> None:
    groups = ["4:memory:/box/one", "2:cpu,cpuacct:/", "0::/box/one"]
    mounts = [
        "30 1 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory",
        "31 1 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct",
        "32 1 0:28 /box /sys/fs/cgroup/unified rw shared:4 - cgroup2 cgroup2 rw",
        "33 1 0:29 / / rw - ext4 /dev/root rw",
    ]

    assert own_groups(groups, mounts) == {
        "memory": Path("/sys/fs/cgroup/memory/box/one"),
        "cpu": Path("/sys/fs/cgroup/cpu"),
        "cpuacct": Path("/sys/fs/cgroup/cpu"),
        "": Path("/sys/fs/cgroup/unified/one"),
    }


@pytest.fixture
def handed_over() -> Iterator[tuple[Path, str]]:
    """A group of version 2 that is marked as systemd marks what it hands over, with what it offers."""
    own = own_groups(
        Path("/proc/self/cgroup").read_text().splitlines(), Path("/proc/self/mountinfo").read_text().splitlines()
    )
    if "" not in own or not os.access(own[""], os.W_OK):
        pytest.skip("groups of version 2 cannot be made here")
    offered = (own[""] / "cgroup.subtree_control").read_text().split() or (
        own[""] / "cgroup.controllers"
    ).read_text().split()
    if not offered:
        pytest.skip("groups of version 2 have nothing to offer here")
    (own[""] / "cgroup.subtree_control").write_text(f"+{offered[0]}")
    group = own[""] / f"test-{uuid4().hex}"
    group.mkdir()
    try:
        os.setxattr(group, "user.delegate", b"1")
        yield group, offered[0]
    finally:
        for path in (*group.glob("*/"), group):
            path.rmdir()


def test_a_worker_makes_room_in_the_group_that_was_handed_over_to_it(handed_over: tuple[Path, str]) -> None:
    group, offered = handed_over
    code = (
        "from pathlib import Path\n"
        "from tidewheel.worker.sandbox import cgroups\n"
        f"Path({str(group)!r}, 'cgroup.procs').write_text('0')\n"
        f"assert cgroups.find_home([{offered!r}]) is None, 'a group with processes hands nothing on'\n"
        f"cgroups.make_room([{offered!r}])\n"
        f"home = cgroups.find_home([{offered!r}])\n"
        "made = cgroups.group_of(home, 1)\n"
        "made.make()\n"
        f"assert {offered!r} in Path(made.directories[0], 'cgroup.controllers').read_text()\n"
        "made.remove()\n"
        "print(*home.directories, Path('/proc/self/cgroup').read_text())\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert said.stdout.split()[0] == str(group), said.stderr
    assert f"{group.name}/{LEAF}" in said.stdout


@needs_groups
def test_groups_of_workers_that_were_killed_are_removed() -> None:
    assert HOME is not None
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    stale = [Path(place, f"tide-{int(gone.stdout)}-1") for place in HOME.directories]
    ours = cgroups.group_of(HOME, 77)
    ours.make()
    for path in stale:
        path.mkdir()

    cgroups.sweep(HOME)

    assert not any(path.exists() for path in stale)
    assert all(Path(place).exists() for place in ours.directories)
    ours.remove()
