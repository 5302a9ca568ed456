"""Tidewheel runs jobs on time."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidewheel.errors import (
        AlreadyActive,
        Conflict,
        IllegalMove,
        Invalid,
        JobCancelled,
        JobFailed,
        KeyReused,
        LeaseLost,
        NameTaken,
        NotFound,
        OutcomeUnknown,
        QueueFull,
        StaleVersion,
        StoreFull,
        StoreMismatch,
        TideError,
        Unavailable,
    )
    from tidewheel.model.job import Job as JobInfo
    from tidewheel.model.misfire import Misfire
    from tidewheel.model.priority import Priority
    from tidewheel.model.retry import RetryPolicy
    from tidewheel.model.states import State
    from tidewheel.sdk.app import App
    from tidewheel.sdk.flow import chain, group
    from tidewheel.sdk.job import GroupJob, Job
    from tidewheel.sdk.secrets import secret
    from tidewheel.sdk.task import Signature, Task
    from tidewheel.sdk.transaction import Transaction
    from tidewheel.tasks.context import Context
    from tidewheel.tasks.limiting import Cap, Concurrency, Rate
    from tidewheel.tasks.signals import Fatal, Retry

__all__ = [
    "AlreadyActive",
    "App",
    "Cap",
    "Concurrency",
    "Conflict",
    "Context",
    "Fatal",
    "GroupJob",
    "IllegalMove",
    "Invalid",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobInfo",
    "KeyReused",
    "LeaseLost",
    "Misfire",
    "NameTaken",
    "NotFound",
    "OutcomeUnknown",
    "Priority",
    "QueueFull",
    "Rate",
    "Retry",
    "RetryPolicy",
    "Signature",
    "StaleVersion",
    "State",
    "StoreFull",
    "StoreMismatch",
    "Task",
    "TideError",
    "Transaction",
    "Unavailable",
    "chain",
    "group",
    "secret",
]

_ELSEWHERE = {
    "App": "sdk.app",
    "Cap": "tasks.limiting",
    "Concurrency": "tasks.limiting",
    "Context": "tasks.context",
    "Fatal": "tasks.signals",
    "GroupJob": "sdk.job",
    "Job": "sdk.job",
    "JobInfo": "model.job",
    "Misfire": "model.misfire",
    "Priority": "model.priority",
    "Rate": "tasks.limiting",
    "Retry": "tasks.signals",
    "RetryPolicy": "model.retry",
    "Signature": "sdk.task",
    "State": "model.states",
    "Task": "sdk.task",
    "Transaction": "sdk.transaction",
    "chain": "sdk.flow",
    "group": "sdk.flow",
    "secret": "sdk.secrets",
}
"""Where the names are that are not errors; each is loaded when it is asked for."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'tidewheel' has no attribute {name!r}")
    module = import_module(f"tidewheel.{_ELSEWHERE.get(name, 'errors')}")
    value = globals()[name] = getattr(module, "Job" if name == "JobInfo" else name)
    return value
