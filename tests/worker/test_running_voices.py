"""In whatever way a task speaks, it is heard in the log of its run, without secrets, and not in that of the worker."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.worker import voices_app
from tests.worker.running import Scene, a_scene, until
from tidewheel import secret
from tidewheel.model.log_query import LogFilter
from tidewheel.model.states import State
from tidewheel.sdk.job import Job

pytestmark = pytest.mark.slow
both_modes = pytest.mark.parametrize("mode", ["async", "plain"])
levels = pytest.mark.parametrize("scene", ["error", "debug"], indirect=True)
one_level = pytest.mark.parametrize("scene", ["debug"], indirect=True)
PASSWORD = "not for anybody's eyes"


@pytest.fixture(scope="module")
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A worker whose own log has a level."""
    folder: Path = tmp_path_factory.mktemp("scene")
    with pytest.MonkeyPatch.context() as patch, a_scene(folder, "sqlite", None) as scene:
        scene.app.registry, scene.app.callers = voices_app.app.registry, voices_app.app.callers
        patch.setenv("TIDE_SECRET_PASSWORD", PASSWORD)
        scene.start("--slots", "2", "--log-level", request.param, app="tests.worker.voices_app:app")
        yield scene


def heard(job: Job[Any]) -> list[tuple[str, str | None, str]]:
    assert job.wait("60s").state is State.SUCCEEDED, job.info()
    return [(line.stream, line.level, line.text) for line in job.logs()]


def check_worker_is_silent(scene: Scene, *words: str) -> None:
    [worker] = scene.workers
    assert not [word for word in (PASSWORD, *words) if word in worker.said], worker.said


@levels
def test_what_threads_of_an_async_function_print_and_log_is_in_the_log_of_its_run(scene: Scene) -> None:
    jobs = [scene.enqueue("voices.async", secret("password")) for _ in range(3)]

    ways = ("thread", "executor", "pool", "inner thread")
    expected = {("stdout", None, f"{way} printed ***") for way in ways} | {
        ("log", "info", f"{way} logged ***") for way in ways
    }
    assert [(len(lines), set(lines)) for lines in map(heard, jobs)] == [(8, expected)] * 3
    check_worker_is_silent(scene, "printed", "logged ***")


@one_level
def test_a_thread_that_outlives_its_run_is_not_heard_any_more(scene: Scene) -> None:
    ended, over = scene.flag(), scene.flag()
    job = scene.running(scene.enqueue("lingers.async", secret("password"), str(ended), str(over)), "later ***")
    ended.touch()
    assert job.wait("60s").state is State.SUCCEEDED
    before = heard(job)

    assert len(heard(scene.enqueue("voices.async", secret("password")))) == 8, "nor in the log of another run"
    assert heard(job) == before
    assert {text for _, _, text in before} == {"later ***"}
    check_worker_is_silent(scene, "later")
    over.touch()


@levels
@both_modes
def test_the_level_of_the_worker_s_log_changes_nothing_in_that_of_a_job(scene: Scene, mode: str) -> None:
    assert heard(scene.enqueue(f"levels.{mode}")) == [
        ("log", "info", "an info"),
        ("log", "warning", "a warning"),
        ("log", "info", "an info by the context"),
    ]


@one_level
def test_what_programs_of_an_async_function_print_by_themselves_is_nowhere_and_the_worker_says_so(scene: Scene) -> None:
    assert heard(scene.enqueue("programs.async", secret("password"))) == [("stdout", None, "done")]
    [worker] = scene.workers
    until(lambda: "bytes that are dropped" in worker.said, "the worker to say so")
    check_worker_is_silent(scene, "inherited", "given", "asynchronous", "written", "flood")


@one_level
@both_modes
def test_bytes_are_lines_and_fields_of_a_record_can_be_searched_for(scene: Scene, mode: str) -> None:
    job = scene.enqueue(f"otherwise.{mode}", secret("password"))

    assert set(heard(job)) == {
        ("stdout", None, "bytes ***"),
        ("log", "info", '{"msg":"paid 5","order":42,"user":{"id":7,"password":"***"}}'),
        ("log", "warning", '{"msg":"by the context","order":43}'),
    }
    found = scene.store(lambda store: store.search_logs(LogFilter(text="user.id:7", job_id=job.id)))
    assert [line.line.text.partition(",")[0] for line in found.lines] == ['{"msg":"paid 5"']
