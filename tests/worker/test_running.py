"""What users see of jobs that a worker has run: results and errors, of async and of plain functions alike."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.worker.running import Scene
from tests.worker.running_app import Visit
from tidewheel import App, Invalid, JobFailed
from tidewheel.model.states import State

pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("scene", ["sqlite", "postgres"], indirect=True),
    pytest.mark.parametrize("mode", ["async", "plain"]),
]
OPTIONS = ("--slots", "4")
AT = datetime(2030, 1, 1, 12, tzinfo=UTC)


def test_arguments_and_results_come_as_their_annotations_say(scene: Scene, mode: str) -> None:
    job = scene.enqueue(f"later.{mode}", Visit("ann", AT), by=timedelta(minutes=5))

    assert job.result("60s") == Visit("ANN", AT + timedelta(minutes=5))
    assert job.info().result == {"who": "ANN", "at": "2030-01-01T12:05:00Z"}


def test_a_large_result_lies_in_the_blobs_and_comes_back_all_the_same(scene: Scene, mode: str) -> None:
    job = scene.enqueue(f"text.{mode}", 1_000_000)

    assert job.result("60s") == "ä" * 500_000
    info = job.info()
    assert info.result is None
    assert (info.result_location or "").startswith("blob:")


def test_a_result_beyond_all_bounds_ends_its_job_with_one_reason_and_the_worker_goes_on(
    scene: Scene, mode: str
) -> None:
    job = scene.enqueue(f"text.{mode}", 100_000_000)

    info = job.wait("60s")
    assert (info.state, info.token) == (State.DEAD, 1)
    assert info.error is not None
    assert info.error.message.startswith("the result cannot be stored: must have at most 67108864 bytes as JSON")
    assert scene.enqueue(f"text.{mode}", 2).result("60s") == "ä"


def test_a_result_that_is_no_json_ends_its_job_with_one_reason(scene: Scene, mode: str) -> None:
    info = scene.enqueue(f"odd.{mode}").wait("60s")

    assert (info.state, info.token) == (State.DEAD, 1)
    assert info.error is not None
    assert info.error.reason == "fatal"
    assert info.error.message == (
        "the result cannot be stored: at ['when']: must be made of JSON values, without set; send it as text or number"
    )


def test_retry_is_tried_again_after_its_wait(scene: Scene, mode: str) -> None:
    job = scene.enqueue(f"end.{mode}", "retry")

    assert job.result("60s") == "attempt 2"
    [first, last] = scene.attempts(job)
    assert (first.cause, first.error.reason, first.error.message) == ("failed", "retry", "not yet")
    assert last.cause == "returned"


def test_fatal_is_not_tried_again(scene: Scene, mode: str) -> None:
    info = scene.enqueue(f"end.{mode}", "fatal").wait("60s")

    assert (info.state, info.failures, info.token) == (State.DEAD, 1, 1)
    assert info.error is not None
    assert (info.error.reason, info.error.message) == ("fatal", "no such order")


def test_exceptions_are_tried_again_as_the_policy_says(scene: Scene, mode: str) -> None:
    assert scene.enqueue(f"end.{mode}", "twice").result("60s") == "attempt 3"


def test_exhausted_attempts_end_a_job_with_its_traceback(scene: Scene, mode: str) -> None:
    job = scene.enqueue(f"end.{mode}", "error")

    with pytest.raises(JobFailed, match="ValueError: attempt 3 broke"):
        job.result("60s")
    info = job.info()
    assert (info.state, info.failures, info.losses) == (State.DEAD, 3, 0)
    assert info.error is not None
    assert "in raised" in (info.error.detail or "")
    assert "tidewheel/worker" not in (info.error.detail or "")
    assert [attempt.error.message for attempt in scene.attempts(job)] == [
        f"ValueError: attempt {number} broke" for number in (1, 2, 3)
    ]


def test_nul_is_refused_when_the_job_is_enqueued(scene: Scene, mode: str) -> None:
    with pytest.raises(Invalid, match="NUL"):
        scene.enqueue(f"end.{mode}", "a\0b")


def test_a_kind_that_a_worker_does_not_know_stays_in_the_queue(scene: Scene, mode: str) -> None:
    foreign = App(scene.database).task(name="foreign", process=mode == "plain")(_nothing).enqueue()

    assert scene.enqueue(f"text.{mode}", 2).result("60s") == "ä"
    assert (foreign.info().state, foreign.info().token) == (State.QUEUED, 0)


async def _nothing() -> None: ...
