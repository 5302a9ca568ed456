"""An app under test: its jobs in a store that is thrown away, its clock in the hands of the test."""

import asyncio
import tempfile
from collections.abc import Coroutine, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NoReturn, Self, TypeVar

from tidewheel.errors import Conflict
from tidewheel.model.job import Job
from tidewheel.model.states import ACTIVE, State
from tidewheel.sdk.desk import Desk
from tidewheel.sdk.stores import Place, Stores
from tidewheel.sdk.task import Task
from tidewheel.store.base import JobFilter, Store
from tidewheel.tasks.durations import Duration, parse_duration
from tidewheel.testing.clock import FakeClock
from tidewheel.testing.inline import Ran, run_due
from tidewheel.testing.passing import pass_time

T = TypeVar("T")

START: Final = datetime(2030, 1, 1, tzinfo=UTC)
PAGE: Final = 500


class Waiting(Stores):
    """Stores of an app whose jobs only run when the test says so."""

    async def pause(self, seconds: float) -> NoReturn:
        """Refuse to wait for what cannot happen."""
        del seconds
        raise Conflict("the job has not ended, and in a test none runs by itself: call run_inline() first")


class InMemory:
    """Made by `in_memory`; see there."""

    def __init__(self, app: Desk, start: datetime = START) -> None:
        self._app = app
        self._outside = app.stores
        self._folder = tempfile.TemporaryDirectory(prefix="tide-test-", ignore_cleanup_errors=True)
        self.clock = FakeClock(start)
        """The clock of the store; `advance` moves it."""
        self._checkpoints: dict[Any, str] = {}

    # What was enqueued

    async def aenqueued(self, task: Task[..., Any] | None = None, *states: State) -> list[Job]:
        """Return the jobs that have not ended, oldest first: of one task or of all, in some states or in any."""
        wanted = JobFilter(kind=None if task is None else task.kind, states=frozenset(states or ACTIVE))

        async def find(store: Store) -> list[Job]:
            found: list[Job] = []
            page = await store.find(wanted, limit=PAGE)
            found += page.jobs
            while page.next is not None:
                page = await store.find(wanted, limit=PAGE, after=page.next)
                found += page.jobs
            return found[::-1]

        return await self._app.use(find)

    async def aassert_enqueued(
        self, task: Task[..., Any], *, args: Mapping[str, Any] | None = None, **fields: Any
    ) -> Job:
        """Return the one job of a task that waits with these arguments and fields, or fail with what there is.

        `args` are by name, and only those that are given are compared; `fields` are fields of the job, such as
        `queue`, `priority`, `run_at`, `labels` or `tenant`.
        """
        jobs = await self.aenqueued()
        found = [job for job in jobs if job.kind == task.kind and _fits(job, args or {}, fields)]
        if len(found) == 1:
            return found[0]
        wanted = ", ".join(f"{name}={value!r}" for name, value in {"args": args, **fields}.items() if value is not None)
        told = "\n".join(f"  {_told(job, fields)}" for job in jobs) or "  nothing"
        raise AssertionError(f"{len(found)} jobs of {task.kind} ({wanted}) are enqueued; there are:\n{told}")

    # Running them

    async def arun_inline(self, *, most: int = 10_000) -> list[Ran]:
        """Run all jobs that are due, here and now, in the order in which a worker would; return what became of each.

        Jobs that these enqueue are run, too. A task that fails is tried again by its policy, once `advance` has let the
        longest wait that it allows pass. However a task ends, that means what it means to a worker; timeouts are of
        real time. Isolation, commands and HTTP calls are left out of it.
        """
        return await run_due(self._app, self._checkpoints, self.clock, most)

    async def aadvance(self, by: Duration) -> None:
        """Let time pass: schedules fire on the way, also those that tasks declare, and their jobs wait to be run."""
        await pass_time(self._app, self.clock, parse_duration(by, "by"))

    # The synchronous twins

    def enqueued(self, task: Task[..., Any] | None = None, *states: State) -> list[Job]:
        """Return the jobs that have not ended, oldest first: of one task or of all, in some states or in any."""
        return _run(self.aenqueued(task, *states))

    def assert_enqueued(self, task: Task[..., Any], *, args: Mapping[str, Any] | None = None, **fields: Any) -> Job:
        """Return the one job of a task that waits with these arguments and fields, or fail with what there is.

        `args` are by name, and only those that are given are compared; `fields` are fields of the job, such as
        `queue`, `priority`, `run_at`, `labels` or `tenant`.
        """
        return _run(self.aassert_enqueued(task, args=args, **fields))

    def run_inline(self, *, most: int = 10_000) -> list[Ran]:
        """Run all jobs that are due, here and now, in the order in which a worker would; return what became of each.

        Jobs that these enqueue are run, too. A task that fails is tried again by its policy, once `advance` has let the
        longest wait that it allows pass. However a task ends, that means what it means to a worker; timeouts are of
        real time. Isolation, commands and HTTP calls are left out of it.
        """
        return _run(self.arun_inline(most=most))

    def advance(self, by: Duration) -> None:
        """Let time pass: schedules fire on the way, also those that tasks declare, and their jobs wait to be run."""
        _run(self.aadvance(by))

    # Taking the place of the real store

    def __enter__(self) -> Self:
        self._outside = self._app.stores
        folder = Path(self._folder.name)
        self._app.stores = Waiting(Place(f"sqlite:///{folder / 'jobs.db'}", self.clock, (folder / "blobs").as_uri()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _run(self.__aexit__(kind, error, trace))

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._app.stores.close()
        self._app.stores = self._outside
        self._folder.cleanup()


def in_memory(app: Desk, *, start: datetime = START) -> InMemory:
    """Put an app under test, in a `with` or an `async with`.

    Meanwhile its jobs are kept in a SQLite store of their own, its clock stands still at `start` until the test moves
    it, and jobs run when the test calls `run_inline`.
    """
    return InMemory(app, start)


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run work in this thread, so that tasks see the thread of the test."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            return runner.run(work)
    work.close()
    raise Conflict("an event loop is running here: await the async twin of this call")


def _fits(job: Job, args: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    return all(name in job.args and job.args[name] == value for name, value in args.items()) and all(
        getattr(job, name) == value for name, value in fields.items()
    )


def _told(job: Job, fields: Mapping[str, Any]) -> str:
    shown = {"args": job.args, "queue": job.queue, "state": job.state.value, "run_at": job.run_at.isoformat()}
    shown |= {name: getattr(job, name) for name in fields if name not in shown}
    return f"{job.kind} " + ", ".join(f"{name}={value!r}" for name, value in shown.items())
