"""The whole store: writes go to the one writer, reads to the readers."""

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import apsw

from tidewheel.clock import Clock, SystemClock
from tidewheel.errors import Invalid, Unavailable
from tidewheel.model.cap import QueueCap, check_cap
from tidewheel.model.duty import Agenda, Duty, check_duties
from tidewheel.model.ids import IdMaker
from tidewheel.model.job import Claimed, Job, JobSpec, Run, Submitted
from tidewheel.model.limit import LimitRule, by_hand, check_declared, check_rule
from tidewheel.model.liveness import ExpiredWorker
from tidewheel.model.log import KEEP_LOGS, LogLine, prepare_lines
from tidewheel.model.log_piece import Piece, pieces_of
from tidewheel.model.note import RunNote, prepare_notes
from tidewheel.model.outcome import MAX_LOSSES, NO_DELAY, LossRule, Outcome, Verdict, flaws_of
from tidewheel.model.resources import Needs, Resources
from tidewheel.model.retention import NO_KINDS, Keep, KindKeep, check_age, rules_of
from tidewheel.model.states import Cause
from tidewheel.model.submission import MAX_ARGS_BYTES, check_ages, prepare_all
from tidewheel.model.worker import Beat, Reaped, Worker, WorkerSpec, check_worker
from tidewheel.store.base import ClaimRequest
from tidewheel.store.bell import Bell
from tidewheel.store.joining import Inside
from tidewheel.store.sealing import NO_KEYS, Keyring
from tidewheel.store.sqlite import (
    capping,
    claiming,
    depending,
    duties,
    joining,
    keeping,
    limiting,
    log_lines,
    noting,
    settling,
    steering,
    submitting,
    working,
)
from tidewheel.store.sqlite.access import Access
from tidewheel.store.sqlite.aging import Ages
from tidewheel.store.sqlite.alerting import Alerting
from tidewheel.store.sqlite.artifacts import Artifacts
from tidewheel.store.sqlite.connection import rows
from tidewheel.store.sqlite.dead_letters import DeadLetters
from tidewheel.store.sqlite.forking import guard
from tidewheel.store.sqlite.listening import Listeners
from tidewheel.store.sqlite.log_retention import LogRetention
from tidewheel.store.sqlite.migrate import open_migrated
from tidewheel.store.sqlite.notifying import Notifying
from tidewheel.store.sqlite.operating import Operating
from tidewheel.store.sqlite.phrases import retire_phrases
from tidewheel.store.sqlite.reader import Readers
from tidewheel.store.sqlite.reading import Reading
from tidewheel.store.sqlite.retiring import Retention
from tidewheel.store.sqlite.scheduling import Scheduling
from tidewheel.store.sqlite.secrets import Secrets
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import micros
from tidewheel.store.sqlite.writer import Writer

T = TypeVar("T")


class SqliteStore(Reading, Operating, Scheduling, DeadLetters, Access, Secrets, Artifacts, Notifying, Alerting):
    """See `store.base.Store`."""

    def __init__(
        self, path: Path, connection: apsw.Connection, clock: Clock, max_args_bytes: int, keyring: Keyring
    ) -> None:
        self._epoch: int = rows(connection, "meta", {})[0][0]
        self.max_args_bytes = max_args_bytes
        self.keyring = keyring
        self._path = path
        self._clock = clock
        self._connection = connection
        make_id = IdMaker(lambda: micros(clock.now()) // 1000, random.SystemRandom())
        self._writer = Writer(path, Session(connection, clock, make_id))
        self._readers = Readers(path)
        self._listeners = Listeners(path, self._writer, clock)
        self._forked = False
        self._rechecked = depending.FIRST
        self._retention = Retention()
        self._log_retention = LogRetention()
        self._ages = Ages(clock)
        guard(self)

    @property
    def epoch(self) -> int:
        return self._epoch

    @property
    def commits(self) -> int:
        """How many transactions were committed since the store was opened."""
        return self._writer.commits

    async def close(self) -> None:
        if not self._forked:
            await asyncio.to_thread(self._close)

    def abandon(self) -> list[apsw.Connection]:
        """Refuse all use in a process that was forked off."""
        self._forked = True
        return [self._connection, *self._readers.connections, *self._listeners.abandon()]

    def _close(self) -> None:
        # The writer's connection goes last: it then copies the log into the file and removes it.
        self._listeners.close()
        self._readers.close()
        self._writer.close()

    def _write(self, work: Callable[[Session], T]) -> "asyncio.Future[T]":
        self._check_process()
        return self._writer.run(work)

    async def _read(self, look: Callable[[apsw.Connection], T]) -> T:
        self._check_process()
        return await self._readers.run(look)

    def _check_process(self) -> None:
        if self._forked:
            raise Unavailable(f"{self._path} was opened before this process was forked off: open it anew")

    # Jobs

    async def submit(self, specs: Sequence[JobSpec]) -> list[Submitted]:
        jobs = prepare_all(specs, max_args_bytes=self.max_args_bytes)
        check_ages(jobs, self._clock.now())
        return await self._write(lambda session: capping.submit_capped(session, jobs)) if jobs else []

    async def seen_before(self, specs: Sequence[JobSpec]) -> list[bool]:
        return await self._read(lambda connection: submitting.seen_before(connection, specs))

    async def make_lanes(self, specs: Sequence[JobSpec]) -> None:
        del specs

    async def submit_within(self, connection: Any, specs: Sequence[JobSpec], *, waits: bool) -> list[Submitted]:
        del specs, waits
        joining.refuse(connection)

    async def expect_commit(self) -> None:
        """Do nothing: no job comes by a transaction of someone else's."""

    async def transact(self, work: Callable[[Inside], T]) -> T:
        return await self._write(lambda session: joining.transact(session, work, self.max_args_bytes))

    async def cancel(self, job_id: UUID, *, tenant: str | None = None, reason: str = "") -> Job:
        steering.check_reason(reason)
        return await self._write(lambda session: steering.cancel(session, job_id, tenant, reason))

    async def redrive(self, job_ids: Sequence[UUID], *, tenant: str | None = None) -> list[UUID]:
        await self._tell_children_of(list(job_ids))
        delays = dict.fromkeys(job_ids, NO_DELAY)
        return await self._write(lambda session: steering.redrive(session, delays, tenant))

    # Runs

    async def claim(self, request: ClaimRequest) -> Claimed:
        if request.limit < 1:
            raise Invalid("limit", f"must be at least 1, not {request.limit}")
        return await self._write(lambda session: claiming.claim(session, request))

    async def settle(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> list[Verdict]:
        settling.check_reportable(outcomes)
        if not outcomes:
            return []
        flaws = flaws_of(outcomes)  # here, since the writer has other things to do
        return await self._write(lambda session: settling.settle(session, worker_id, outcomes, flaws))

    async def oldest_unfit(self, request: ClaimRequest, total: Resources) -> tuple[Needs, timedelta] | None:
        return await self._write(lambda session: claiming.oldest_unfit(session, request, total))

    async def owned(self, worker_id: UUID) -> list[Run]:
        return await self._write(lambda session: claiming.owned(session, worker_id))

    # Workers

    async def register(self, spec: WorkerSpec) -> Worker:
        check_worker(spec)
        return await self._write(lambda session: working.register(session, spec))

    async def beat(self, worker_ids: Sequence[UUID], *, clock: datetime | None = None) -> list[Beat]:
        return await self._write(lambda session: working.beat(session, worker_ids, clock))

    async def stopping(self, worker_ids: Sequence[UUID]) -> list[tuple[UUID, UUID, int]]:
        return await self._read(lambda connection: working.stopping(connection, worker_ids))

    async def deregister(self, worker_id: UUID) -> Reaped:
        ended = await self._write(lambda session: working.end_worker(session, worker_id, Cause.RELEASED))
        return ended or Reaped()

    async def expired(self) -> list[ExpiredWorker]:
        return await self._read(lambda connection: working.expired(connection, micros(self._clock.now())))

    async def reap(
        self, worker_id: UUID, beat: int, *, max_losses: int = MAX_LOSSES, count: bool = True
    ) -> Reaped | None:
        rule = LossRule(max_losses, count)
        return await self._write(lambda session: working.end_worker(session, worker_id, Cause.LOST, beat, rule))

    async def worker(self, worker_id: UUID) -> Worker:
        return await self._read(partial(working.worker, worker_id=worker_id))

    async def workers(self, *, alive: bool | None = None) -> list[Worker]:
        return await self._read(partial(working.workers, alive=alive))

    # Hints

    def listen(self) -> AbstractAsyncContextManager[Bell]:
        self._check_process()
        return self._listeners.listen()

    # Notes and logs

    async def note(self, worker_id: UUID, notes: Sequence[RunNote]) -> None:
        merged = prepare_notes(notes)
        if merged:
            await self._write(lambda session: noting.note(session, worker_id, merged))

    async def checkpoint_of(self, job_id: UUID) -> str | None:
        return await self._read(lambda connection: noting.checkpoint_of(connection, job_id))

    async def append_logs(self, lines: Sequence[LogLine]) -> None:
        await self.append_pieces(pieces_of(prepare_lines(lines)))

    async def append_pieces(self, pieces: Sequence[Piece]) -> None:
        if pieces:
            await self._write(lambda session: log_lines.append(session, pieces))

    async def index_logs(self) -> int:
        segment = await self._read(lambda connection: log_lines.next_segment(connection, micros(self._clock.now())))
        return 0 if segment is None else await self._write(lambda session: log_lines.keep_segment(session, segment))

    # Limits

    async def set_rule(self, rule: LimitRule) -> None:
        check_rule(rule)
        await self._write(lambda session: limiting.put_rules(session, [by_hand(rule)]))

    async def declare_rules(self, rules: Sequence[LimitRule]) -> int:
        declared = check_declared(rules)
        return await self._write(lambda session: limiting.put_rules(session, declared))

    async def remove_rule(self, name: str) -> None:
        await self._write(lambda session: limiting.remove_rule(session, name))

    async def rules(self) -> list[LimitRule]:
        return await self._read(limiting.rules)

    async def repair_limits(self) -> int:
        return await self._write(limiting.repair_limits)

    async def forget_unused_limits(self, *, limit: int = 1000) -> int:
        return await self._write(lambda session: limiting.forget_unused(session, limit))

    async def set_cap(self, cap: QueueCap) -> None:
        check_cap(cap)
        await self._write(lambda session: capping.set_cap(session, cap))

    async def remove_cap(self, queue: str, *, tenant: str = "default") -> None:
        await self._write(lambda session: capping.remove_cap(session, queue, tenant))

    async def caps(self, *, tenant: str | None = None) -> list[QueueCap]:
        return await self._read(lambda connection: capping.caps(connection, tenant))

    # Upkeep

    async def share_duties(self, node: UUID, names: Sequence[str], ttl: timedelta) -> list[Duty] | None:
        check_duties(names, ttl)
        return await self._write(lambda session: duties.share_duties(session, node, names, ttl))

    async def leave_duties(self, node: UUID) -> None:
        await self._write(lambda session: duties.leave_duties(session, node))

    async def agenda(self) -> Agenda:
        return await self._read(lambda connection: duties.agenda(connection, micros(self._clock.now())))

    async def expire(self, *, limit: int = 1000) -> int:
        return await self._write(lambda session: keeping.expire(session, limit))

    async def expire_old(self, max_age: timedelta, *, limit: int = 1000) -> int:
        check_age("max_age", max_age)
        return await self._ages.expire(self._read, self._write, max_age, limit)

    async def drop_gated(self, *, limit: int = 1000) -> int:
        return await self._write(lambda session: keeping.drop_gated(session, limit))

    async def unblock(self, *, limit: int = 1000) -> int:
        return await self._write(lambda session: depending.unblock(session, limit))

    async def recheck_blocked(self, *, limit: int = 1000) -> int:
        cursor = self._rechecked
        self._rechecked, found = await self._read(lambda connection: depending.find_doubtful(connection, cursor, limit))
        return await self._write(lambda session: depending.mend(session, found)) if found else 0

    async def take_census(self) -> None:
        # Counting takes long in a large store, and the writer has other things to do.
        taken_at = micros(self._clock.now())
        counts = await self._read(keeping.count_active)
        await self._write(lambda session: keeping.keep_census(session, counts, taken_at))

    async def retire(
        self, keep: Keep, *, kinds: KindKeep = NO_KINDS, logs: timedelta = KEEP_LOGS, limit: int = 10_000
    ) -> int:
        gone = await self._retention.retire(self._write, rules_of(keep, kinds), limit)
        await self._write(lambda session: keeping.forget_others(session, limit))
        await retire_phrases(self._write, limit)
        while await self._write(lambda session: keeping.retire_notes(session, limit)) == limit:
            pass
        await self._log_retention.retire(self._write, logs, limit)
        return gone

    async def begin_epoch(self) -> int:
        return await self._write(lambda session: int(session.rows("begin_epoch")[0][0]))

    async def prepare_days(self, *, ahead: int = 7) -> int:
        del ahead
        return 0


async def open_store(
    path: Path | str,
    clock: Clock | None = None,
    *,
    create: bool = True,
    max_args_bytes: int = MAX_ARGS_BYTES,
    keyring: Keyring = NO_KEYS,
) -> SqliteStore:
    """Open the file of a store, making it or bringing it up to date as needed, or say what is wrong with it."""

    def open_file() -> SqliteStore:
        place = Path(path).absolute()
        connection = open_migrated(place, create=create)
        return SqliteStore(place, connection, clock or SystemClock(), max_args_bytes, keyring)

    opening = asyncio.ensure_future(asyncio.to_thread(open_file))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        # A thread cannot be stopped, and nobody else knows what it opens.
        await (await opening).close()
        raise
