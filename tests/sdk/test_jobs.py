"""Handles of jobs."""

import asyncio
import inspect
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from tests.sdk.work import end_all
from tidewheel import App, Conflict, Invalid, JobCancelled, JobFailed, NotFound, State
from tidewheel.model.log import LogLine
from tidewheel.model.states import Cause
from tidewheel.sdk import job as sdk_job
from tidewheel.sdk.builtin import Request
from tidewheel.sdk.dead_letters import DeadLetters
from tidewheel.sdk.flow import Flow
from tidewheel.sdk.job import GroupJob, Job
from tidewheel.sdk.limiting import Limits
from tidewheel.sdk.schedules import Schedules
from tidewheel.sdk.task import Signature, Task
from tidewheel.testing import InMemory

TWINS = {"wait": "await_end"}
"""The twins that are not named by an `a`: `await` is a keyword."""
ALONE: dict[type, set[str]] = {
    App: {"task", "job", "run", "use", "pause", "now", "new_id", "declare_limits", "work_for"},
    Schedules: set(),
    Job: set(),
    GroupJob: set(),
    DeadLetters: set(),
    Task: {"using", "s", "si"},
    Signature: {"using", "spec", "lay"},
    Flow: {"lay"},
    Request: {"count", "index"},
    InMemory: set(),
    Limits: set(),
}
"""What has no twin, because it waits for nothing or belongs to one face only."""


@pytest.mark.parametrize("face", ALONE, ids=lambda face: face.__name__)
def test_the_two_faces_are_the_same_but_for_the_waiting(face: type) -> None:
    methods = {name: method for name, method in inspect.getmembers(face, inspect.isfunction) if name[0] != "_"}
    waiting = {name for name, method in methods.items() if inspect.iscoroutinefunction(method)}
    plain = methods.keys() - waiting - ALONE[face]

    assert {TWINS.get(name, f"a{name}") for name in plain} == waiting - ALONE[face]
    for name in plain:
        twin = methods[TWINS.get(name, f"a{name}")]
        assert inspect.signature(methods[name]) == inspect.signature(twin), name
        assert methods[name].__doc__ == twin.__doc__, name


def test_a_result_comes_back_as_the_task_returned_it(app: App) -> None:
    @app.task
    def when() -> datetime: ...  # type: ignore[empty-body]

    job = when.enqueue()
    app.run(end_all(app, datetime(2030, 1, 1, tzinfo=UTC)))

    assert job.result() == datetime(2030, 1, 1, tzinfo=UTC)
    assert app.job(str(job.id)).result(timeout="1s") == datetime(2030, 1, 1, tzinfo=UTC)
    assert job.info().result == "2030-01-01T00:00:00Z"


async def test_a_waiter_sees_the_end_that_comes_later(app: App) -> None:
    @app.task
    def task() -> int: ...  # type: ignore[empty-body]

    job = await task.aenqueue()
    waiter = asyncio.create_task(job.aresult())
    await job.astate()  # the waiter has looked before
    await end_all(app, 5)

    assert await waiter == 5


def test_a_waiter_gives_up_after_its_timeout(app: App) -> None:
    @app.task
    def task() -> None: ...

    job = task.enqueue()
    with pytest.raises(TimeoutError, match=r"still queued after 0\.05 s"):
        job.result(timeout=0.05)
    with pytest.raises(TimeoutError):
        job.wait(timeout=0)


def test_a_job_without_a_result_says_why(app: App) -> None:
    @app.task
    def task() -> None: ...

    dead, cancelled = task.enqueue(), task.using(delay="1h").enqueue()
    app.run(end_all(app, cause=Cause.GAVE_UP))
    cancelled.cancel("not needed")

    with pytest.raises(JobFailed, match=r"is dead \(error: it broke\)") as caught:
        dead.result()
    assert (caught.value.job_id, caught.value.reason, caught.value.message) == (dead.id, "error", "it broke")
    with pytest.raises(JobCancelled) as stopped:
        cancelled.result()
    assert stopped.value.state == State.CANCELLED
    assert dead.wait().state is State.DEAD


def test_a_dead_job_may_be_sent_round_again(app: App) -> None:
    @app.task
    def task() -> None: ...

    job = task.enqueue()
    with pytest.raises(Conflict, match="is queued"):
        job.retry()
    app.run(end_all(app, cause=Cause.GAVE_UP))
    job.retry()

    assert job.state() is State.QUEUED


def test_jobs_that_there_are_not_are_not_found(app: App) -> None:
    unknown = app.job(UUID("01a1e11e-1dcf-707c-9333-56e6668dd66c"))
    bad: Any = 5

    for ask in (unknown.info, unknown.state, unknown.result, unknown.cancel, unknown.retry):
        with pytest.raises(NotFound):
            ask()
    for job_id in ("no id", bad):
        with pytest.raises(Invalid, match="must be the id of a job"):
            app.job(job_id)


def test_the_lines_of_a_job_can_be_read(app: App) -> None:
    @app.task
    def task() -> None: ...

    job = task.enqueue()
    at = datetime(2030, 1, 1, tzinfo=UTC)
    lines = [LogLine(job.id, 1, number, at, "stdout", None, f"line {number}") for number in (1, 2)]
    app.run(app.use(lambda store: store.append_logs(lines)))

    assert [line.text for line in job.logs()] == ["line 1", "line 2"]
    assert [line.text for line in job.logs(limit=1)] == ["line 1"]


def test_all_lines_of_a_job_come_however_many_there_are(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    @app.task
    def task() -> None: ...

    monkeypatch.setattr(sdk_job, "LINES", 2)
    handle = task.enqueue()
    at = datetime(2030, 1, 1, tzinfo=UTC)
    lines = [LogLine(handle.id, 1, number, at, "stdout", None, str(number)) for number in range(5)]
    app.run(app.use(lambda store: store.append_logs(lines)))

    assert [line.text for line in handle.logs()] == ["0", "1", "2", "3", "4"]
    monkeypatch.setattr("tidewheel.store.pages.LINES_BYTES", 1)  # as if each line filled a page
    assert [line.text for line in handle.logs()] == ["0", "1", "2", "3", "4"]
    assert [line.text for line in handle.logs(limit=3)] == ["0", "1", "2"]
    for limit in range(1, 7):
        assert len(handle.logs(limit=limit)) == min(limit, 5)
    with pytest.raises(Invalid):
        handle.logs(limit=0)
