"""The harness sees who is there, which part each plays, and when each dies."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.checker.records import Death, Kill, Left
from harness.cluster import Cluster, wait_until, worker_command
from harness.journal import Journal, recorded
from harness.processes import Process, Role, Watch, command_of, descendants, look_at, roles, send

PATIENCE = 30.0
ALL: tuple[Role, ...] = ("supervisor", "runner", "host", "launcher", "task")

TREE = """
import os, sys, time
def start(*names):
    if names and os.fork() == 0:
        os.environ["BELOW"] = " ".join(names[1:])
        os.execv(sys.executable, [sys.executable, __file__, names[0]])
if len(sys.argv) == 1:
    start("tidewheel.worker.runner")
    start("tidewheel.worker.host", "tidewheel.worker.launcher", "pool", "grandchild")
else:
    start(*os.environ["BELOW"].split())
time.sleep(600)
"""


@contextmanager
def child_of_ours(*words: str) -> Iterator[subprocess.Popen[str]]:
    """A process that sleeps, unless it is told what to do, and does not outlive the test."""
    with subprocess.Popen(words or ["sleep", "600"], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert wait_until(lambda: bool(words) or command_of(child.pid) == "sleep 600", PATIENCE), "it never began"
            yield child
        finally:
            child.kill()


def _process(pid: int, parent: int) -> Process:
    return Process(pid=pid, start=0, parent=parent, state="S")


def test_parts_are_known_by_their_words_and_by_their_place() -> None:
    tree = [_process(pid, parent) for pid, parent in [(2, 1), (3, 1), (4, 3), (5, 4), (6, 5), (7, 2), (8, 3)]]
    titles = {
        2: "python -m tidewheel.cli.children.runner 1 2 3",
        3: "python -m tidewheel.cli.children.host 1 2 3",
        4: "python -m tidewheel.worker.launcher",
        8: "/bin/sh -c x",
    }

    assert roles(1, tree, titles) == {
        1: "supervisor",
        2: "runner",
        3: "host",
        4: "launcher",
        5: "task",
        6: "task",
        8: "task",
    }


def test_a_signal_does_not_reach_another_process_with_the_same_number() -> None:
    with child_of_ours() as child:
        now = look_at(child.pid)
        assert now is not None

        assert not send(now._replace(start=now.start - 1), signal.SIGKILL)
        assert child.poll() is None
        assert send(now, signal.SIGKILL)
        child.wait()
        assert not send(now, signal.SIGKILL)


def test_a_watch_tells_of_deaths_of_those_who_are_not_our_children() -> None:
    code = "import subprocess; child = subprocess.Popen(['sleep', '600']); print(child.pid, flush=True); child.wait()"
    with child_of_ours(sys.executable, "-c", code) as parent:
        assert parent.stdout is not None
        grandchild = look_at(int(parent.stdout.readline()))
        assert grandchild is not None
        watch = Watch()
        watch.add(grandchild)

        assert list(watch.deaths(0)) == []
        assert grandchild.name in {process.name for process in descendants(os.getpid())}
        send(grandchild, signal.SIGKILL)

        assert list(watch.deaths(PATIENCE)) == [grandchild]
        watch.close()


def test_the_command_of_a_process_that_is_gone_is_empty() -> None:
    with child_of_ours() as child:
        assert command_of(child.pid) == "sleep 600"
    assert command_of(child.pid) == ""
    assert look_at(child.pid) is None


@pytest.mark.chaos
def test_a_cluster_sees_the_parts_of_a_worker_and_every_death(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    program = tmp_path / "worker.py"
    program.write_text(TREE)
    with Cluster(tmp_path, journal, [sys.executable, str(program)]) as cluster:
        worker = cluster.start()
        # What is about to become a part still has the words of its parent: wait until all have found themselves.
        assert wait_until(lambda: all(worker.parts(role) for role in ALL) and len(worker.tree()) == 6, PATIENCE)
        [runner], [host], [launcher] = worker.parts("runner"), worker.parts("host"), worker.parts("launcher")
        tasks = worker.parts("task")

        assert cluster.kill([launcher], "launcher") == 1
        assert wait_until(lambda: _dead(tmp_path) == {launcher.pid}, PATIENCE)
        # Its orphans came to us, and are still the cluster's.
        assert {process.parent for process in cluster.left() if process.pid == tasks[0].pid} == {os.getpid()}
        assert cluster.stop(PATIENCE)
        cluster.report_left(patience=0.2)

    assert {record.pid for record in recorded(tmp_path) if isinstance(record, Kill)} == {launcher.pid}
    left = {record.pid for record in recorded(tmp_path) if isinstance(record, Left)}
    assert left == {runner.pid, host.pid, *(task.pid for task in tasks)}
    assert _dead(tmp_path) == {worker.pid, launcher.pid} | left
    assert all(look_at(pid) is None for pid in left), "they were reaped, too"
    journal.close()


def _dead(folder: Path) -> set[int]:
    return {record.pid for record in recorded(folder) if isinstance(record, Death)}


def test_children_that_were_there_before_are_left_alone(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with child_of_ours() as ours:
        with Cluster(tmp_path, journal, ["sleep", "600"]) as cluster:
            worker = cluster.start()

            assert [process.pid for process in cluster.left()] == [worker.pid]
        assert ours.poll() is None
        assert not worker.running
    journal.close()


def test_a_worker_is_started_with_one_set_of_words() -> None:
    words = worker_command("sqlite:///x.db", inline=1, slots=4, lease=2.0)

    assert words[1:4] == ["-m", "tidewheel.cli.main", "worker"]
    assert words[-6:] == ["--lease", "2s", "--grace", "2s", "--env", "CHAOS_DATABASE"]
