"""SIGTERM: what is short may finish, the rest is given back at once, and nothing is left."""

import signal
import socket
from collections.abc import Iterator

import pytest

from tests.worker.running import CLOCK, DEADLINE, Scene, until
from tidewheel.model.states import State

pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize(
        "empty_scene", ["sqlite", pytest.param("postgres", marks=pytest.mark.proof)], indirect=True
    ),
]
LEASE = 30.0


def ended(scene: Scene) -> bool:
    return not scene.store(lambda store: store.workers(alive=True))


def test_a_drain_lets_short_tasks_finish_and_gives_long_ones_back(empty_scene: Scene) -> None:
    scene = empty_scene
    first = scene.start("--slots", "2", "--drain", "3s")
    short, long = scene.flag(), scene.flag()
    finishing = [scene.running(scene.enqueue(kind, str(short))) for kind in ("wait.async", "wait.plain")]
    going_on = [scene.running(scene.enqueue(kind, str(long))) for kind in ("wait.async", "wait.plain")]
    scene.start("--slots", "2")
    began = CLOCK.monotonic()

    first.tell(signal.SIGTERM)
    short.touch()
    assert scene.enqueue("add", 1, 2).result("60s") == 3, "the other one takes it"

    assert [job.result("60s") for job in finishing] == ["waited", "waited"]
    assert [job.info().token for job in finishing] == [1, 1]
    until(lambda: all(job.info().token == 2 for job in going_on), "the long ones to run elsewhere")
    assert CLOCK.monotonic() - began < LEASE / 2
    long.touch()
    assert [job.result("60s") for job in going_on] == ["waited", "waited"]
    assert [(job.info().failures, job.info().losses) for job in going_on] == [(0, 0), (0, 0)]
    assert first.gone() == 0, first.said
    assert "Traceback" not in first.said


def test_a_second_signal_hurries(empty_scene: Scene) -> None:
    scene = empty_scene
    worker = scene.start("--slots", "1", "--drain", "10m")
    jobs = [scene.running(scene.enqueue(kind, str(scene.flag()))) for kind in ("wait.async", "wait.plain")]

    worker.tell(signal.SIGTERM)
    until(lambda: "has 600 s to end" in worker.said, "the first signal to be heard")
    assert [job.info().state for job in jobs] == [State.RUNNING] * 2
    worker.tell(signal.SIGTERM)

    assert worker.gone() == 0, worker.said
    assert [(job.info().state, job.info().losses) for job in jobs] == [(State.QUEUED, 0)] * 2
    assert ended(scene)


@pytest.fixture
def silent_blobs(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """Where blobs are sent to, and never answered."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(DEADLINE)
        yield server


@pytest.mark.parametrize("task", ["command", "text.async"])
def test_what_is_not_stored_within_the_time_of_a_drain_is_given_back(
    empty_scene: Scene, silent_blobs: socket.socket, task: str
) -> None:
    scene, port = empty_scene, silent_blobs.getsockname()[1]
    blobs = f"s3://bucket/prefix?endpoint=http://127.0.0.1:{port}&region=us-east-1"
    worker = scene.start("--slots", "1", "--no-keeper", "--drain", "0s", "--blobs", blobs)
    script = "echo all > $TIDE_OUTPUT_DIR/file"
    job = scene.app.command(["sh", "-c", script]) if task == "command" else scene.enqueue(task, 200_000)
    sending, _ = silent_blobs.accept()

    with sending:
        worker.tell(signal.SIGTERM)
        assert worker.gone() == 0, worker.said

    info = job.info()
    assert (info.state, info.token, info.failures, info.losses) == (State.QUEUED, 1, 0, 0)
    assert "Traceback" not in worker.said
