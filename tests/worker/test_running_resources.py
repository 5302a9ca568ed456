"""Resources of a host: taken while a run goes on, free at every kind of end, and kept for the large in time."""

from itertools import pairwise

import pytest

from tests.worker.running import Scene, until
from tidewheel.model.states import State

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
    """There is always a small one that waits; without a reservation two of them would always run."""
    small = [scene.enqueue("small", 0.2) for _ in range(4)]
    scene.running(small[0])
    large = scene.enqueue("all.cpu", 0.0, using={"priority": "low"})

    def has_run() -> bool:
        waiting = [job for job in small if job.info().finished_at is None]
        small.extend(scene.enqueue("small", 0.2) for _ in range(4 - len(waiting)))
        return large.info().finished_at is not None

    until(has_run, "the large job to run")
    assert large.info().state is State.SUCCEEDED
    until(lambda: all(job.info().state is State.SUCCEEDED for job in small), "the small ones to run afterwards")
