"""The definition of a task: the function, the kind it is known by, and how its jobs are run."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Literal

import msgspec

from tidewheel.model.job import DEFAULT_QUEUE, DEFAULT_TIMEOUT
from tidewheel.model.priority import Priority
from tidewheel.model.resources import Needs
from tidewheel.model.retry import RetryPolicy
from tidewheel.model.schedule import ScheduleSpec
from tidewheel.tasks.limiting import TaskLimit

Mode = Literal["inline", "process"]
"""`inline` runs in the event loop of a runner; `process` in a process of a pool, where it can be killed and paused."""
Preempt = Literal["never", "pause", "requeue"]
"""What may happen to a run when a more urgent job is due and no slot is free."""
Isolation = Literal["standard", "strict", "none"]
"""`standard`: all layers that cost little; `strict`: also an own view of the network; `none`: an own session only."""

COMMAND: Final = "command"
"""The kind of jobs that run any executable."""
HTTP: Final = "http"
"""The kind of jobs that make an HTTP call."""


class TaskOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How jobs of a task are run unless one is submitted with other wishes."""

    queue: str = DEFAULT_QUEUE
    priority: Priority = Priority.MEDIUM
    timeout: timedelta = DEFAULT_TIMEOUT
    retry: RetryPolicy = RetryPolicy()
    needs: Needs = Needs()
    limits: tuple[TaskLimit, ...] = ()
    """How many jobs may run at once or start in a time, everywhere."""
    preempt: Preempt = "never"
    isolation: Isolation = "standard"


@dataclass(frozen=True, kw_only=True)
class TaskDefinition:
    """One task, as the registry of an app knows it."""

    kind: str
    function: Callable[..., Any]
    mode: Mode
    context: str | None = None
    """The parameter that receives the `Context`, if the function wants one."""
    options: TaskOptions
    schedule: ScheduleSpec | None = None
    """The schedule that it is declared with."""
