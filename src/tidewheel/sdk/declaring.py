"""Declaring tasks: `@app.task`, with or without options."""

import inspect
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import replace
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, Unpack, cast, overload

from msgspec import structs

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_name, shown
from tidewheel.model.priority import parse_priority
from tidewheel.model.retry import check_retry
from tidewheel.model.schedule import ScheduleSpec
from tidewheel.sdk.desk import Desk
from tidewheel.sdk.limiting import limit_keys_of
from tidewheel.sdk.naming import kind_of
from tidewheel.sdk.options import PriorityWish, RetryWish, needs_of, retry_policy, spec_of
from tidewheel.sdk.task import TaskFunction
from tidewheel.tasks.binding import Caller, context_of, parameters_of
from tidewheel.tasks.context import Context
from tidewheel.tasks.definition import Isolation, Mode, Preempt, TaskDefinition, TaskOptions
from tidewheel.tasks.durations import Duration, parse_duration
from tidewheel.tasks.limiting import Cap, Concurrency, Rate, task_limits
from tidewheel.tasks.scheduling import RECURRENCE, Recurrence, schedule_of

P = ParamSpec("P")
R = TypeVar("R")


class Declared(Recurrence, total=False):
    """What `@app.task` takes."""

    name: str
    """The kind; `module.function` if it is not given."""
    queue: str
    priority: PriorityWish
    timeout: Duration
    retry: RetryWish
    resources: Mapping[str, int | float | str]
    """What a worker must have free, such as `{"cpu": 1, "memory": "512MiB", "gpu": 1}`."""
    needs_labels: Mapping[str, str]
    """Labels that a worker must have."""
    concurrency: int | Concurrency
    """How many jobs of the task may run at once, everywhere."""
    rate: str | Rate
    """How many jobs of the task may start in a time, everywhere, such as `10/s`."""
    cap: int | Cap
    """How many jobs of the task may wait, everywhere."""
    preempt: Preempt
    isolation: Isolation
    schedule: str
    """With `cron` or `every`: the name of the schedule; the kind if it is not given."""
    process: bool | None
    """Whether to run in a process that can be killed and paused; by itself only async functions without resources and
    isolation do not."""


_OPTIONS: Final = frozenset(Declared.__annotations__)


class Declaration:
    """Makes tasks of functions."""

    def __init__(self, desk: Desk, options: Declared | None = None) -> None:
        self._desk = desk
        self._options: Declared = options or {}

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> TaskFunction[Concatenate[Context, P], Coroutine[Any, Any, R], P, R]: ...
    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> TaskFunction[P, Coroutine[Any, Any, R], P, R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], R], /
    ) -> TaskFunction[Concatenate[Context, P], R, P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> TaskFunction[P, R, P, R]: ...
    @overload
    def __call__(self, /, **options: Unpack[Declared]) -> "Declaration": ...
    def __call__(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Make a task of a function, or take options for one."""
        if function is None:
            _check_known(options)
            return Declaration(self._desk, cast("Declared", {**self._options, **options}))
        definition = define(function, self._options)
        caller = Caller(function, definition.context)
        definition = replace(definition, schedule=_schedule(self._desk, definition, caller, self._options))
        self._desk.registry.add(definition)
        self._desk.callers[definition.kind] = caller
        return TaskFunction(self._desk, definition)


def define(function: Any, declared: Declared) -> TaskDefinition:
    """Return the definition of a task, or say what is wrong with it."""
    if not callable(function) or isinstance(function, type):
        raise Invalid("function", f"must be a function, not {shown(function)}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise Invalid("function", f"{function.__qualname__} yields; a task returns its result")
    name = declared.get("name")
    kind = kind_of(function) if name is None else name
    return TaskDefinition(
        kind=kind,
        function=function,
        mode=_mode(function, declared),
        context=context_of(function),
        options=_task_options(kind, declared, parameters_of(function)),
    )


def _schedule(desk: Desk, definition: TaskDefinition, caller: Caller, declared: Declared) -> ScheduleSpec | None:
    """Return the schedule that a task is declared with."""
    options: dict[str, Any] = {name: value for name, value in declared.items() if name in RECURRENCE}
    if not {"cron", "every"} & declared.keys():
        for name in (*options, *(["schedule"] if "schedule" in declared else [])):
            raise Invalid(name, "is about a schedule, and needs cron or every")
        return None
    try:
        args = caller.bind((), {})
    except Invalid as error:
        raise Invalid("cron", f"a schedule calls its task without arguments: {error.why}") from None
    name = declared.get("schedule", definition.kind)
    job = spec_of(definition.kind, args, definition.options, {}, desk.now(), tenant=desk.tenant)
    keys = limit_keys_of(definition.options.limits, job, caller.whole(args), name)
    return schedule_of(structs.replace(job, limit_keys=keys), {**options, "name": name})


def _task_options(kind: str, declared: Declared, parameters: Collection[str] | None) -> TaskOptions:
    default = TaskOptions()
    return TaskOptions(
        queue=check_name("queue", declared.get("queue", default.queue)),
        priority=parse_priority(declared.get("priority", default.priority)),
        timeout=parse_duration(declared.get("timeout", default.timeout), "timeout"),
        retry=check_retry(retry_policy(declared["retry"])) if "retry" in declared else default.retry,
        needs=needs_of(declared.get("resources", {}), declared.get("needs_labels", {})),
        limits=task_limits(kind, declared.get("concurrency"), declared.get("rate"), parameters, declared.get("cap")),
        preempt=_one_of("preempt", declared.get("preempt", default.preempt), Preempt),
        isolation=_one_of("isolation", declared.get("isolation", default.isolation), Isolation),
    )


def _mode(function: Callable[..., Any], declared: Declared) -> Mode:
    process = declared.get("process")
    if process is not None and not isinstance(process, bool):
        raise Invalid("process", f"must be True, False or None, not {shown(process)}")
    if process is None:
        process = not inspect.iscoroutinefunction(function) or bool({"resources", "isolation"} & declared.keys())
    if not process and not inspect.iscoroutinefunction(function):
        name = getattr(function, "__qualname__", "it")
        raise Invalid("process", f"{name} is no async function, and would stop all others while it runs")
    return "process" if process else "inline"


def _one_of(field: str, value: Any, choices: Any) -> Any:
    if value not in choices.__args__:
        raise Invalid(field, f"must be one of {', '.join(choices.__args__)}, not {shown(value)}")
    return value


def _check_known(options: Mapping[str, Any]) -> None:
    for name in options:
        if name not in _OPTIONS:
            raise Invalid(name, f"is no option of a task; there are {', '.join(sorted(_OPTIONS))}")
