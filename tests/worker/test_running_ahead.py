"""A host claims a little ahead of its slots, and keeps nobody waiting for that."""

import pytest

from tests.worker.running import Scene, until
from tidewheel.model.states import State
from tidewheel.sdk.job import Job

pytestmark = pytest.mark.slow
SLOTS = ("--slots", "4", "--inline", "0")
QUICK = 400
"""Enough short runs for the host to learn that runs are short."""


def stuck_behind_long_runs(scene: Scene, flag: str) -> list[Job[str]]:
    """Have a worker learn that runs are short, and then take long ones; return those that it took and gave back."""
    for _ in range(QUICK):
        scene.enqueue("sum", [1, 2])
    long = [scene.enqueue("wait.plain", flag) for _ in range(12)]
    scene.start(*SLOTS)

    def given_back() -> list[Job[str]]:
        infos = [(job, job.info()) for job in long]
        running = [info for _, info in infos if info.state is State.RUNNING]
        back = [job for job, info in infos if info.state is State.QUEUED and info.token > 0]
        return back if len(running) == 4 else []

    return until(given_back, "runs to be claimed ahead and given back")


def test_what_cannot_start_is_given_back_and_runs_elsewhere_uncounted(empty_scene: Scene) -> None:
    flag = empty_scene.flag()
    back = stuck_behind_long_runs(empty_scene, str(flag))

    empty_scene.start("--slots", "12", "--inline", "0")

    for job in back:
        empty_scene.running(job)
    flag.touch()
    ends = [job.wait("60s") for job in back]
    assert {(end.state, end.failures, end.losses) for end in ends} == {(State.SUCCEEDED, 0, 0)}
    assert all(not empty_scene.attempts(job)[:-1] for job in back), "no attempt was counted for the wait"


def test_an_urgent_job_is_not_kept_waiting_by_what_was_claimed_ahead(empty_scene: Scene) -> None:
    scene = empty_scene
    flag, urgent_flag = scene.flag(), scene.flag()
    for _ in range(QUICK):
        scene.enqueue("sum", [1, 2], using={"priority": "low"})
    low = [scene.enqueue("low.pause", str(flag)) for _ in range(12)]
    scene.start(*SLOTS)
    until(lambda: sum(job.info().token > 0 for job in low) > 4, "runs to be claimed ahead")

    urgent = scene.running(scene.enqueue("urgent", str(urgent_flag)))

    urgent_flag.touch()
    assert urgent.wait("60s").state is State.SUCCEEDED
    flag.touch()
    assert {job.wait("60s").state for job in low} == {State.SUCCEEDED}
