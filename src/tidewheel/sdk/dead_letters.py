"""Dead letters of an app: what died of what, and sending it round again. Each question has a synchronous twin."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, TypedDict, Unpack
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model import job as model
from tidewheel.model.dead_letter import DeadFilter, DeadGroup, Redriven, check_dead_filter, check_rate
from tidewheel.model.guessing import did_you_mean
from tidewheel.sdk.desk import Desk
from tidewheel.sdk.job import Job
from tidewheel.store.base import Store
from tidewheel.tasks.builtin import check_call

PIECE: Final = 500
"""How many are sent round in one transaction."""


class DeadOptions(TypedDict, total=False):
    """Which dead letters; all conditions must hold."""

    kind: str
    queue: str
    fingerprint: str
    died_from: datetime
    died_before: datetime


class DeadLetters:
    """The dead letters of an app's tenant."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def agroups(self, *, limit: int = 50, **where: Unpack[DeadOptions]) -> list[DeadGroup]:
        """Return the groups by kind and fingerprint of the error, the largest first."""
        chosen = self._where(where)
        return await self._desk.use(lambda store: store.dead_groups(chosen, limit=limit))

    async def alist(
        self, *, limit: int = 50, after: UUID | None = None, **where: Unpack[DeadOptions]
    ) -> list[model.Job]:
        """Return dead letters, newest first, beginning after the id `after`."""
        chosen = self._where(where)

        async def read(store: Store) -> list[model.Job]:
            page = await store.dead_letters(chosen, limit=limit, after=after)
            found = page.jobs
            while page.next is not None and len(found) < limit:
                page = await store.dead_letters(chosen, limit=limit - len(found), after=page.next)
                found += page.jobs
            return found

        return await self._desk.use(read)

    async def acount(self, **where: Unpack[DeadOptions]) -> int:
        """Count dead letters."""
        chosen = self._where(where)
        return await self._desk.use(lambda store: store.count_dead(chosen))

    async def aredrive(
        self,
        *,
        rate: float | None = None,
        dry_run: bool = False,
        told: Callable[[int], object] | None = None,
        **where: Unpack[DeadOptions],
    ) -> int:
        """Send dead letters round again and return how many; `rate` is how many become due in a second.

        With `dry_run` they are only counted. They go in pieces: if this is interrupted, ask again for the rest. After
        each piece `told` gets to know how many went so far.
        """
        chosen, rate = self._where(where), check_rate(rate)
        if dry_run:
            return await self._desk.use(lambda store: store.count_dead(chosen))
        sent, after = 0, None
        while True:
            start = timedelta(0) if rate is None else timedelta(seconds=sent / rate)
            piece = await self._desk.use(partial(_send_piece, chosen, after, rate, start))
            sent, after = sent + len(piece.jobs), piece.next
            if told is not None:
                told(sent)
            if after is None:
                return sent
            if chosen.died_before is None:  # what dies again meanwhile has had its turn
                chosen = msgspec.structs.replace(chosen, died_before=piece.as_of)

    async def aretry(self, job: UUID | Job[Any], args: Mapping[str, Any] | None = None) -> model.Job:
        """Send one dead letter round again, with other arguments if some are given, and return it.

        Arguments are checked as at an enqueue. Raises NotFound, Invalid, Conflict.
        """
        job_id, tenant = job.id if isinstance(job, Job) else job, self._desk.tenant
        info = await self._desk.use(lambda store: store.get(job_id, tenant=tenant))
        chosen = info.args if args is None else self._bound(info.kind, args)
        return await self._desk.use(lambda store: store.redrive_edited(job_id, chosen, tenant=tenant))

    # The synchronous twins

    def groups(self, *, limit: int = 50, **where: Unpack[DeadOptions]) -> list[DeadGroup]:
        """Return the groups by kind and fingerprint of the error, the largest first."""
        return self._desk.run(self.agroups(limit=limit, **where))

    def list(self, *, limit: int = 50, after: UUID | None = None, **where: Unpack[DeadOptions]) -> list[model.Job]:
        """Return dead letters, newest first, beginning after the id `after`."""
        return self._desk.run(self.alist(limit=limit, after=after, **where))

    def count(self, **where: Unpack[DeadOptions]) -> int:
        """Count dead letters."""
        return self._desk.run(self.acount(**where))

    def redrive(
        self,
        *,
        rate: float | None = None,
        dry_run: bool = False,
        told: Callable[[int], object] | None = None,
        **where: Unpack[DeadOptions],
    ) -> int:
        """Send dead letters round again and return how many; `rate` is how many become due in a second.

        With `dry_run` they are only counted. They go in pieces: if this is interrupted, ask again for the rest. After
        each piece `told` gets to know how many went so far.
        """
        return self._desk.run(self.aredrive(rate=rate, dry_run=dry_run, told=told, **where))

    def retry(self, job: UUID | Job[Any], args: Mapping[str, Any] | None = None) -> model.Job:
        """Send one dead letter round again, with other arguments if some are given, and return it.

        Arguments are checked as at an enqueue. Raises NotFound, Invalid, Conflict.
        """
        return self._desk.run(self.aretry(job, args))

    def _where(self, where: DeadOptions) -> DeadFilter:
        known = DeadOptions.__annotations__
        if unknown := sorted(where.keys() - known.keys()):
            raise Invalid(unknown[0], f"is no condition on dead letters{did_you_mean(unknown[0], known)}")
        return check_dead_filter(DeadFilter(tenant=self._desk.tenant, **where))

    def _bound(self, kind: str, args: Mapping[str, Any]) -> dict[str, Any]:
        caller = self._desk.callers.get(kind)
        check_call(kind, args)
        return dict(args) if caller is None else caller.bind((), args)


async def _send_piece(
    where: DeadFilter, after: UUID | None, rate: float | None, start: timedelta, store: Store
) -> Redriven:
    return await store.redrive_dead(where, rate=rate, start=start, limit=PIECE, after=after)
