"""Resources of a host: taken while a run goes on, free at every kind of end, and kept for the large in time."""

from itertools import pairwise
from typing import Any

import pytest

from tests.worker.running import Scene, until
from tidewheel.model.states import State
from tidewheel.sdk.job import Job

pytestmark = pytest.mark.slow
OPTIONS = ("--slots", "4", "--resource", "cpu=2", "--grace", "1s", "--reserve-after", "1s")
both_stores = pytest.mark.parametrize("scene", ["sqlite", "postgres"], indirect=True)


@both_stores
def test_jobs_that_need_everything_never_overlap(scene: Scene) -> None:
    jobs = [scene.enqueue("all.cpu", 0.1) for _ in range(4)]

    spans = sorted(job.result("60s") for job in jobs)

    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))


@pytest.mark.parametrize("how", ["success", "failure", "cancel", "timeout", "crash"])
def test_what_was_taken_is_free_after_every_kind_of_end(scene: Scene, how: str) -> None:
    job = scene.enqueue("cpu.end", how, using={"timeout": "200ms" if how == "timeout" else "60s"})
    if how == "cancel":
        scene.running(job).cancel()

    ends = {"success": State.SUCCEEDED, "cancel": State.CANCELLED}
    assert job.wait("60s").state is ends.get(how, State.DEAD)
    assert scene.enqueue("all.cpu", 0.0).result("60s")


def test_a_run_that_uses_more_memory_than_it_asked_for_ends_with_that_reason(scene: Scene) -> None:
    job = scene.enqueue("hog", 512)

    info = job.wait("60s")

    assert info.error is not None
    assert (info.state, info.error.reason) == (State.DEAD, "oom")
    assert scene.enqueue("hog", 1).result("60s") == 1 << 20


@both_stores
def test_small_jobs_do_not_starve_a_large_one(scene: Scene) -> None:
    """One of the two that run ends when the next is there, the other when that has begun: never is all free at once."""
    small = [Small(scene) for _ in range(2)]
    for one in small:
        scene.running(one.job)
    large = scene.enqueue("all.cpu", 0.0, using={"priority": "low"})

    def has_run() -> bool:
        running = [one for one in small if one.job.info().state is State.RUNNING]
        waiting = [one for one in small if one.job.info().state is State.QUEUED]
        waiting += [Small(scene) for _ in range(2 - len(waiting))]
        small.extend(one for one in waiting if one not in small)
        for one in running[:1]:
            one.flag.touch()
        if not begins(waiting[0].job):  # though there is room: it is kept
            for one in running:
                one.flag.touch()
        return large.info().finished_at is not None

    until(has_run, "the large job to run", within=30)
    assert large.info().state is State.SUCCEEDED
    for one in small:
        one.flag.touch()
    assert {one.job.wait("60s").state for one in small} == {State.SUCCEEDED}


class Small:
    """A job that takes half of the worker until it is told to end."""

    def __init__(self, scene: Scene) -> None:
        self.flag = scene.flag()
        self.job = scene.enqueue("small", str(self.flag))


def begins(job: Job[Any]) -> bool:
    """Tell whether a job begins within a time that is long for a worker with room."""
    try:
        until(lambda: job.info().last_started_at is not None, "it to begin", within=2)
    except AssertionError:
        return False
    return True
