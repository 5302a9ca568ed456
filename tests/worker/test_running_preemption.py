"""Preemption: an urgent job starts though all slots are taken, and who made way goes on. How soon is for the bench."""

import signal
from datetime import timedelta

import pytest

from tests.worker.running import CLOCK, Scene, until
from tidewheel.model.states import State
from tidewheel.tasks.definition import Preempt

pytestmark = pytest.mark.slow
OPTIONS = ("--slots", "2", "--inline", "0")
both_stores = pytest.mark.parametrize("scene", ["sqlite", "postgres"], indirect=True)


@both_stores
def test_an_urgent_job_starts_while_those_that_can_be_paused_are_unfinished(scene: Scene) -> None:
    flag, urgent_flag = scene.flag(), scene.flag()
    low = [scene.running(scene.enqueue("low.pause", str(flag), using={"retry": False})) for _ in range(2)]

    urgent = scene.running(scene.enqueue("urgent", str(urgent_flag)))

    until(lambda: [job.info().paused for job in low].count(True) == 1, "one to be shown as paused")
    assert {job.info().state for job in low} == {State.RUNNING}

    urgent_flag.touch()
    assert urgent.wait("60s").state is State.SUCCEEDED
    until(lambda: not any(job.info().paused for job in low), "the paused one to go on")
    flag.touch()
    assert {(job.wait("60s").state, job.info().token) for job in low} == {(State.SUCCEEDED, 1)}


def test_who_holds_a_limit_key_that_the_urgent_job_needs_does_not_make_way(empty_scene: Scene) -> None:
    scene = empty_scene
    scene.start("--slots", "1", "--inline", "0")
    flag = scene.flag()
    low = scene.running(scene.enqueue("low.shared", str(flag)))
    urgent = scene.enqueue("urgent.shared", str(flag))
    until(lambda: urgent.info().state is State.RUNNING, "the urgent job to be claimed")

    assert not low.info().paused
    flag.touch()
    ended, began = low.result("60s")[1], urgent.result("60s")[0]
    assert ended <= began
    assert low.info().token == 1


def test_a_timeout_does_not_run_while_a_run_is_paused(scene: Scene) -> None:
    flag, urgent_flag = scene.flag(), scene.flag()
    first = scene.running(scene.enqueue("urgent", str(urgent_flag)))
    low = scene.running(scene.enqueue("low.pause", str(flag), using={"timeout": 4, "retry": False}))
    second = scene.running(scene.enqueue("urgent", str(urgent_flag)))
    until(lambda: low.info().paused, "the pause")
    started = low.info().last_started_at
    assert started is not None

    until(lambda: CLOCK.now() - started > timedelta(seconds=5), "more time to pass than it has")
    assert low.info().paused
    flag.touch()
    urgent_flag.touch()

    assert {job.wait("60s").state for job in (first, second, low)} == {State.SUCCEEDED}
    assert low.info().token == 1


def test_who_allows_it_is_put_back_and_run_again_uncounted(scene: Scene) -> None:
    flag, urgent_flag = scene.flag(), scene.flag()
    low = [scene.running(scene.enqueue("low.requeue", str(flag))) for _ in range(2)]

    urgent = scene.running(scene.enqueue("urgent", str(urgent_flag)))
    until(lambda: {job.info().state for job in low} == {State.RUNNING, State.QUEUED}, "one to be put back")
    urgent_flag.touch()
    flag.touch()

    assert urgent.wait("60s").state is State.SUCCEEDED
    ends = [job.wait("60s") for job in low]
    assert [(end.state, end.failures, end.losses) for end in ends] == [(State.SUCCEEDED, 0, 0)] * 2
    assert sorted(end.token for end in ends) == [1, 2]


def test_a_paused_run_goes_on_by_itself_after_the_longest_pause(empty_scene: Scene) -> None:
    scene = empty_scene
    scene.start("--slots", "1", "--inline", "0", "--longest-pause", "1s")
    flag, urgent_flag = scene.flag(), scene.flag()
    low = scene.running(scene.enqueue("low.pause", str(flag)))
    urgent = scene.running(scene.enqueue("urgent", str(urgent_flag)))
    until(lambda: low.info().paused, "the pause")

    flag.touch()
    assert low.wait("60s").state is State.SUCCEEDED
    assert urgent.info().state is State.RUNNING
    urgent_flag.touch()
    assert urgent.wait("60s").state is State.SUCCEEDED


def test_a_paused_run_whose_worker_is_killed_runs_elsewhere(empty_scene: Scene) -> None:
    scene = empty_scene
    first = scene.start("--slots", "1", "--inline", "0", "--lease", "2s")
    flag, urgent_flag = scene.flag(), scene.flag()
    low = scene.running(scene.enqueue("low.pause", str(flag)))
    urgent = scene.running(scene.enqueue("urgent", str(urgent_flag)))
    until(lambda: low.info().paused, "the pause")

    first.tell(signal.SIGKILL)
    first.all_dead()
    flag.touch()
    urgent_flag.touch()
    scene.start("--slots", "2", "--inline", "0", "--lease", "2s")

    for job in (low, urgent):
        info = job.wait("60s")
        assert (info.state, info.token, info.losses, info.paused) == (State.SUCCEEDED, 2, 1, False)


@pytest.mark.parametrize("preempt", ["pause", "requeue"])
def test_a_command_that_says_so_makes_way_for_an_urgent_job(empty_scene: Scene, preempt: Preempt) -> None:
    scene = empty_scene
    scene.start("--slots", "1", "--inline", "0")
    flag, urgent_flag = scene.flag(), scene.flag()
    script = f"while [ ! -e {flag} ]; do sleep 0.05; done"
    low = scene.running(scene.app.command(["sh", "-c", script], preempt=preempt, priority="low"))
    urgent = scene.running(scene.enqueue("urgent", str(urgent_flag)))

    def has_made_way() -> bool:
        info = low.info()
        return info.paused if preempt == "pause" else info.state is State.QUEUED

    until(has_made_way, "the command to make way")
    urgent_flag.touch()
    flag.touch()

    assert urgent.wait("60s").state is State.SUCCEEDED
    assert (low.wait("60s").state, low.info().failures) == (State.SUCCEEDED, 0)
