"""Cancellations and timeouts: soon, with the reason, and nothing is left running."""

from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.worker.running import CLOCK, Scene, texts, until
from tidewheel import JobCancelled
from tidewheel.model.states import State
from tidewheel.sdk.job import Job

pytestmark = pytest.mark.slow
OPTIONS = ("--slots", "4", "--grace", "1s", "--lease", "10m")
SOON = 20.0
"""Seconds; much less than the time between two beats of a lease that long, so that hints alone can carry it."""


def cancelled_soon(job: Job[Any]) -> None:
    began = CLOCK.monotonic()
    job.cancel("enough")
    info = job.wait("60s")
    assert info.state is State.CANCELLED
    assert info.error is not None
    assert (info.error.reason, info.error.message) == ("cancelled", "enough")
    assert CLOCK.monotonic() - began < SOON


def nothing_runs(word: Path) -> None:
    """See that no process has this file among its words."""

    def named() -> list[psutil.Process]:
        return [one for one in psutil.process_iter(["cmdline"]) if str(word) in " ".join(one.info["cmdline"] or ())]

    assert not named()


@pytest.mark.parametrize("scene", ["sqlite", "postgres"], indirect=True)
@pytest.mark.parametrize("kind", ["wait.async", "wait.looks", "wait.plain"])
def test_a_running_function_is_cancelled_soon(scene: Scene, kind: str) -> None:
    job = scene.running(scene.enqueue(kind, str(scene.flag())))

    cancelled_soon(job)

    assert texts(job) == ([] if kind == "wait.plain" else ["cancelled"])
    assert job.info().token == 1


@pytest.mark.parametrize("scene", ["sqlite", "postgres"], indirect=True)
def test_an_async_function_that_ignores_its_cancellation_is_cancelled_all_the_same(scene: Scene) -> None:
    job = scene.running(scene.enqueue("cling"), "begun")

    cancelled_soon(job)

    assert scene.enqueue("add", 1, 2).result("60s") == 3, "another runner is there"


@pytest.mark.parametrize("script", ["sleep 60 # {}", "trap '' TERM; sleep 60 & sleep 60 # {}"])
def test_a_command_is_cancelled_soon_with_all_that_it_started(scene: Scene, script: str) -> None:
    flag = scene.flag()
    job = scene.running(scene.app.command(["sh", "-c", "echo begun; " + script.format(flag)]), "begun")

    cancelled_soon(job)

    nothing_runs(flag)


def test_a_waiting_job_is_cancelled_at_once_and_never_starts(scene: Scene) -> None:
    job = scene.enqueue("add", 1, 2, using={"delay": "1h"})

    assert job.cancel().state is State.CANCELLED
    assert job.info().token == 0
    with pytest.raises(JobCancelled):
        job.result("60s")


@pytest.mark.parametrize("kind", ["wait.async", "wait.looks", "wait.plain"])
def test_a_function_that_takes_too_long_is_ended_with_the_reason(scene: Scene, kind: str) -> None:
    info = scene.enqueue(kind, str(scene.flag()), using={"timeout": "200ms", "retry": False}).wait("60s")

    assert (info.state, info.token, info.failures) == (State.DEAD, 1, 1)
    assert info.error is not None
    assert (info.error.reason, info.error.message) == ("timeout", "ran longer than its timeout")


@pytest.mark.parametrize("script", ["sleep 60 # {}", "trap '' TERM; sleep 60 & sleep 60 # {}"])
def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(scene: Scene, script: str) -> None:
    flag = scene.flag()
    info = scene.app.command(["sh", "-c", script.format(flag)], timeout="200ms", retry=False).wait("60s")

    assert (info.state, info.token) == (State.DEAD, 1)
    assert info.error is not None
    assert (info.error.reason, info.error.message) == ("timeout", "ran longer than its timeout")
    nothing_runs(flag)


def test_a_timeout_is_tried_again_as_the_policy_says(scene: Scene) -> None:
    flag = scene.flag()
    job = scene.enqueue("wait.async", str(flag), using={"timeout": "200ms"})

    until(lambda: scene.attempts(job), "the first attempt to end")
    flag.touch()

    assert scene.attempts(job)[0].error.reason == "timeout"
    job.cancel()


@pytest.mark.parametrize(
    "kind",
    ["block", pytest.param("block.below", marks=pytest.mark.proof), pytest.param("cling", marks=pytest.mark.proof)],
)
def test_an_async_function_that_does_not_let_go_is_ended_with_its_runner(empty_scene: Scene, kind: str) -> None:
    """The beats go on meanwhile: the loop is held for longer than the lease of 2 s, and the host stays who it is."""
    scene = empty_scene
    scene.start("--slots", "1", "--lease", "2s", "--grace", "3s")
    flag = scene.flag()
    hosted = scene.running(scene.enqueue("wait.plain", str(flag)))
    beside = scene.running(scene.enqueue("wait.async", str(flag)))
    host = hosted.info().last_worker
    args = () if kind == "cling" else (30.0,)

    info = scene.enqueue(kind, *args, using={"timeout": "1s"}).wait("60s")

    assert (info.state, info.token, info.losses) == (State.DEAD, 1, 0)
    assert info.error is not None
    assert info.error.reason == "timeout"
    assert "its runner was ended" in info.error.message
    until(lambda: beside.info().token == 2, "the other job of that runner to run again")
    flag.touch()
    assert beside.result("60s") == "waited"
    assert (beside.info().failures, beside.info().losses) == (0, 0)
    assert hosted.result("60s") == "waited"
    assert (hosted.info().token, hosted.info().last_worker) == (1, host)
    alive = {worker.id: worker for worker in scene.store(lambda store: store.workers(alive=True))}
    assert alive[host].clock_ahead is not None, "it says with each beat what its clock says"
