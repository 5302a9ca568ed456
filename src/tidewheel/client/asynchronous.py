"""The client for programs with an event loop."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self, Unpack
from uuid import UUID, uuid4

import msgspec

from tidewheel.client.access import AccessCalls
from tidewheel.client.artifacts import ArtifactCalls
from tidewheel.client.dead_letters import DeadLetterCalls
from tidewheel.client.documents import Event, Queue, QueueList
from tidewheel.client.flow import FlowCalls
from tidewheel.client.following import follow
from tidewheel.client.log_search import LogSearchCalls
from tidewheel.client.options import JobConditions, JobOptions, NewJob, body_of, query_of
from tidewheel.client.outputs import OutputCalls
from tidewheel.client.schedules import ScheduleCalls
from tidewheel.client.secrets import SecretCalls
from tidewheel.client.steering import SteeringCalls
from tidewheel.clock import Clock, SystemClock
from tidewheel.errors import Conflict, JobCancelled, JobFailed, NotFinished
from tidewheel.model.job import Attempt, Job, Submitted
from tidewheel.model.log import LogLine
from tidewheel.model.states import State
from tidewheel.model.worker import Worker
from tidewheel.store.remote.documents import (
    AcceptedBatch,
    AcceptedJob,
    AttemptList,
    JobDocument,
    JobPage,
    LineDocument,
    LinePage,
    WorkerList,
)
from tidewheel.store.remote.transport import ALL_TENANTS, Place, Transport, tenant_header

DEFAULT_URL: Final = "http://127.0.0.1:8433"
LONGEST_WAIT: Final = 60
PAGE: Final = 200
LINES: Final = 1000
PATIENCE: Final = 60.0
"""Seconds that a call waits in all for a busy server that names a time; `result` waits as long as it was told."""


class AsyncClient(
    SteeringCalls,
    ScheduleCalls,
    DeadLetterCalls,
    FlowCalls,
    LogSearchCalls,
    ArtifactCalls,
    OutputCalls,
    AccessCalls,
    SecretCalls,
):
    """Speaks to one server. Without address or key TIDE_URL and TIDE_KEY count.

    `tenant` is for keys of all of them: the one to work in, or `*` to look at all.
    """

    def __init__(
        self, url: str | None = None, *, key: str | None = None, tenant: str | None = None, clock: Clock | None = None
    ) -> None:
        place = Place(url or os.environ.get("TIDE_URL") or DEFAULT_URL, key or os.environ.get("TIDE_KEY") or None)
        self._clock = clock or SystemClock()
        self._transport = Transport(place, self._clock, patience=PATIENCE)
        if tenant is not None:
            self._transport.client.headers.update(tenant_header(None if tenant == ALL_TENANTS else tenant))

    async def close(self) -> None:
        """Let go of all connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Submitting

    async def submit(
        self, kind: str, args: Mapping[str, Any] | None = None, **options: Unpack[JobOptions]
    ) -> Submitted:
        """Submit a job; returns once it is stored. Sent again after a failure it makes no second job.

        Raises Invalid, KeyReused, AlreadyActive, IdTaken, QueueFull, TooMany and Unavailable.
        """
        options.setdefault("idempotency_key", str(uuid4()))
        body = body_of(kind, args or {}, options)
        answer = await self._transport.post("/v1/jobs", body, AcceptedJob, safe=True)
        return Submitted(answer.id, answer.created)

    async def submit_many(self, jobs: Sequence[NewJob]) -> list[Submitted]:
        """Submit up to 10 000 jobs, all or none; the answers are in their order."""
        bodies = [body_of(job.kind, job.args, job.options) for job in jobs]
        for body in bodies:
            body.setdefault("idempotency_key", str(uuid4()))
        batch = await self._transport.post("/v1/jobs/batch", bodies, AcceptedBatch, safe=True)
        return [Submitted(job.id, job.created) for job in batch.jobs]

    # Looking

    async def get(self, job_id: UUID) -> Job:
        """Return a job. Raises NotFound."""
        return (await self._transport.get(f"/v1/jobs/{job_id}", JobDocument)).record()

    async def jobs(self, *, full: bool = False, **where: Unpack[JobConditions]) -> AsyncIterator[Job]:
        """Return all jobs that meet the conditions, newest first; without args and results unless `full`."""
        query = query_of(where) | {"limit": PAGE, "full": str(full).lower()}
        while True:
            page = await self._transport.get("/v1/jobs", JobPage, query)
            for job in page.jobs:
                yield job.record()
            if page.next_cursor is None:
                return
            query["cursor"] = page.next_cursor

    async def attempts(self, job_id: UUID) -> list[Attempt]:
        """Return the attempts of a job, first to last."""
        found: list[Attempt] = []
        query: dict[str, Any] = {}
        while True:
            page = await self._transport.get(f"/v1/jobs/{job_id}/attempts", AttemptList, query)
            found = [*(attempt.record(job_id) for attempt in page.attempts), *found]
            if page.next_before is None:
                return found
            query["before"] = page.next_before

    async def result(self, job_id: UUID, *, wait: float = 0) -> Any:
        """Return what a job returned, and wait up to so many seconds for it.

        Raises JobFailed if it ended without a result, as JobCancelled if it was cancelled; TimeoutError, NotFound.
        """
        latest = self._clock.monotonic() + wait
        while True:
            left = max(0, round(latest - self._clock.monotonic()))
            headers = {"prefer": f"wait={min(left, LONGEST_WAIT)}"}
            try:
                return await self._transport.get(
                    f"/v1/jobs/{job_id}/result", Any, headers=headers, patience=left or None
                )
            except NotFinished:
                if self._clock.monotonic() >= latest or not left:
                    raise TimeoutError(f"job {job_id} has not ended after {wait:g} s") from None
            except Conflict:
                raise _failure_of(await self.get(job_id)) from None

    async def logs(self, job_id: UUID, *, follow: bool = False) -> AsyncIterator[LogLine]:
        """Return the lines that the runs of a job wrote; with `follow` also those to come, until its end."""
        if follow:
            async for event in self.events(job_id):
                if event.name == "log":
                    yield msgspec.convert(event.data, LineDocument).record(job_id)
            return
        query: dict[str, Any] = {"limit": LINES}
        while True:
            page = await self._transport.get(f"/v1/jobs/{job_id}/logs", LinePage, query)
            for line in page.lines:
                yield line.record(job_id)
            if page.next_cursor is None:
                return
            query["cursor"] = page.next_cursor

    def events(self, job_id: UUID, *, last: str | None = None) -> AsyncIterator[Event]:
        """Return what happens to a job until its end; goes on by itself after an interruption, or after `last`."""
        return follow(self._transport, self._clock, job_id, last)

    # The whole

    async def queues(self) -> list[Queue]:
        """Return the queues with their numbers."""
        return (await self._transport.get("/v1/queues", QueueList)).queues

    async def workers(self, *, alive: bool | None = None) -> list[Worker]:
        """Return the workers, newest first."""
        query = {"alive": None if alive is None else str(alive).lower()}
        return [worker.record() for worker in (await self._transport.get("/v1/workers", WorkerList, query)).workers]


def _failure_of(job: Job) -> JobFailed:
    kind = JobCancelled if job.state is State.CANCELLED else JobFailed
    reason, message = (job.error.reason, job.error.message) if job.error else (job.state.value, "")
    return kind(job.id, job.state, reason, message)
