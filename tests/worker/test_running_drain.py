"""SIGTERM: what is short may finish, the rest is given back at once, and nothing is left."""

import signal

import pytest

from tests.worker.running import CLOCK, Scene, until
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
