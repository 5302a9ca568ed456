"""A client that writes down what it asked for and what it was told, before and after."""

import asyncio
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from harness.checker.records import Cancel, Phase, Submit
from harness.journal import Journal
from harness.witness import boottime
from tidewheel.errors import OutcomeUnknown, Unavailable
from tidewheel.model.job import Job, JobSpec
from tidewheel.store.base import Store

PAUSE: Final = 0.1
"""Seconds between two tries."""


class Client:
    """Submits and cancels; what has no answer is asked again under the same key, as every client should."""

    def __init__(self, store: Store, journal: Journal) -> None:
        self._store = store
        self._journal = journal

    async def submit(self, specs: Sequence[JobSpec], *, patience: float = 60.0) -> list[UUID]:
        """Submit jobs that have keys until they are acknowledged; raises Unavailable when patience ends."""
        until = boottime() + patience
        while True:
            self._write("invoke", specs)
            try:
                answers = await self._store.submit(specs)
            except Unavailable as error:
                self._write(_phase_of(error), specs)
                if boottime() > until:
                    raise
                await asyncio.sleep(PAUSE)
            else:
                jobs = [answer.job_id for answer in answers]
                self._write("ok", specs, jobs)
                return jobs

    async def cancel(self, job_id: UUID, *, patience: float = 60.0) -> Job:
        """Cancel a job until that is answered."""
        until = boottime() + patience
        while True:
            self._journal.add(Cancel(t=boottime(), phase="invoke", job=str(job_id)))
            try:
                job = await self._store.cancel(job_id)
            except Unavailable as error:
                self._journal.add(Cancel(t=boottime(), phase=_phase_of(error), job=str(job_id)))
                if boottime() > until:
                    raise
                await asyncio.sleep(PAUSE)
            else:
                state = "cancelling" if job.cancelling else job.state.value
                told = Cancel(t=boottime(), phase="ok", job=str(job_id), state=state, token=job.token)
                self._journal.add(told)
                return job

    def _write(self, phase: Phase, specs: Sequence[JobSpec], jobs: Sequence[UUID | None] = ()) -> None:
        found = jobs or [None] * len(specs)
        now = boottime()
        self._journal.add(
            *(
                Submit(t=now, phase=phase, key=spec.idempotency_key or "", job=None if job is None else str(job))
                for spec, job in zip(specs, found, strict=True)
            )
        )


def _phase_of(error: Unavailable) -> Phase:
    return "unknown" if isinstance(error, OutcomeUnknown) else "fail"
