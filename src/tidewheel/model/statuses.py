"""How a job is shown to people: one word for what it is, and the two classic statuses of task and execution; pure."""

from datetime import datetime
from typing import Final, Literal, cast

from tidewheel.model.gate import GateMode
from tidewheel.model.job import Job
from tidewheel.model.states import FINAL, State

Shown = Literal[
    "blocked",
    "scheduled",
    "queued",
    "retrying",
    "held",
    "limited",
    "running",
    "paused",
    "cancelling",
    "succeeded",
    "dead",
    "cancelled",
    "expired",
    "dropped",
    "skipped",
]
TaskStatus = Literal["pending", "scheduled", "in_progress", "completed", "errored", "cancelled"]
ExecutionStatus = Literal["not_started", "running", "success", "failure", "retrying"]
"""Claimed and running are one: a worker takes only what it can start at once."""

_TASK_ENDS: Final[dict[State, TaskStatus]] = {
    State.SUCCEEDED: "completed",
    State.DEAD: "errored",
    State.EXPIRED: "errored",
    State.CANCELLED: "cancelled",
    State.DROPPED: "cancelled",
    State.SKIPPED: "cancelled",
}


def shown_as(job: Job, now: datetime) -> Shown:
    """Return the word that says most about a job: a queued one may be held, wait for its time, or be tried again."""
    if job.state is State.RUNNING:
        return "cancelling" if job.cancelling else "paused" if job.paused else "running"
    if job.state is not State.QUEUED:
        return cast("Shown", job.state.value)
    if job.gate in (GateMode.HOLD, GateMode.DROP):
        return "held"
    if _tried(job):
        return "retrying"
    return "scheduled" if job.run_at > now else "queued"


def task_status(job: Job, now: datetime) -> TaskStatus:
    """Return how the task stands, whoever tries it."""
    if job.state is State.RUNNING:
        return "in_progress"
    if job.state in FINAL:
        return _TASK_ENDS[job.state]
    return "scheduled" if job.state is State.QUEUED and job.run_at > now else "pending"


def execution_status(job: Job) -> ExecutionStatus:
    """Return how its last execution stands."""
    if job.state is State.RUNNING:
        return "running"
    if job.state is State.SUCCEEDED:
        return "success"
    if job.state in FINAL:
        return "failure" if job.last_started_at is not None else "not_started"
    return "retrying" if _tried(job) else "not_started"


def _tried(job: Job) -> bool:
    return bool(job.failures or job.losses)
