"""The tasks of an app by kind. Stored names are looked up here and nowhere else: nothing is imported by name."""

from collections.abc import Iterator

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_name
from tidewheel.model.limit import LimitRule
from tidewheel.tasks.definition import COMMAND, HTTP, Isolation, Mode, Preempt, TaskDefinition
from tidewheel.tasks.limiting import check_alike


class CatalogueEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What processes without user code need to know of a task."""

    kind: str
    mode: Mode
    preempt: Preempt = "never"
    isolation: Isolation = "standard"
    rules: tuple[LimitRule, ...] = ()
    """What the store is to know of its limits."""
    schedule: str | None = None
    """The JSON of the schedule that it is declared with."""


class Registry:
    """Holds each kind once."""

    def __init__(self) -> None:
        self._tasks: dict[str, TaskDefinition] = {}

    def add(self, task: TaskDefinition) -> None:
        """Add a task, or refuse a kind that is taken."""
        check_name("kind", task.kind)
        if task.kind in (COMMAND, HTTP):
            raise Invalid("kind", f"{task.kind!r} is built in; give the task another name")
        if task.kind in self._tasks:
            raise Invalid("kind", f"{task.kind!r} is taken by {_place(self._tasks[task.kind])}")
        for other in self._tasks.values():
            if task.schedule is not None and other.schedule is not None and task.schedule.name == other.schedule.name:
                raise Invalid("schedule", f"{task.schedule.name!r} is declared by {_place(other)}, too")
        check_alike(task.options.limits, (limit for other in self for limit in other.options.limits))
        self._tasks[task.kind] = task

    def get(self, kind: str) -> TaskDefinition | None:
        """Return the task of a kind, if there is one."""
        return self._tasks.get(kind)

    def __iter__(self) -> Iterator[TaskDefinition]:
        """Return the tasks in the order of their declaration."""
        return iter(self._tasks.values())

    def catalogue(self) -> list[CatalogueEntry]:
        """Return what may be told to processes that do not load the app."""
        return [
            CatalogueEntry(
                kind=task.kind,
                mode=task.mode,
                preempt=task.options.preempt,
                isolation=task.options.isolation,
                rules=rules_of(task),
                schedule=None if task.schedule is None else msgspec.json.encode(task.schedule).decode(),
            )
            for task in self
        ]


def rules_of(task: TaskDefinition) -> tuple[LimitRule, ...]:
    """Return the rules that the limits of a task follow."""
    return tuple(limit.rule for limit in task.options.limits)


def _place(task: TaskDefinition) -> str:
    return f"{task.function.__module__}.{task.function.__qualname__}"
