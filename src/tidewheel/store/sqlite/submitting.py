"""Submitting: jobs go in whole batches or not at all."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import apsw
import msgspec

from tidewheel.errors import AlreadyActive, KeyReused
from tidewheel.model.job import JobSpec, Submitted
from tidewheel.model.job_phrases import said_by, said_of_kinds
from tidewheel.model.states import WAITING, Cause
from tidewheel.model.submission import Prepared, field_of
from tidewheel.store.lanes import Lane
from tidewheel.store.sqlite.connection import rows
from tidewheel.store.sqlite.ending import end_waiting
from tidewheel.store.sqlite.lanes import pair_of
from tidewheel.store.sqlite.phrases import note_phrases
from tidewheel.store.sqlite.relating import Child, check_free, relate
from tidewheel.store.sqlite.releasing import Waiting
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import id_of, json_text, micros, some, span

KEY_KEPT: Final = span(timedelta(days=1))

_waiting: Final = msgspec.json.Decoder(Waiting).decode


def submit(session: Session, jobs: Sequence[Prepared]) -> list[Submitted]:
    """See `store.base.JobStore.submit`."""
    batch = Batch(session, session.now)
    answers = [
        batch.add(job, field_of("after", position, len(jobs)) if job.after else "") for position, job in enumerate(jobs)
    ]
    batch.write()
    batch.relate()
    return answers


def seen_before(connection: apsw.Connection, specs: Sequence[JobSpec]) -> list[bool]:
    """See `store.base.JobStore.seen_before`."""
    asked = [(spec.tenant, spec.idempotency_key) for spec in specs]
    known = {tuple(row) for row in rows(connection, "seen_keys", {"asked": json_text(asked)})}
    return [slot in known for slot in asked]


def known_by_key(session: Session, tenant: int, key: str, fingerprint: bytes | None) -> UUID | None:
    """Return the job that came with the same idempotency key before. Raises KeyReused."""
    found = session.rows("find_key", tenant=tenant, key=key)
    if not found:
        return None
    of_first, job_id = found[0]
    if of_first != fingerprint:
        raise KeyReused(key)
    return id_of(job_id)


class Batch:
    """Jobs on their way into the store. Plain ones are gathered; one with a key first writes what was gathered."""

    def __init__(self, session: Session, now: int) -> None:
        self._session = session
        self._now = now
        self._lanes = session.lanes
        self._rows: list[Any] = []
        self._given: list[UUID] = []
        self._children: list[Child] = []
        self._plain = True

    def add(self, job: Prepared, field: str) -> Submitted:
        """Take a job in, or find the one that stands for it."""
        lane = self._lanes.intern(self._session.connection, job.lane)
        if job.idempotency_key is not None:
            known = known_by_key(self._session, lane.tenant, job.idempotency_key, job.fingerprint)
            if known is not None:
                return Submitted(known, created=False)
        active = None if job.unique_key is None else self._active(job, lane)
        job_id = active or job.id or self._session.make_id()
        if job.idempotency_key is not None:
            self._keep_key(job, lane, job_id)
        if active is None:
            self._gather(job, lane, job_id)
            if job.after:
                self._children.append(Child(job_id, lane.tenant, job.after, field))
        return Submitted(job_id, created=active is None)

    def write(self) -> None:
        """Write what was gathered."""
        if self._rows:
            check_free(self._session, self._given)
            statement = "add_plain_jobs" if self._plain else "add_jobs"
            self._session.run(statement, jobs=json_text(self._rows), now=self._now)
            self._note()
            self._rows, self._given, self._plain = [], [], True

    def relate(self) -> None:
        """Let the jobs with parents wait for these, once all are written."""
        if self._children:
            relate(self._session, self._children, self._now)

    def _note(self) -> None:
        """Note what the jobs are found by that are written."""
        said = said_by((row[2], row[0], row[5], row[6]) for row in self._rows if row[5] or row[6])
        lanes = self._lanes.by_id
        kinds = self._session.kinds
        unknown = kinds.unknown(said_of_kinds((row[2], row[0], lanes[row[1]].kind) for row in self._rows))
        note_phrases(self._session, [*unknown, *said])
        kinds.remember(unknown)

    def _gather(self, job: Prepared, lane: Lane, job_id: UUID) -> None:
        due_at = self._now if job.delay is None else self._now + span(job.delay)
        due_at = due_at if job.run_at is None else micros(job.run_at)
        if not job.after:
            self._lanes.mark(pair_of(lane.id, job.priority), max(due_at, self._now))
        row: tuple[Any, ...] = (job_id, lane.id, lane.tenant, job.priority, job.args, job.labels, job.options)
        others = (job.start_by, job.idempotency_key, job.unique_key, job.schedule_id, job.limit_keys, job.after)
        if due_at != self._now or any(others):
            self._plain = False
            keys = json_text(job.limit_keys) if job.limit_keys else None
            named = (keys, job.idempotency_key, job.unique_key, job.schedule_id)
            row = (*row, due_at, some(micros, job.start_by), *named)
            row = (*row, len(job.after), job.on_parent_failure) if job.after else row
        self._rows.append(row)
        if job.id is not None:
            self._given.append(job.id)

    def _keep_key(self, job: Prepared, lane: Lane, job_id: UUID) -> None:
        self._session.run(
            "add_key",
            tenant=lane.tenant,
            key=job.idempotency_key,
            fingerprint=job.fingerprint,
            job=job_id.bytes,
            check_at=self._now + KEY_KEPT,
        )

    def _active(self, job: Prepared, lane: Lane) -> UUID | None:
        """Return the active job with the same unique key, if it is to be kept; make way if it is to be replaced."""
        self.write()
        found = self._session.rows("find_unique", tenant=lane.tenant, key=job.unique_key)
        if not found:
            return None
        job_id, row = id_of(found[0][0]), _waiting(found[0][1])
        if job.unique == "keep":
            return job_id
        if job.unique == "reject" or row.state not in WAITING:
            raise AlreadyActive(job_id, str(job.unique_key))
        end_waiting(self._session, [row], Cause.CANCELLED, "replaced", self._now)
        return None
