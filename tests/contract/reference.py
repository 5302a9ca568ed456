"""A store that is obviously right: dictionaries, one caller at a time, no rows, no locks.

It predicts what each call must do. Where a store is free to choose (which jobs a claim takes, which waiters of a limit
are let go), the reference is told the choice and checks that it was allowed.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from tidewheel.errors import AlreadyActive, Conflict, KeyReused
from tidewheel.model.gate import OPEN, Gate, GateMode, flag_of, matches
from tidewheel.model.job import Job, JobSpec, Run
from tidewheel.model.order import AGING
from tidewheel.model.outcome import MAX_LOSSES, Outcome, Verdict
from tidewheel.model.states import ACTIVE, REDRIVABLE, WAITING, Cause, State, end_of_run, move
from tidewheel.model.worker import Reaped, Worker
from tidewheel.store.base import ClaimRequest

RunKey = tuple[UUID, int, UUID]
"""Job, token, worker."""
LEAVE_AN_ATTEMPT = (Cause.FAILED, Cause.CRASHED, Cause.LOST)


@dataclass
class ModelJob:
    """What must be true of one job."""

    id: UUID
    spec: JobSpec
    run_at: datetime
    start_by: datetime | None
    stood_at: datetime | None = None
    """Its place when it waited for a limit, after it was let go with another `run_at`."""
    state: State = State.QUEUED
    token: int = 0
    failures: int = 0
    losses: int = 0
    attempts: int = 0
    worker: UUID | None = None
    cancelling: bool = False
    held: bool = False
    """Whether a gate has asked its run to stop, to be given back."""
    parents: set[UUID] = field(default_factory=set)
    """Those that it waits for, while it is blocked."""

    @property
    def active(self) -> bool:
        return self.state in ACTIVE

    def slots(self) -> list[tuple[str, str]]:
        return [(self.spec.tenant, key) for key in self.spec.limit_keys]


@dataclass
class ModelWorker:
    """What must be true of one worker."""

    ttl: timedelta
    lease_until: datetime
    beat: int
    alive: bool = True


@dataclass
class Reference:
    """The whole store."""

    now: datetime
    jobs: dict[UUID, ModelJob] = field(default_factory=dict)
    workers: dict[UUID, ModelWorker] = field(default_factory=dict)
    gates: dict[UUID, Gate] = field(default_factory=dict)
    limits: dict[tuple[str, str], int] = field(default_factory=dict)
    keys: dict[tuple[str, str], tuple[JobSpec | UUID, UUID]] = field(default_factory=dict)
    """What came first with each idempotency key, a job or the trigger of a schedule, and the job that it made."""
    accepted: dict[RunKey, Cause] = field(default_factory=dict)
    """How runs ended in the words of their workers."""
    ended: dict[RunKey, Cause] = field(default_factory=dict)
    """How runs ended, whoever ended them."""

    # Submitting and steering

    def expect_submit(self, spec: JobSpec) -> UUID | type[Conflict] | None:
        """Return the job that must be answered with, the error that must be raised, or None for a new job."""
        if spec.idempotency_key is not None and (known := self.keys.get((spec.tenant, spec.idempotency_key))):
            return known[1] if known[0] == spec else KeyReused
        holder = self._holder(spec.tenant, spec.unique_key)
        if holder is None:
            return None
        if spec.unique == "keep":
            return holder.id
        return None if spec.unique == "replace" and holder.state in WAITING else AlreadyActive

    def submit(self, spec: JobSpec, job_id: UUID) -> None:
        holder = self._holder(spec.tenant, spec.unique_key)
        if holder is not None:
            self._end_waiting(holder, Cause.CANCELLED)
        self.jobs[job_id] = job = ModelJob(job_id, spec, self.now + (spec.delay or timedelta(0)), spec.start_by)
        if spec.after:
            job.state, job.parents = State.BLOCKED, set(spec.after)
            for parent in spec.after:
                self._tell(self.jobs[parent])
        if spec.idempotency_key is not None:
            self.keys[spec.tenant, spec.idempotency_key] = (spec, job_id)

    def cancel(self, job_id: UUID) -> None:
        job = self.jobs[job_id]
        if job.state in WAITING:
            self._end_waiting(job, Cause.CANCELLED)
        elif job.state is State.RUNNING:
            job.cancelling, job.held = True, False

    def redrive(self, job_id: UUID) -> bool:
        job = self.jobs[job_id]
        if job.state not in REDRIVABLE or self._holder(job.spec.tenant, job.spec.unique_key) is not None:
            return False
        job.state = move(job.state, Cause.REDRIVEN)
        job.failures = job.losses = 0
        job.run_at, job.stood_at, job.worker, job.cancelling = self.now, None, None, False
        if job.start_by is not None and job.start_by <= self.now:
            job.start_by = None
        return True

    def _holder(self, tenant: str, key: str | None) -> ModelJob | None:
        jobs = (job for job in self.jobs.values() if job.active and job.spec.tenant == tenant)
        return next((job for job in jobs if key is not None and job.spec.unique_key == key), None)

    # Claiming

    def can_claim(self, worker_id: UUID) -> bool:
        worker = self.workers[worker_id]
        return worker.alive and worker.lease_until > self.now

    def eligible(self, request: ClaimRequest) -> list[ModelJob]:
        # A claim may itself let someone go for whom a token came.
        waiting = (State.QUEUED, State.LIMITED)
        jobs = (job for job in self.jobs.values() if job.state in waiting and job.run_at <= self.now)
        served = (job for job in jobs if job.spec.queue in request.queues and self.flag(job) in (OPEN, GateMode.SLOW))
        return [job for job in served if request.kinds is None or job.spec.kind in request.kinds]

    def claim(self, request: ClaimRequest, runs: list[Run]) -> None:
        """Check that these runs were allowed, and take them."""
        eligible = self.eligible(request)
        by_id = {job.id: job for job in eligible}
        taken = [by_id[run.job_id] for run in runs]
        assert len({job.id for job in taken}) == len(taken) <= request.limit
        if not any(job.spec.limit_keys for job in eligible):
            assert len(taken) == min(request.limit, len(eligible)), "all that may be taken is taken"
            if not any(job.run_at <= self.now - AGING for job in eligible):
                self._check_order(eligible, taken)
        for run, job in zip(runs, taken, strict=True):
            assert run.token > job.token
            assert (run.failures, run.losses, run.cancelling) == (job.failures, job.losses, False)
            if job.state is State.LIMITED:
                job.state, job.run_at, job.stood_at = move(job.state, Cause.ROOM), run.run_at, None
            job.state = move(job.state, Cause.CLAIMED)
            job.token, job.worker = run.token, request.worker_id
        for key, running in self.running().items():
            fresh = any(key in job.slots() for job in taken)
            assert not fresh or running <= self.limits.get(key, running), f"{key} is over its limit"

    def _check_order(self, eligible: list[ModelJob], taken: list[ModelJob]) -> None:
        priorities = [job.spec.priority for job in taken]
        assert priorities == sorted(job.spec.priority for job in eligible)[: len(taken)]
        for tenant, priority in {(job.spec.tenant, job.spec.priority) for job in taken}:

            def of_group(jobs: list[ModelJob], group: tuple[str, int] = (tenant, priority)) -> list[datetime]:
                return [job.run_at for job in jobs if (job.spec.tenant, job.spec.priority) == group]

            got = of_group(taken)
            assert got == sorted(of_group(eligible))[: len(got)], "first in, first out"

    # Ends of runs

    def settle(self, worker_id: UUID, outcome: Outcome) -> set[Verdict]:
        """Return the verdicts that are right."""
        job = self.jobs[outcome.job_id]
        key = (job.id, outcome.token, worker_id)
        if (job.state, job.token, job.worker) == (State.RUNNING, outcome.token, worker_id):
            self.accepted[key] = outcome.cause
            self._end_run(job, outcome.cause, delay=outcome.delay)
            return {Verdict.ACCEPTED}
        leaves_no_trace = outcome.cause in (Cause.SNOOZED, Cause.RELEASED)
        given_back = self.ended.get(key) is Cause.RELEASED
        if self.accepted.get(key) is outcome.cause and not leaves_no_trace and not given_back:
            return {Verdict.REPEATED}
        stopped = self.ended.get(key) is Cause.STOPPED and outcome.cause is not Cause.RETURNED
        same_end = leaves_no_trace or given_back or stopped or outcome.cause is Cause.CRASHED or key in self.accepted
        return {Verdict.REPEATED, Verdict.STALE} if same_end else {Verdict.STALE}

    def end_worker(self, worker_id: UUID, cause: Cause) -> Reaped:
        """End a worker and its runs, by the reaper (lost) or by its own will (released)."""
        worker = self.workers[worker_id]
        ends = Counter[Cause]()
        if worker.alive:
            worker.alive = False
            mine = [job for job in self.jobs.values() if (job.state, job.worker) == (State.RUNNING, worker_id)]
            ends.update(self._end_run(job, cause) for job in mine)
        back = sum(ends[each] for each in {cause, Cause.RELEASED})
        return Reaped(back, ends[Cause.QUARANTINED], ends[Cause.STOPPED])

    def can_reap(self, worker_id: UUID, beat: int) -> bool:
        worker = self.workers[worker_id]
        return worker.alive and worker.lease_until <= self.now and worker.beat == beat

    def _end_run(self, job: ModelJob, cause: Cause, delay: timedelta = timedelta(0)) -> Cause:
        cause = end_of_run(cause, cancelling=job.cancelling)
        if job.held and cause is not Cause.RETURNED:
            cause = Cause.RELEASED
        if cause in (Cause.CRASHED, Cause.LOST) and job.losses + 1 >= MAX_LOSSES:
            cause = Cause.QUARANTINED
        assert job.worker is not None
        self.ended[job.id, job.token, job.worker] = cause
        job.failures += cause in (Cause.FAILED, Cause.GAVE_UP)
        job.losses += cause in (Cause.CRASHED, Cause.LOST, Cause.QUARANTINED)
        job.state = move(job.state, cause)
        job.cancelling = job.held = False
        job.attempts += cause in LEAVE_AN_ATTEMPT or not job.active
        if job.active:
            job.run_at, job.stood_at = self.now + delay, None
        self._tell(job)
        return cause

    def _tell(self, parent: ModelJob) -> None:
        """Tell the children of a job that has ended."""
        if parent.active:
            return
        for child in self.jobs.values():
            if child.state is not State.BLOCKED or parent.id not in child.parents:
                continue
            if parent.state is State.SUCCEEDED or child.spec.on_parent_failure == "run":
                child.parents.remove(parent.id)
                if not child.parents:
                    child.state, child.run_at = move(child.state, Cause.PARENTS_ENDED), max(child.run_at, self.now)
            elif child.spec.on_parent_failure == "skip":
                self._end_waiting(child, Cause.PARENT_FAILED)

    # Workers

    def register(self, worker: Worker) -> None:
        assert worker.id not in self.workers
        self.workers[worker.id] = ModelWorker(worker.ttl, self.now + worker.ttl, worker.beat)

    def beat(self, worker_id: UUID, beat: int) -> None:
        worker = self.workers[worker_id]
        assert worker.alive
        assert beat > worker.beat
        worker.beat, worker.lease_until = beat, self.now + worker.ttl

    def cancelling(self, worker_id: UUID) -> set[tuple[UUID, int]]:
        jobs = (job for job in self.jobs.values() if job.state is State.RUNNING and job.worker == worker_id)
        return {(job.id, job.token) for job in jobs if job.cancelling or job.held}

    def silent(self) -> set[UUID]:
        workers = self.workers.items()
        return {worker_id for worker_id, worker in workers if worker.alive and worker.lease_until <= self.now}

    # Chores

    def expire(self) -> int:
        late = [job for job in self._waiting() if job.start_by is not None and job.start_by <= self.now]
        return self._end_all(late, Cause.EXPIRED)

    def expire_old(self, max_age: timedelta) -> int:
        return self._end_all([job for job in self._waiting() if job.run_at < self.now - max_age], Cause.EXPIRED)

    def drop_gated(self) -> int:
        dropped = [job for job in self._waiting() if self.flag(job) == GateMode.DROP]
        return self._end_all(dropped, Cause.DROPPED)

    def close_gate(self, gate: Gate) -> None:
        """Close a gate in place of the one on the same, and ask what runs behind it to stop if it says so."""
        same = (gate.kind, gate.queue, gate.tenant)
        self.gates = {old.id: old for old in self.gates.values() if (old.kind, old.queue, old.tenant) != same}
        self.gates[gate.id] = gate
        for job in self.jobs.values():
            spec, asked = job.spec, job.cancelling or job.held
            behind = matches(gate, kind=spec.kind, queue=spec.queue, tenant=spec.tenant)
            if gate.stop_running and behind and job.state is State.RUNNING and not asked:
                job.cancelling, job.held = gate.mode is GateMode.DROP, gate.mode is GateMode.HOLD

    def flag(self, job: ModelJob) -> str:
        spec = job.spec
        return flag_of(self.gates.values(), kind=spec.kind, queue=spec.queue, tenant=spec.tenant)

    def _waiting(self) -> Iterable[ModelJob]:
        return (job for job in self.jobs.values() if job.state in WAITING)

    def _end_all(self, jobs: list[ModelJob], cause: Cause) -> int:
        for job in jobs:
            job.state = move(job.state, cause)
        for job in jobs:
            self._tell(job)
        return len(jobs)

    def _end_waiting(self, job: ModelJob, cause: Cause) -> None:
        self._end_all([job], cause)

    # What the store is free to decide about limits, and the comparison

    def running(self) -> Counter[tuple[str, str]]:
        return Counter(key for job in self.jobs.values() if job.state is State.RUNNING for key in job.slots())

    def agree(self, shown: Job) -> None:
        """Compare a job with what the store shows, after following what it decided about limits."""
        job = self.jobs[shown.id]
        if {job.state, shown.state} == {State.QUEUED, State.LIMITED}:
            assert job.spec.limit_keys
            job.state = move(job.state, Cause.NO_ROOM if shown.state is State.LIMITED else Cause.ROOM)
        if job.spec.limit_keys and shown.state is State.QUEUED and job.run_at <= shown.run_at <= self.now:
            job.stood_at = job.stood_at or job.run_at
            job.run_at = shown.run_at  # who was let go may queue up anew
        if shown.state is State.LIMITED and job.stood_at is not None:
            job.run_at, job.stood_at = job.stood_at, None  # but has its old place if it must wait again
        if shown.state is State.LIMITED:
            assert shown.waits_for in job.spec.limit_keys
            assert (job.spec.tenant, shown.waits_for) in self.limits, "it waits for a limit that is not there"
        assert shown.state is job.state
        assert shown.waiting_for == (len(job.parents) if job.state is State.BLOCKED else 0)
        assert set(shown.after) == set(job.spec.after)
        assert shown.token == job.token or (shown.token > job.token and shown.state is not State.RUNNING)
        job.token = shown.token
        seen = (shown.failures, shown.losses, shown.cancelling, shown.run_at, shown.start_by)
        assert seen == (job.failures, job.losses, job.cancelling, job.run_at, job.start_by)
        assert shown.gate == self.flag(job) or not job.active
        assert (shown.finished_at is None) == job.active
        assert job.state is not State.RUNNING or shown.last_worker == job.worker
