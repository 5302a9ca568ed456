"""What every store promises, split by who asks.

A method's docstring is its specification; the contract suite in `tests/contract` holds every store to it. Rules that
hold throughout:

- Each method is atomic: it happens whole or not at all, also when the process or the connection dies in the middle.
- Time is the store's own (the database's clock on PostgreSQL, the host's on SQLite), never the caller's.
- Every write names the state, token and worker it believes in. Zero rows touched means that someone else was first,
  which is an answer and not an error.
- A lost connection raises `Unavailable`, or `OutcomeUnknown` if a write may have happened. Repeating is safe, for a
  submit with the help of an idempotency key.
- `tenant=None` means all tenants and is for operators; with a tenant given, what is not theirs does not exist.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol
from uuid import UUID

import msgspec

from tidewheel.model.dependency import Relative
from tidewheel.model.job import Attempt, Claimed, Job, JobSpec, Run, Submitted
from tidewheel.model.liveness import ExpiredWorker
from tidewheel.model.outcome import MAX_LOSSES, Outcome, Verdict
from tidewheel.model.priority import Priority
from tidewheel.model.resources import Needs, Resources
from tidewheel.model.states import ACTIVE, FINAL, State
from tidewheel.model.worker import Beat, Reaped, Worker, WorkerSpec
from tidewheel.store.access import AuditStore, ErasureStore, KeyStore, TenantStore
from tidewheel.store.alerting import AlertStore
from tidewheel.store.artifacts import ArtifactStore
from tidewheel.store.capping import CapStore
from tidewheel.store.counting import StatStore
from tidewheel.store.dead_letters import DeadLetterStore
from tidewheel.store.explaining import ExplainStore
from tidewheel.store.gating import GateStore
from tidewheel.store.joining import JoinStore
from tidewheel.store.keeping import DutyStore, UpkeepStore
from tidewheel.store.limiting import LimitStore
from tidewheel.store.log_searching import LogSearchStore
from tidewheel.store.notifying import ChannelStore, OutboxStore
from tidewheel.store.pages import MOST_ATTEMPTS, NEWEST, Page
from tidewheel.store.scheduling import OccurrenceStore, ScheduleStore
from tidewheel.store.secrets import SecretStore
from tidewheel.store.telling import HintStore, LogStore, NoteStore


class ClaimRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is ready to start now."""

    worker_id: UUID
    limit: int
    queues: tuple[str, ...] = ("default",)
    kinds: frozenset[str] | None = None
    """The kinds it knows; None stands for all."""
    free: Resources | None = None
    """Resources not in use; None stands for no bound."""
    labels: Mapping[str, str] = {}
    """What jobs with needs may ask for by name and value."""
    at_least: Priority | None = None
    """Only jobs that are at least this urgent, however long others have waited; None stands for all."""
    needs: Needs | None = None
    """Only jobs with just these needs, for a worker that has kept what they ask for; None stands for all."""
    tenant: str | None = None
    """Only jobs of this tenant, for a worker that came with a key of one; None stands for all."""

    @property
    def priorities(self) -> tuple[Priority, ...]:
        """The priorities that may be claimed, most urgent first."""
        return tuple(level for level in Priority if self.at_least is None or level <= self.at_least)


RUNNING_ONLY: Final = frozenset({State.RUNNING})
MOST_FRESH: Final = 10_000
"""How many active jobs are counted while someone waits for their number."""


class JobFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs a list shows; all conditions must hold."""

    tenant: str | None = None
    states: frozenset[State] | None = None
    kind: str | None = None
    queue: str | None = None
    schedule_id: UUID | None = None
    label: tuple[str, str] | None = None
    created_from: datetime | None = None
    created_before: datetime | None = None
    error: str | None = None
    """A part of the message of its error, as it is written. Only jobs that ended without success have one."""
    text: str | None = None
    """Words, all of which must stand in its kind, name, description, labels (`name=value`) or the message of its error,
    as parts of others, too; a phrase stands in quotation marks, and capital letters are like small ones. Or its id."""

    @property
    def active(self) -> bool:
        """Whether jobs that are still to be done may be among them."""
        return self.states is None or not self.states.isdisjoint(ACTIVE)

    @property
    def finished(self) -> bool:
        """Whether finished jobs may be among them."""
        return self.states is None or not self.states.isdisjoint(FINAL)


class Count(msgspec.Struct, frozen=True):
    """How many jobs of one lane are in one state."""

    tenant: str
    queue: str
    kind: str
    state: State
    priority: int | None
    """For active states; None for finished ones."""
    jobs: int


class Counts(msgspec.Struct, frozen=True):
    """Numbers for dashboards, as of an instant."""

    as_of: datetime
    rows: list[Count]

    @property
    def active(self) -> int:
        """How many jobs have not ended."""
        return sum(row.jobs for row in self.rows if row.state in ACTIVE)


class JobStore(Protocol):
    """For whoever submits jobs and steers them."""

    async def submit(self, specs: Sequence[JobSpec]) -> list[Submitted]:
        """Store jobs durably, all or none; the answers are in the order of the specs.

        A job is `queued` from the start; `due_at` is the requested time and `run_at` is the later of that and now, so
        that nothing new lies before the marks of the claimers.

        Idempotency key (per tenant): a key seen before with the same request answers with the first job and
        `created=False`; with another request it raises KeyReused. Unique key (per tenant): if an active job has it,
        `reject` raises AlreadyActive, `keep` answers with that job, `replace` cancels it if it waits and raises
        AlreadyActive if it runs. Raises Invalid for the first bad spec, its field prefixed with the position
        (`specs[3].kind`) if there are several.

        A job with parents (`after`) is `blocked` until the last of them has ended, and then `queued`, due now at the
        earliest, in the transaction of that end. A parent that ends without success, now or before, is dealt with as
        `on_parent_failure` says: `skip` makes the job `skipped` at once, with the reason, and so on to its own
        children; `run` counts that as an end like any other; `hold` lets the job wait until the parent was redriven and
        succeeds. Parents are jobs of the same tenant that are there, or jobs of the same batch that were given an `id`;
        one that is neither is Invalid, and so is a ring of them. A given `id` that is taken raises IdTaken.
        """
        ...

    async def seen_before(self, specs: Sequence[JobSpec]) -> list[bool]:
        """Tell for each spec whether its idempotency key was seen before: a submit would store nothing for it."""
        ...

    async def cancel(self, job_id: UUID, *, tenant: str | None = None, reason: str = "") -> Job:
        """Cancel a job and return it as it is afterwards.

        A waiting job is `cancelled` at once and never starts. A running one becomes `cancelling`: its worker hears of
        it with the next beat, and any end but a success makes it `cancelled`; it never returns to the queue. A finished
        one stays as it is. Raises NotFound.
        """
        ...

    async def redrive(self, job_ids: Sequence[UUID], *, tenant: str | None = None) -> list[UUID]:
        """Send finished jobs (not succeeded ones) round again, and return which.

        The job is `queued` and may run now (`due_at` stays what it was), with failures and losses at zero. Its token
        goes on rising, and its last attempt becomes an attempt of its record. A start deadline that has passed is
        removed. Jobs that are active, succeeded, erased, unknown, or whose unique key is taken are left out of the
        answer.

        A job with parents waits for them no more. Its own children that were skipped because of it stay skipped; those
        that `hold` go on when it succeeds.
        """
        ...


class RunStore(Protocol):
    """For workers: taking jobs and saying what became of them."""

    async def claim(self, request: ClaimRequest) -> Claimed:
        """Take up to `limit` due jobs for one worker.

        Eligible is a job that is `queued` and due, in a lane that is open, whose queue and kind the worker serves and
        whose needs fit what is free. Order as `model.order` says. Each run is `running` with a token higher than any
        before; two callers never get the same job. A job whose limit keys have no room becomes `limited` instead and
        names the first full key. The answer tells the store's time and when the next job becomes due, or the next token
        comes for which someone waits. Raises LeaseLost if the worker is not alive or its lease has passed.

        A claim with `at_least` leaves the less urgent as if it had not been: their turns and shares stay as they were.
        """
        ...

    async def settle(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> list[Verdict]:
        """Store how runs ended; the verdicts are in the order of the outcomes.

        Accepted only if the job is `running` with this token at this worker; then it moves by the transition table:
        finished jobs go to history, others return to the queue, due after `delay`. `failed` counts a failure,
        `crashed` a loss (the third quarantines the job), `snoozed` and `released` count nothing; each of the former two
        leaves an attempt. Limit keys are given back and their first waiters released in the same transaction, and the
        children of finished jobs are told, the first thousand at once and the others by `unblock`. An outcome that the
        database refuses makes its own job dead and does not disturb the others.
        """
        ...

    async def oldest_unfit(self, request: ClaimRequest, total: Resources) -> tuple[Needs, timedelta] | None:
        """Return the needs of the oldest due job that fits the whole worker but not what is free, and its wait.

        Of the lanes that the request could claim from if all were free; None if there is no such job. It takes nothing.
        """
        ...

    async def owned(self, worker_id: UUID) -> list[Run]:
        """Return the runs that the store says are this worker's, to adopt, give back or kill after a doubt."""
        ...


class WorkerStore(Protocol):
    """For supervisors and the reaper: who is alive."""

    async def register(self, spec: WorkerSpec) -> Worker:
        """Add a worker, alive, with a lease of its TTL. Always a new id."""
        ...

    async def beat(self, worker_ids: Sequence[UUID], *, clock: datetime | None = None) -> list[Beat]:
        """Renew the leases of workers that are alive, and tell which of their runs were asked to stop.

        `clock` is what the clock of whoever beats says; by how much it is off is one of the `alert_facts`.
        Who is not in the answer is no longer alive for the store and must end its runs. A lease that has passed but was
        not reaped is renewed.
        """
        ...

    async def stopping(self, worker_ids: Sequence[UUID]) -> list[tuple[UUID, UUID, int]]:
        """Return the (worker, job, token) of the runs of these workers that were asked to stop, by job.

        For whoever cannot wait for the next beat: it renews nothing, and asks nothing of the workers.
        """
        ...

    async def deregister(self, worker_id: UUID) -> Reaped:
        """End a worker that stops by its own will; the runs it still has return to the queue at once, uncounted."""
        ...

    async def expired(self) -> list[ExpiredWorker]:
        """Return the workers that are alive but whose lease has passed: candidates for the reaper to watch."""
        ...

    async def reap(
        self, worker_id: UUID, beat: int, *, max_losses: int = MAX_LOSSES, count: bool = True
    ) -> Reaped | None:
        """End a dead worker and take its runs back.

        Only if it is alive, its lease has passed and its beat is still `beat`; else None and nothing happens. A run
        returns to the queue with one more loss (none if `count` is false); with `max_losses` reached it is dead
        (quarantined); if it was asked to stop it is cancelled. A claim in flight either ends before, and its runs are
        taken back too, or finds the worker dead.
        """
        ...

    async def worker(self, worker_id: UUID) -> Worker:
        """Return a worker, alive or ended. Raises NotFound."""
        ...

    async def workers(self, *, alive: bool | None = None) -> list[Worker]:
        """Return the workers, newest first; those that ended are kept for a day."""
        ...


class SearchStore(Protocol):
    """For readers."""

    async def get(self, job_id: UUID, *, tenant: str | None = None) -> Job:
        """Return a job, active or finished. Raises NotFound."""
        ...

    async def find(self, where: JobFilter, *, limit: int = 50, after: UUID | None = None) -> Page:
        """Return jobs, active and finished, newest id first, beginning after the id `after`.

        A page looks at a bounded number of jobs, so that one may be short while `next` leads on. Raises Invalid for a
        `text` that cannot be read.
        """
        ...

    async def attempts(
        self, job_id: UUID, *, tenant: str | None = None, before: int = NEWEST, limit: int = MOST_ATTEMPTS
    ) -> list[Attempt]:
        """Return the last attempts of a job before a token, first to last, the final one included. Raises NotFound."""
        ...

    async def parents_of(
        self, job_id: UUID, *, limit: int = 50, after: UUID | None = None, tenant: str | None = None
    ) -> list[Relative]:
        """Return the jobs that a job waits or waited for, by their ids, beginning after the id `after`.

        Raises NotFound.
        """
        ...

    async def children_of(
        self, job_id: UUID, *, limit: int = 50, after: UUID | None = None, tenant: str | None = None
    ) -> list[Relative]:
        """Return the jobs that wait or waited for a job, in the same way; for as long as they themselves are kept."""
        ...

    async def counts(self, *, tenant: str | None = None, fresh: bool = False) -> Counts:
        """Return numbers of jobs for each lane and state; cheap at any size, and at most as old as `as_of` says.

        Active jobs as of the last census, finished ones to the moment, retired ones no longer counted. Fresh ones are
        counted anew, as of now, if no more jobs than `MOST_FRESH` are active.
        """
        ...


class Store(
    JobStore,
    JoinStore,
    RunStore,
    WorkerStore,
    HintStore,
    NoteStore,
    LogStore,
    LogSearchStore,
    GateStore,
    LimitStore,
    CapStore,
    ScheduleStore,
    OccurrenceStore,
    SearchStore,
    StatStore,
    KeyStore,
    SecretStore,
    TenantStore,
    AuditStore,
    ErasureStore,
    ArtifactStore,
    ChannelStore,
    OutboxStore,
    AlertStore,
    ExplainStore,
    DeadLetterStore,
    DutyStore,
    UpkeepStore,
    Protocol,
):
    """A whole store, open. What it stores is described in `store/<dialect>/schema.sql`."""

    @property
    def epoch(self) -> int:
        """Rises when the database fails over or is restored; `(epoch, token)` is what tasks see as fencing token."""
        ...

    async def close(self) -> None:
        """Finish what was begun and close; further calls raise Unavailable."""
        ...
