"""Handles of jobs: look at one, wait for it, steer it. Each question has an async form and a synchronous twin."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Generic, TypeVar, cast
from uuid import UUID

import msgspec

from tidewheel.errors import Conflict, JobCancelled, JobFailed
from tidewheel.model import job as model
from tidewheel.model.log import LogLine
from tidewheel.model.states import FINAL, State
from tidewheel.model.why import Reason
from tidewheel.sdk.desk import Desk
from tidewheel.sdk.stores import Place
from tidewheel.store.base import Store
from tidewheel.store.pages import fills_page
from tidewheel.tasks.durations import Duration, parse_duration
from tidewheel.wiring import is_server

R = TypeVar("R")

FIRST_PAUSE: Final = 0.005
LONGEST_PAUSE: Final = 0.25
LINES: Final = 1000
"""How many lines are read at once."""
_GROWTH: Final = 1.5
_ALL_TENANTS: Final = "*"


class Job(Generic[R]):
    """A job that was enqueued; what its task returns is an R."""

    def __init__(self, desk: Desk, job_id: UUID, *, created: bool = True) -> None:
        self._desk = desk
        self._id = job_id
        self.created = created
        """Whether this very call made it; False if an idempotency or unique key stood for an earlier one."""

    @property
    def id(self) -> UUID:
        return self._id

    def __repr__(self) -> str:
        return f"<Job {self._id}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and other.id == self._id

    def __hash__(self) -> int:
        return hash(self._id)

    # Looking

    async def ainfo(self) -> model.Job:
        """Return all that is known of the job. Raises NotFound once its record was removed."""
        return await self._desk.use(lambda store: store.get(self._id))

    async def astate(self) -> State:
        """Return the state of the job."""
        return (await self.ainfo()).state

    async def alogs(self, *, limit: int | None = None) -> list[LogLine]:
        """Return the lines that its runs wrote, first to last; all of them, or the first so many."""
        found: list[LogLine] = []
        while True:
            number = LINES if limit is None else min(LINES, limit - len(found))
            after = (found[-1].token, found[-1].number) if found else None
            page = await self._desk.use(partial(_lines_of, self._id, after, number))
            found += page
            if not fills_page(page, number) or len(found) == limit:
                return found

    async def awhy(self) -> list[Reason]:
        """Return all that keeps the job from running now, each with a sentence; or that it runs, or has ended."""
        return (await self._desk.use(lambda store: store.why(self._id))).reasons

    # Waiting

    async def await_end(self, timeout: Duration | None = None) -> model.Job:  # noqa: ASYNC109 - on the clock of the app
        """Wait until the job has ended, however it did. Raises TimeoutError."""
        clock = self._desk.clock
        seconds = None if timeout is None else parse_duration(timeout, "timeout").total_seconds()
        started, pause = clock.monotonic(), FIRST_PAUSE
        while (info := await self.ainfo()).state not in FINAL:
            if seconds is not None:
                left = started + seconds - clock.monotonic()
                if left <= 0:
                    raise TimeoutError(f"job {self._id} is still {info.state} after {seconds:g} s")
                pause = min(pause, left)
            await self._desk.pause(pause)
            pause = min(pause * _GROWTH, LONGEST_PAUSE)
        return info

    async def aresult(self, timeout: Duration | None = None) -> R:  # noqa: ASYNC109 - as above
        """Wait for the job and return its result.

        Raises JobFailed if it ended without one, as JobCancelled if it was cancelled; TimeoutError.
        """
        return cast("R", await result_of(self._desk, await self.await_end(timeout)))

    # Steering

    async def acancel(self, reason: str = "") -> model.Job:
        """Cancel the job: it never starts, or is asked to stop. One that has ended stays as it is."""
        return await self._desk.use(lambda store: store.cancel(self._id, reason=reason))

    async def aretry(self) -> None:
        """Send a job that ended without success round again, with all of its attempts. Raises Conflict."""
        if not await self._desk.use(lambda store: store.redrive([self._id])):
            state = await self.astate()
            raise Conflict(f"job {self._id} is {state} and was not sent round again")

    # The synchronous twins

    def info(self) -> model.Job:
        """Return all that is known of the job. Raises NotFound once its record was removed."""
        return self._desk.run(self.ainfo())

    def state(self) -> State:
        """Return the state of the job."""
        return self._desk.run(self.astate())

    def logs(self, *, limit: int | None = None) -> list[LogLine]:
        """Return the lines that its runs wrote, first to last; all of them, or the first so many."""
        return self._desk.run(self.alogs(limit=limit))

    def why(self) -> list[Reason]:
        """Return all that keeps the job from running now, each with a sentence; or that it runs, or has ended."""
        return self._desk.run(self.awhy())

    def wait(self, timeout: Duration | None = None) -> model.Job:
        """Wait until the job has ended, however it did. Raises TimeoutError."""
        return self._desk.run(self.await_end(timeout))

    def result(self, timeout: Duration | None = None) -> R:
        """Wait for the job and return its result.

        Raises JobFailed if it ended without one, as JobCancelled if it was cancelled; TimeoutError.
        """
        return self._desk.run(self.aresult(timeout))

    def cancel(self, reason: str = "") -> model.Job:
        """Cancel the job: it never starts, or is asked to stop. One that has ended stays as it is."""
        return self._desk.run(self.acancel(reason))

    def retry(self) -> None:
        """Send a job that ended without success round again, with all of its attempts. Raises Conflict."""
        self._desk.run(self.aretry())


async def _lines_of(job_id: UUID, after: tuple[int, int] | None, limit: int, store: Store) -> list[LogLine]:
    return await store.logs(job_id, after=after, limit=limit)


class GroupJob(Generic[R]):
    """The jobs of a group, which run beside one another."""

    def __init__(self, desk: Desk, jobs: Sequence[Job[R]]) -> None:
        self._desk = desk
        self.jobs = tuple(jobs)

    async def await_end(self, timeout: Duration | None = None) -> list[model.Job]:  # noqa: ASYNC109 - as above
        """Wait until all have ended, however they did. Raises TimeoutError."""
        limit = None if timeout is None else parse_duration(timeout, "timeout").total_seconds()
        started = self._desk.clock.monotonic()
        ended = []
        for job in self.jobs:
            left = None if limit is None else max(started + limit - self._desk.clock.monotonic(), 0)
            ended.append(await job.await_end(left))
        return ended

    async def aresult(self, timeout: Duration | None = None) -> list[R]:  # noqa: ASYNC109 - as above
        """Wait for all and return their results in the order of the group. Raises as `Job.aresult` does."""
        return [cast("R", await result_of(self._desk, info)) for info in await self.await_end(timeout)]

    async def acancel(self, reason: str = "") -> list[model.Job]:
        """Cancel all."""
        return [await job.acancel(reason) for job in self.jobs]

    def wait(self, timeout: Duration | None = None) -> list[model.Job]:
        """Wait until all have ended, however they did. Raises TimeoutError."""
        return self._desk.run(self.await_end(timeout))

    def result(self, timeout: Duration | None = None) -> list[R]:
        """Wait for all and return their results in the order of the group. Raises as `Job.aresult` does."""
        return self._desk.run(self.aresult(timeout))

    def cancel(self, reason: str = "") -> list[model.Job]:
        """Cancel all."""
        return self._desk.run(self.acancel(reason))


async def result_of(desk: Desk, info: model.Job) -> Any:
    """Return the result of a job that has ended, as its task had returned it, or raise what stands for its end."""
    if info.state is not State.SUCCEEDED:
        kind = JobCancelled if info.state is State.CANCELLED else JobFailed
        reason, message = (info.error.reason, info.error.message) if info.error else (info.state.value, "")
        raise kind(info.id, info.state, reason, message)
    result, caller = await stored_result(desk, info), desk.callers.get(info.kind)
    return result if caller is None else caller.restore(result)


async def stored_result(desk: Desk, info: model.Job) -> Any:
    """Return the result of a job as it is stored, from wherever that is."""
    if info.result_location is None:
        return info.result
    return await _large_result(desk.stores.place, info, info.result_location)


async def _large_result(place: Place, info: model.Job, location: str) -> Any:
    """Fetch a result from the blobs; behind a server those are the server's own, which may be out of reach here."""
    if is_server(place.database):
        from tidewheel.client import AsyncClient  # noqa: PLC0415 - `import tidewheel` shall load no driver

        async with AsyncClient(place.database, key=place.key, tenant=_ALL_TENANTS) as server:
            return await server.result(info.id)
    return msgspec.json.decode(await place.open_blobs().read_result(info.id, info.token, location))
