"""The client for programs without an event loop: the same calls, each of which waits for its answer."""

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self, Unpack
from uuid import UUID

from tidewheel.client.asynchronous import AsyncClient
from tidewheel.client.documents import Event, Queue
from tidewheel.client.options import Duration, JobConditions, JobOptions, NewJob
from tidewheel.client.steering import MOST_AT_ONCE, Bulk
from tidewheel.client.synchronous_parts import Parts
from tidewheel.clock import Clock
from tidewheel.model.cap import Overflow, QueueCap
from tidewheel.model.gate import Gate, GateMode
from tidewheel.model.job import Attempt, Job, Submitted
from tidewheel.model.limit import Limit, LimitRule
from tidewheel.model.log import LogLine
from tidewheel.model.worker import Worker


class Client(Parts):
    """Speaks to one server, one call at a time. `AsyncClient` tells what each call does."""

    def __init__(
        self, url: str | None = None, *, key: str | None = None, tenant: str | None = None, clock: Clock | None = None
    ) -> None:
        self._runner = asyncio.Runner()
        self._turn = threading.Lock()
        self._client = AsyncClient(url, key=key, tenant=tenant, clock=clock)

    def close(self) -> None:
        """Let go of all connections."""
        self._run(self._client.close())
        self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def submit(self, kind: str, args: Mapping[str, Any] | None = None, **options: Unpack[JobOptions]) -> Submitted:
        """Submit a job; returns once it is stored. Sent again after a failure it makes no second job."""
        return self._run(self._client.submit(kind, args, **options))

    def submit_many(self, jobs: Sequence[NewJob]) -> list[Submitted]:
        """Submit up to 10 000 jobs, all or none; the answers are in their order."""
        return self._run(self._client.submit_many(jobs))

    def get(self, job_id: UUID) -> Job:
        """Return a job. Raises NotFound."""
        return self._run(self._client.get(job_id))

    def jobs(self, *, full: bool = False, **where: Unpack[JobConditions]) -> Iterator[Job]:
        """Return all jobs that meet the conditions, newest first; without args and results unless `full`."""
        return self._iterate(self._client.jobs(full=full, **where))

    def attempts(self, job_id: UUID) -> list[Attempt]:
        """Return the attempts of a job, first to last."""
        return self._run(self._client.attempts(job_id))

    def result(self, job_id: UUID, *, wait: float = 0) -> Any:
        """Return what a job returned, and wait up to so many seconds for it. Raises JobFailed and TimeoutError."""
        return self._run(self._client.result(job_id, wait=wait))

    def logs(self, job_id: UUID, *, follow: bool = False) -> Iterator[LogLine]:
        """Return the lines that the runs of a job wrote; with `follow` also those to come, until its end."""
        return self._iterate(self._client.logs(job_id, follow=follow))

    def events(self, job_id: UUID, *, last: str | None = None) -> Iterator[Event]:
        """Return what happens to a job until its end."""
        return self._iterate(self._client.events(job_id, last=last))

    def cancel(self, job_id: UUID, reason: str = "") -> Job:
        """Cancel a job: it never starts, or is asked to stop. One that has ended stays as it is."""
        return self._run(self._client.cancel(job_id, reason))

    def retry(self, job_id: UUID) -> Job:
        """Send a job that ended without success round again. Raises Conflict."""
        return self._run(self._client.retry(job_id))

    def erase(self, job_id: UUID) -> Job:
        """Forget what a finished job was about, and return what is left of it. Raises NotFinished."""
        return self._run(self._client.erase(job_id))

    def cancel_many(
        self, *, reason: str = "", dry_run: bool = False, limit: int = MOST_AT_ONCE, **where: Unpack[JobConditions]
    ) -> Bulk:
        """Cancel the jobs that meet the conditions and have not ended; with `dry_run` they are only counted."""
        return self._run(self._client.cancel_many(reason=reason, dry_run=dry_run, limit=limit, **where))

    def retry_many(self, *, dry_run: bool = False, limit: int = MOST_AT_ONCE, **where: Unpack[JobConditions]) -> Bulk:
        """Send the jobs round again that meet the conditions and ended without success; or only count them."""
        return self._run(self._client.retry_many(dry_run=dry_run, limit=limit, **where))

    def gates(self) -> list[Gate]:
        """Return the closed gates."""
        return self._run(self._client.gates())

    def close_gate(
        self,
        mode: GateMode | str,
        *,
        kind: str | None = None,
        queue: str | None = None,
        reason: str = "",
        rate: float | None = None,
        expires_at: datetime | None = None,
        lasts: Duration | None = None,
        stop_running: bool = False,
    ) -> Gate:
        """Close a gate on jobs of a kind, a queue, both, or all of one's own: `hold`, `drop` or `slow`."""
        work = self._client.close_gate(
            mode,
            kind=kind,
            queue=queue,
            reason=reason,
            rate=rate,
            expires_at=expires_at,
            lasts=lasts,
            stop_running=stop_running,
        )
        return self._run(work)

    def open_gate(self, gate_id: UUID) -> None:
        """Open a gate again. Raises NotFound."""
        self._run(self._client.open_gate(gate_id))

    def limits(self) -> list[Limit]:
        """Return the limits with how many run under each."""
        return self._run(self._client.limits())

    def set_limit(
        self, key: str, most: int | None = None, *, rate: str | None = None, burst: int | None = None
    ) -> Limit:
        """Let at most so many jobs with a key run at once, or start in a time (`10/s`), or both."""
        return self._run(self._client.set_limit(key, most, rate=rate, burst=burst))

    def remove_limit(self, key: str) -> None:
        """Remove a limit. Raises NotFound."""
        self._run(self._client.remove_limit(key))

    def rules(self) -> list[LimitRule]:
        """Return the rules, which hold for families of keys."""
        return self._run(self._client.rules())

    def set_rule(
        self, name: str, most: int | None = None, *, rate: str | None = None, burst: int | None = None
    ) -> LimitRule:
        """Set what holds for the key `name` and for every `name=value`; for keys of all tenants."""
        return self._run(self._client.set_rule(name, most, rate=rate, burst=burst))

    def set_key_cap(self, name: str, waiting: int, *, overflow: Overflow = "reject") -> LimitRule:
        """Let at most so many jobs wait with the key `name` and with every `name=value`; it begins with `cap:`."""
        return self._run(self._client.set_key_cap(name, waiting, overflow=overflow))

    def remove_rule(self, name: str) -> None:
        """Remove a rule. Raises NotFound."""
        self._run(self._client.remove_rule(name))

    def caps(self) -> list[QueueCap]:
        """Return the caps of queues."""
        return self._run(self._client.caps())

    def set_cap(self, queue: str, most: int, *, overflow: Overflow = "reject") -> QueueCap:
        """Let at most so many jobs wait in a queue; one too many is rejected, or another is dropped for it."""
        return self._run(self._client.set_cap(queue, most, overflow=overflow))

    def remove_cap(self, queue: str) -> None:
        """Let any number of jobs wait in a queue. Raises NotFound."""
        self._run(self._client.remove_cap(queue))

    def queues(self) -> list[Queue]:
        """Return the queues with their numbers."""
        return self._run(self._client.queues())

    def workers(self, *, alive: bool | None = None) -> list[Worker]:
        """Return the workers, newest first."""
        return self._run(self._client.workers(alive=alive))
