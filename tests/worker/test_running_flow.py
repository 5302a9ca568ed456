"""Limits, chains and groups, and dependencies, through several workers."""

from itertools import pairwise
from uuid import UUID

import pytest

from tests.worker.running import Scene, until
from tidewheel import chain, group
from tidewheel.model.states import State
from tidewheel.sdk.task import Task
from tidewheel.worker.slots import COPY

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("scene", ["sqlite", "postgres"], indirect=True)]
OPTIONS = ("--slots", "2")
LATE = 0.5
"""Seconds; on an idle machine it is a hundredth of one. A worker that looked by itself alone would be later."""


def task(scene: Scene, kind: str) -> Task[..., object]:
    definition = scene.app.registry.get(kind)
    assert definition is not None
    return Task(scene.app, definition)


def test_a_task_with_a_limit_of_one_never_overlaps_across_workers(scene: Scene) -> None:
    if len(scene.workers) < 2:
        scene.start(*OPTIONS, "--no-keeper")
    used: set[UUID | None] = set()

    def both_work() -> bool:
        jobs = [scene.enqueue("add", 1, 1) for _ in range(40)]  # more than one of them takes at a time
        used.update(job.wait("60s").last_worker for job in jobs)
        return len(used) == 2

    until(both_work, "both workers to take jobs")
    jobs = [scene.enqueue("alone", 0.02) for _ in range(12)]

    spans = sorted(job.result("60s") for job in jobs)

    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))


def test_a_task_with_a_rate_starts_as_often_as_it_may_across_workers(scene: Scene) -> None:
    if len(scene.workers) < 2:
        scene.start(*OPTIONS, "--no-keeper")
    jobs = [scene.enqueue("paced") for _ in range(20)]

    begins = sorted(job.result("60s") for job in jobs)

    late = sorted(later - earlier - 0.05 for earlier, later in pairwise(begins))
    print(f"after its token a job began {late[len(late) // 2] * 1000:.0f} ms late, at most {late[-1] * 1000:.0f} ms")
    # The store counts by claims; a body begins some moments after its claim.
    assert begins[-1] - begins[0] > 18 * 0.05
    assert late[len(late) // 2] < LATE


def test_what_a_task_enqueues_goes_to_the_database_of_its_worker(scene: Scene) -> None:
    followers = scene.enqueue("again.async", 2).result("60s")

    assert [scene.app.job(job_id).result("60s") for job_id in followers] == [followers[1:], []]


def test_a_task_that_cannot_reach_the_database_is_told_so_and_enqueues_nothing(scene: Scene) -> None:
    done = scene.enqueue("again.plain", 1).wait("60s")

    assert (done.state, done.error and done.error.reason) == (State.DEAD, "error")
    assert done.error is not None
    assert "database: this task was not told of one" in done.error.message


@pytest.mark.parametrize(
    ("kind", "args", "why"),
    [
        ("leave", ("gather",), "SystemExit: 3"),
        ("leave", ("group",), "SystemExit: 3"),
        ("leave", ("interrupt",), "KeyboardInterrupt"),
        ("leave.told", (), "Leaving: (its text cannot be shown)"),
    ],
)
def test_a_task_that_leaves_the_program_leaves_alone(scene: Scene, kind: str, args: tuple[str, ...], why: str) -> None:
    flag = scene.flag()
    others = [scene.enqueue("wait.async", str(flag)) for _ in range(len(scene.workers))]
    for other in others:
        scene.running(other)

    done = scene.enqueue(kind, *args).wait("60s")
    flag.touch()

    assert (done.state, done.error and done.error.message) == (State.DEAD, why)
    assert [other.wait("60s").token for other in others] == [1] * len(others)
    assert all(other.info().state is State.SUCCEEDED for other in others)


@pytest.mark.parametrize("suspends", [False, True])
def test_a_copy_that_a_task_makes_of_its_runner_ends_when_it_comes_back(scene: Scene, suspends: bool) -> None:  # noqa: FBT001
    assert scene.enqueue("fork.async", suspends=suspends).result("60s") == COPY


def test_results_are_passed_on_through_a_chain_with_a_group(scene: Scene) -> None:
    add, total, echo = task(scene, "add"), task(scene, "sum"), task(scene, "echo")

    job = chain(add.si(1, 2), group(add.s(10), add.s(20)), total.s(), echo.s()).enqueue()

    assert job.result("60s") == 36


def test_a_large_result_is_passed_on_too(scene: Scene) -> None:
    job = chain(task(scene, "text.plain").si(200_000), task(scene, "echo").s()).enqueue()

    assert job.result("60s") == "ä" * 100_000


def test_a_job_waits_for_its_parents_and_is_skipped_if_one_fails(scene: Scene) -> None:
    flag = scene.flag()
    first, second = scene.enqueue("wait.async", str(flag)), scene.enqueue("wait.plain", str(flag))
    child = scene.enqueue("add", 1, 2, using={"after": [first, second]})
    failing = scene.enqueue("end.plain", "fatal", using={"after": child})
    skipped = scene.enqueue("add", 1, 2, using={"after": failing})

    scene.running(first)
    assert child.info().state is State.BLOCKED
    flag.touch()

    assert child.result("60s") == 3
    assert child.info().last_started_at >= max(job.info().finished_at for job in (first, second))  # type: ignore[type-var, operator]
    assert failing.wait("60s").state is State.DEAD
    assert skipped.wait("60s").state is State.SKIPPED
