"""The parts of the client without an event loop that are about more than jobs and flow control."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar, Unpack
from uuid import UUID

from tidewheel.client.access import AuditConditions, CreatedKey
from tidewheel.client.artifacts import ArtifactInfo
from tidewheel.client.asynchronous import AsyncClient
from tidewheel.client.log_search import LineConditions
from tidewheel.client.options import Duration, PriorityName
from tidewheel.client.outputs import OutputInfo
from tidewheel.client.schedule_options import Change, DeadConditions, Definition
from tidewheel.client.schedules import Coming
from tidewheel.errors import Conflict
from tidewheel.model.access import Role
from tidewheel.model.api_key import ApiKey
from tidewheel.model.audit import AuditEntry
from tidewheel.model.dead_letter import DeadGroup
from tidewheel.model.job import Job
from tidewheel.model.log_query import FoundLine
from tidewheel.model.schedule import Occurrence, Schedule
from tidewheel.model.stored_secret import StoredSecret
from tidewheel.model.tenant import Tenant
from tidewheel.model.why import Reason

T = TypeVar("T")


class Parts:
    """A part of `Client`."""

    _client: AsyncClient
    _runner: asyncio.Runner
    _turn: threading.Lock

    def why(self, job_id: UUID) -> list[Reason]:
        """Return all that keeps a job from running now, each with a sentence; or that it runs, or has ended."""
        return self._run(self._client.why(job_id))

    def create_schedule(self, name: str, kind: str, **definition: Unpack[Definition]) -> Schedule:
        """Make a schedule: `cron`, `every` or `at` says when. Raises Invalid and NameTaken."""
        return self._run(self._client.create_schedule(name, kind, **definition))

    def schedule(self, schedule_id: UUID) -> Schedule:
        """Return a schedule. Raises NotFound."""
        return self._run(self._client.schedule(schedule_id))

    def schedules(self, *, name: str | None = None) -> Iterator[Schedule]:
        """Return all schedules, oldest first, or the one of a name."""
        return self._iterate(self._client.schedules(name=name))

    def change_schedule(self, schedule_id: UUID, *, version: int, **change: Unpack[Change]) -> Schedule:
        """Change some of a schedule, if it is still at that version. Raises Invalid, NotFound and StaleVersion."""
        return self._run(self._client.change_schedule(schedule_id, version=version, **change))

    def pause_schedule(self, schedule_id: UUID) -> Schedule:
        """Let a schedule fire no more, until it is resumed."""
        return self._run(self._client.pause_schedule(schedule_id))

    def resume_schedule(self, schedule_id: UUID) -> Schedule:
        """Let a paused schedule fire again, from now on."""
        return self._run(self._client.resume_schedule(schedule_id))

    def trigger_schedule(self, schedule_id: UUID, *, key: str | None = None) -> Occurrence:
        """Make a job of a schedule now, also of a paused one."""
        return self._run(self._client.trigger_schedule(schedule_id, key=key))

    def delete_schedule(self, schedule_id: UUID, *, version: int | None = None) -> None:
        """Remove a schedule, and cancel its jobs that have not started. Raises NotFound and StaleVersion."""
        self._run(self._client.delete_schedule(schedule_id, version=version))

    def preview_schedule(self, schedule_id: UUID, count: int = 10) -> list[Coming]:
        """Return the next occurrences of a schedule, with a note on days on which clocks are set."""
        return self._run(self._client.preview_schedule(schedule_id, count))

    def backfill_schedule(
        self,
        schedule_id: UUID,
        since: datetime,
        until: datetime,
        *,
        every: Duration = 0.0,
        priority: PriorityName | None = None,
        dry_run: bool = False,
    ) -> list[Occurrence]:
        """Run what a schedule would have run in some time of the past, and did not; return what."""
        work = self._client.backfill_schedule(
            schedule_id, since, until, every=every, priority=priority, dry_run=dry_run
        )
        return self._run(work)

    def dead_groups(self, *, limit: int = 50, **where: Unpack[DeadConditions]) -> list[DeadGroup]:
        """Return what died of what, the largest group first."""
        return self._run(self._client.dead_groups(limit=limit, **where))

    def dead_letters(self, *, full: bool = False, **where: Unpack[DeadConditions]) -> Iterator[Job]:
        """Return all dead letters that meet the conditions, newest first; without arguments unless `full`."""
        return self._iterate(self._client.dead_letters(full=full, **where))

    def redrive(self, *, rate: float | None = None, dry_run: bool = False, **where: Unpack[DeadConditions]) -> int:
        """Send dead letters round again and return how many; with `dry_run` they are only counted."""
        return self._run(self._client.redrive(rate=rate, dry_run=dry_run, **where))

    def put_artifact(
        self, path: Path, *, name: str | None = None, moved: Callable[[int], object] | None = None
    ) -> ArtifactInfo:
        """Bring a file, unless it is there, and return what is known of it. Raises Invalid.

        `moved` is told how many bytes each piece had that went.
        """
        return self._run(self._client.put_artifact(path, name=name, moved=moved))

    def artifacts(self) -> Iterator[ArtifactInfo]:
        """Return all files, newest first."""
        return self._iterate(self._client.artifacts())

    def artifact(self, digest: str) -> ArtifactInfo:
        """Return what is known of a file. Raises NotFound."""
        return self._run(self._client.artifact(digest))

    def fetch_artifact(self, digest: str, to: Path, *, moved: Callable[[int], object] | None = None) -> None:
        """Copy a file here; it appears whole and right, maybe in place of an earlier one, or not at all.

        `moved` is told how many bytes each piece had that came.
        """
        self._run(self._client.fetch_artifact(digest, to, moved=moved))

    def outputs(self, job_id: UUID) -> list[OutputInfo]:
        """Return the files that all runs of a job left behind, by run and by name. Raises NotFound."""
        return self._run(self._client.outputs(job_id))

    def fetch_output(self, output: OutputInfo, to: Path) -> None:
        """Copy such a file here; it appears whole, maybe in place of an earlier one, or not at all. Raises NotFound."""
        self._run(self._client.fetch_output(output, to))

    def search_logs(
        self, text: str = "", *, oldest_first: bool = False, **where: Unpack[LineConditions]
    ) -> Iterator[FoundLine]:
        """Return all lines in which something is found, newest first."""
        return self._iterate(self._client.search_logs(text, oldest_first=oldest_first, **where))

    def keys(self, *, all_tenants: bool = False) -> Iterator[ApiKey]:
        """Return all keys of a tenant, or of every one, newest first; expired and revoked ones are among them."""
        return self._iterate(self._client.keys(all_tenants=all_tenants))

    def create_key(
        self,
        name: str,
        role: Role | str,
        *,
        all_tenants: bool = False,
        expires_in: Duration | None = None,
        rate: float | None = None,
        burst: int | None = None,
    ) -> CreatedKey:
        """Make a key for the tenant one works in, or for all. Raises Invalid, Forbidden."""
        work = self._client.create_key(
            name, role, all_tenants=all_tenants, expires_in=expires_in, rate=rate, burst=burst
        )
        return self._run(work)

    def revoke_key(self, key_id: UUID) -> ApiKey:
        """Make a key open nothing any more. Raises NotFound."""
        return self._run(self._client.revoke_key(key_id))

    def tenants(self) -> list[Tenant]:
        """Return the tenants that one may see, by name."""
        return self._run(self._client.tenants())

    def set_tenant(
        self,
        name: str,
        *,
        weight: float = 1.0,
        max_queued: int | None = None,
        max_payload: int | None = None,
        keep_logs: Duration | None = None,
    ) -> Tenant:
        """Give a tenant its share and bounds; what is left out is as for one that was given nothing."""
        work = self._client.set_tenant(
            name, weight=weight, max_queued=max_queued, max_payload=max_payload, keep_logs=keep_logs
        )
        return self._run(work)

    def set_secret(self, name: str, text: str) -> StoredSecret:
        """Give a secret of the tenant one works in its text. Raises Invalid, Conflict and SecretsLocked."""
        return self._run(self._client.set_secret(name, text))

    def secrets(self) -> list[StoredSecret]:
        """Return the secrets that are stored, by name, without their texts."""
        return self._run(self._client.secrets())

    def remove_secret(self, name: str) -> None:
        """Remove a secret. Raises NotFound."""
        self._run(self._client.remove_secret(name))

    def audit(self, *, all_tenants: bool = False, **where: Unpack[AuditConditions]) -> Iterator[AuditEntry]:
        """Return who changed what, newest first; with `all_tenants` also what concerns all."""
        return self._iterate(self._client.audit(all_tenants=all_tenants, **where))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            with self._turn:
                return self._runner.run(work)
        work.close()
        raise Conflict("an event loop is running here: use AsyncClient")

    def _iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Take one after the other; whoever stops early leaves nothing open."""
        nothing = object()
        try:
            while (item := self._run(_next(items, nothing))) is not nothing:
                yield item  # type: ignore[misc] # it is not nothing
        finally:
            self._run(_close(items))


async def _next(items: AsyncIterator[T], nothing: object) -> T | object:
    return await anext(items, nothing)


async def _close(items: Any) -> None:
    await items.aclose()
