"""Tasks: functions that can be called here and now, or enqueued; and signatures, which are calls yet to come."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, ParamSpec, TypeVar, Unpack, cast
from uuid import UUID

from msgspec.structs import replace

from tidewheel.errors import Invalid
from tidewheel.model.checks import shown
from tidewheel.model.dependency import REFERENCE
from tidewheel.model.job import JobSpec
from tidewheel.sdk.desk import Desk
from tidewheel.sdk.job import Job
from tidewheel.sdk.limiting import limit_keys_of
from tidewheel.sdk.options import JobOptions, check_known, spec_of
from tidewheel.tasks.binding import Caller
from tidewheel.tasks.definition import TaskDefinition

P = ParamSpec("P")
Q = ParamSpec("Q")
T = TypeVar("T")
R = TypeVar("R")


class Before(NamedTuple):
    """The jobs that a job of a chain waits for, and what stands for their results among its arguments."""

    ids: tuple[UUID, ...] = ()
    value: Any = None


NOTHING: Final = Before()


class Task(Generic[P, R]):
    """A task that takes P and whose jobs result in an R."""

    def __init__(self, desk: Desk, definition: TaskDefinition, options: JobOptions | None = None) -> None:
        self._desk = desk
        self._definition = definition
        self._options: JobOptions = options or {}

    @property
    def kind(self) -> str:
        """The name by which workers know the task."""
        return self._definition.kind

    def __repr__(self) -> str:
        return f"<Task {self.kind}>"

    def using(self, **options: Unpack[JobOptions]) -> "Task[P, R]":
        """Return the same task with other options for the jobs that are enqueued through it."""
        check_known(options)
        return Task(self._desk, self._definition, {**self._options, **options})

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Enqueue a job; it is stored durably once this returns."""
        return self.si(*args, **kwargs).enqueue()

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Enqueue a job; it is stored durably once this returns."""
        return await self.si(*args, **kwargs).aenqueue()

    def s(self, /, *args: Any, **kwargs: Any) -> "Signature[R]":
        """Return a call for a chain, which takes the result of the one before as its first free argument."""
        return Signature(self._desk, self._definition, self._options, args, kwargs)

    def si(self, /, *args: P.args, **kwargs: P.kwargs) -> "Signature[R]":
        """Return a call for a chain with all of its arguments; it takes no result of the one before."""
        return Signature(self._desk, self._definition, self._options, args, kwargs, immutable=True)


class TaskFunction(Task[P, R], Generic[Q, T, P, R]):
    """A task that is called as the function it was made of."""

    def __init__(self, desk: Desk, definition: TaskDefinition) -> None:
        super().__init__(desk, definition)
        functools.update_wrapper(cast("Callable[..., Any]", self), definition.function)

    def __call__(self, /, *args: Q.args, **kwargs: Q.kwargs) -> T:
        """Call the function, here and now."""
        return cast("T", self._definition.function(*args, **kwargs))


class Signature(Generic[R]):
    """A call of a task that is still to come, with its arguments and options."""

    def __init__(
        self,
        desk: Desk,
        definition: TaskDefinition,
        options: JobOptions,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        immutable: bool = False,
    ) -> None:
        self.desk = desk
        self._definition = definition
        self._options = options
        self._args = args
        self._kwargs = kwargs
        self._immutable = immutable

    def __repr__(self) -> str:
        return f"<{self._definition.kind}{self._args}{dict(self._kwargs) or ''}>"

    def using(self, **options: Unpack[JobOptions]) -> "Signature[R]":
        """Return the same call with other options."""
        check_known(options)
        wishes: JobOptions = {**self._options, **options}
        return Signature(self.desk, self._definition, wishes, self._args, self._kwargs, immutable=self._immutable)

    def enqueue(self) -> Job[R]:
        """Enqueue a job; it is stored durably once this returns."""
        [answer] = self.desk.submit([self.spec()], self.connection)
        return Job(self.desk, answer.job_id, created=answer.created)

    async def aenqueue(self) -> Job[R]:
        """Enqueue a job; it is stored durably once this returns."""
        [answer] = await self.desk.asubmit([self.spec()], self.connection)
        return Job(self.desk, answer.job_id, created=answer.created)

    @property
    def connection(self) -> Any:
        """The caller's own connection, if one was given."""
        return self._options.get("connection")

    def spec(self, before: Before = NOTHING, *, schedule: str | None = None) -> JobSpec:
        """Return what is asked of the store; with the name of the schedule that asks for it again and again."""
        args, kwargs = self._args, self._kwargs
        caller = self.desk.callers[self._definition.kind]
        if before.value is not None and not self._immutable:
            args, kwargs = _fed(caller, self._definition.kind, args, kwargs, before.value)
        bound = caller.bind(args, kwargs)
        definition = self._definition
        spec = spec_of(
            definition.kind, bound, definition.options, self._options, self.desk.now(), tenant=self.desk.tenant
        )
        limits = definition.options.limits
        return replace(spec, limit_keys=limit_keys_of(limits, spec, caller.whole(bound), schedule)) if limits else spec

    def lay(self, before: Before, specs: list[JobSpec]) -> Before:
        """Add the job to a batch, behind others of it."""
        spec = self.spec(before)
        if spec.idempotency_key is not None or spec.unique == "keep" or self.connection is not None:
            raise Invalid("chain", f"a member ({spec.kind}) cannot have idempotency_key, unique='keep' or connection")
        job_id = self.desk.new_id()
        after = tuple(dict.fromkeys((*spec.after, *before.ids)))
        specs.append(replace(spec, id=job_id, after=after))
        return Before((job_id,), {REFERENCE: str(job_id)})


def checked_calls(calls: Any) -> list[Signature[Any]]:
    """Return calls that are to be enqueued at once, or refuse what are none."""
    if not isinstance(calls, Iterable) or isinstance(calls, str | bytes | Mapping):
        raise Invalid("calls", f"must be a list of calls such as task.s(…), not {type(calls).__name__}")
    each = list(calls)
    for call in each:
        if not isinstance(call, Signature):
            raise Invalid("calls", f"must be calls such as task.s(…), without {shown(call)}")
    return each


def one_connection(calls: Sequence[Signature[Any]], given: Any) -> Any:
    """Return the connection whose transaction a batch is part of, if any; a batch cannot be part of two."""
    named = [each for each in (given, *(call.connection for call in calls)) if each is not None]
    if any(each is not named[0] for each in named):
        raise Invalid("connection", "must be the same for all calls that are enqueued at once")
    return named[0] if named else None


def _fed(
    caller: Caller, kind: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], value: Any
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """Give the result of the job before to the first parameter that is not given by name."""
    taker = next((name for name in caller.free if name not in kwargs), None)
    if taker is None:
        raise Invalid("chain", f"{kind} has no argument left for the result of the job before it: use .si()")
    if taker == caller.free[0]:
        return (value, *args), kwargs
    return args, {**kwargs, taker: value}
