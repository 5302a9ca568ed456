"""However a task ends, that means the same to a worker and to `tidewheel.testing`."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.worker.running import Scene, until
from tests.worker.running_app import ONCE_MORE, app
from tidewheel.model.job import DEFAULT_TIMEOUT, JobSpec, Options
from tidewheel.model.states import State
from tidewheel.testing import in_memory

pytestmark = pytest.mark.slow
OPTIONS = ("--slots", "2")
ENDINGS = {
    "return": State.SUCCEEDED,
    "null": State.SUCCEEDED,
    "large": State.SUCCEEDED,
    "retry": State.QUEUED,
    "error": State.QUEUED,
    "exit": State.QUEUED,
    "exit with words": State.QUEUED,
    "interrupt": State.QUEUED,
    "cancelled": State.QUEUED,
    "cancels itself": State.QUEUED,
    "no memory": State.QUEUED,
    "timeout": State.QUEUED,
    "fatal": State.DEAD,
    "not JSON": State.DEAD,
    "too large": State.DEAD,
    "wrong arguments": State.DEAD,
}
Ask = Callable[[Callable[[Any], Any]], Any]


def spec_of(kind: str, how: str) -> JobSpec:
    timeout = timedelta(seconds=0.3) if how == "timeout" else DEFAULT_TIMEOUT
    args = {"whom": how} if how == "wrong arguments" else {"how": how}
    return JobSpec(kind=kind, args=args, options=Options(retry=ONCE_MORE, timeout=timeout))


def submitted(ask: Ask, spec: JobSpec) -> UUID:
    [answer] = ask(lambda store: store.submit([spec]))
    job_id: UUID = answer.job_id
    return job_id


def end_of(ask: Ask, job_id: UUID) -> tuple[Any, ...] | None:
    """Return all that is known of the end of a job's first attempt, once there is one."""
    attempts = ask(lambda store: store.attempts(job_id))
    if not attempts:
        return None
    [attempt], info = attempts, ask(lambda store: store.get(job_id))
    error = attempt.error
    told = None if error is None else (error.reason, error.message, error.exit_code)
    return info.state, attempt.cause, told, info.result, info.result_location is None, info.failures, info.losses


@pytest.mark.parametrize(
    ("kind", "how"),
    [("ends.async", how) for how in ENDINGS] + [("ends.plain", how) for how in ENDINGS if how != "cancels itself"],
)
def test_a_task_ends_in_a_test_as_it_ends_with_a_worker(scene: Scene, kind: str, how: str) -> None:
    spec = spec_of(kind, how)
    there = submitted(scene.store, spec)
    with in_memory(app) as test:

        def ask(work: Callable[[Any], Any]) -> Any:
            return app.run(app.use(work))

        here = submitted(ask, spec)
        [ran] = test.run_inline()
        found = end_of(ask, here)
        value = app.job(here).result() if ran.state is State.SUCCEEDED else None

    assert found is not None
    assert found[0] is ENDINGS[how]
    assert until(lambda: end_of(scene.store, there), "the worker to end it") == found
    assert value == (scene.app.job(there).result() if ran.state is State.SUCCEEDED else None)
    assert ran.error == (found[2][1] if found[2] else "")
