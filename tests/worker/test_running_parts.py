"""A part of a worker alone: it is stopped, and another takes its place; it is flooded, and does not drown."""

import signal

import psutil
import pytest

from tests.worker.running import Scene, Worker, alive, until
from tidewheel.model.states import State

pytestmark = pytest.mark.slow
MIB = 1024 * 1024


def part_of(worker: Worker, role: str) -> psutil.Process:
    module = f"tidewheel.cli.children.{role}"
    [found] = [process for process in worker.children() if module in process.cmdline()]
    return found


# Stopped in the middle of a write it would hold SQLite's lock.
@pytest.mark.parametrize("empty_scene", ["postgres"], indirect=True)
@pytest.mark.parametrize(("role", "kind"), [("runner", "wait.async"), ("host", "wait.plain")])
def test_a_runner_or_host_that_is_stopped_alone_is_replaced_when_its_run_is_overdue(
    empty_scene: Scene, role: str, kind: str
) -> None:
    scene = empty_scene
    worker = scene.start("--slots", "1", "--lease", "2s", "--grace", "500ms")
    flag = scene.flag()
    job = scene.running(scene.enqueue(kind, str(flag), using={"timeout": "1s", "retry": False}))
    part = part_of(worker, role)

    part.send_signal(signal.SIGSTOP)
    info = job.wait("60s")

    assert info.error is not None
    assert (info.state, info.error.reason, info.token, info.losses) == (State.DEAD, "timeout", 1, 0)
    until(lambda: not alive(part), "it to be killed, as nobody wakes it")
    flag.touch()
    assert scene.enqueue(kind, str(flag)).result("60s") == "waited"
    assert worker.popen.poll() is None, "the supervisor goes on"


def test_a_flood_of_output_costs_the_host_no_memory(empty_scene: Scene) -> None:
    scene = empty_scene
    worker = scene.start("--slots", "1", "--inline", "0")
    assert scene.enqueue("flood.plain", 40_000, 100).wait("60s").state is State.SUCCEEDED
    host = part_of(worker, "host")
    before = most = host.memory_info().rss

    flood = scene.enqueue("flood.plain", 600_000, 100)
    while flood.info().finished_at is None:
        most = max(most, host.memory_info().rss)

    assert flood.info().state is State.SUCCEEDED
    assert most - before < 20 * MIB, "of 60 that came"
