"""The parts of the client without an event loop that are about schedules, reasons, dead letters and files."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar, Unpack
from uuid import UUID

from tidewheel.client.artifacts import ArtifactInfo
from tidewheel.client.asynchronous import AsyncClient
from tidewheel.client.options import Duration, PriorityName
from tidewheel.client.schedule_options import Change, DeadConditions, Definition
from tidewheel.client.schedules import Coming
from tidewheel.errors import Conflict
from tidewheel.model.dead_letter import DeadGroup
from tidewheel.model.job import Job
from tidewheel.model.schedule import Occurrence, Schedule
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
