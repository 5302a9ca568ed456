"""How jobs are shown to people."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.builders import NOON, SECOND
from tidewheel.model.job import Job
from tidewheel.model.priority import Priority
from tidewheel.model.states import State
from tidewheel.model.statuses import execution_status, shown_as, task_status


def a_job(state: State, **fields: Any) -> Job:
    times = dict.fromkeys(("created_at", "updated_at", "due_at", "run_at"), NOON)
    plain = {"tenant": "t", "queue": "q", "kind": "k", "token": 0, "failures": 0, "losses": 0}
    return Job(id=UUID(int=1), priority=Priority.LOW, state=state, **{**plain, **times, **fields})


@pytest.mark.parametrize(
    ("job", "shown", "task", "execution"),
    [
        (a_job(State.QUEUED), "queued", "pending", "not_started"),
        (a_job(State.QUEUED, run_at=NOON + SECOND), "scheduled", "scheduled", "not_started"),
        (a_job(State.QUEUED, failures=1), "retrying", "pending", "retrying"),
        (a_job(State.QUEUED, losses=1, run_at=NOON + SECOND), "retrying", "scheduled", "retrying"),
        (a_job(State.QUEUED, gate="hold"), "held", "pending", "not_started"),
        (a_job(State.QUEUED, gate="slow"), "queued", "pending", "not_started"),
        (a_job(State.BLOCKED, run_at=NOON + timedelta(1)), "blocked", "pending", "not_started"),
        (a_job(State.LIMITED), "limited", "pending", "not_started"),
        (a_job(State.RUNNING, token=1), "running", "in_progress", "running"),
        (a_job(State.RUNNING, paused=True), "paused", "in_progress", "running"),
        (a_job(State.RUNNING, paused=True, cancelling=True), "cancelling", "in_progress", "running"),
        (a_job(State.SUCCEEDED, last_started_at=NOON), "succeeded", "completed", "success"),
        (a_job(State.DEAD, last_started_at=NOON), "dead", "errored", "failure"),
        (a_job(State.EXPIRED), "expired", "errored", "not_started"),
        (a_job(State.CANCELLED, last_started_at=NOON), "cancelled", "cancelled", "failure"),
        (a_job(State.DROPPED), "dropped", "cancelled", "not_started"),
        (a_job(State.SKIPPED), "skipped", "cancelled", "not_started"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_both_classic_statuses_can_be_read_off(job: Job, shown: str, task: str, execution: str) -> None:
    assert (shown_as(job, NOON), task_status(job, NOON), execution_status(job)) == (shown, task, execution)
