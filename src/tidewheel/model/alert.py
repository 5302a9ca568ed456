"""Alerts: what an operator should hear of before a user does. Rules are functions of numbers that a store gives.

A rule finds something or it does not. What is found for the first time fires, what is found no more is resolved, and
each of the two is an event that subscriptions may name. In a maintenance window a rule neither fires nor resolves.
"""

import enum
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.alert_bounds import USUAL, Bounds
from tidewheel.model.checks import check_duration, check_text, check_window, duration_text
from tidewheel.model.log_query import LogBacklog
from tidewheel.model.resources import Needs
from tidewheel.model.why import able
from tidewheel.model.worker import Worker

LOOK_BACK: Final = timedelta(minutes=10)
"""Of which time the ends of jobs are counted."""
MAX_REASON: Final = 1000
MAX_SILENCE: Final = timedelta(days=365)
"""How far ahead a maintenance window may begin, and how long it may last."""
KEEP_RESOLVED: Final = timedelta(days=30)
_HOLDERS: Final = {
    "pid": "the connection of process",
    "prepared": "the prepared transaction",
    "slot": "the unused replication slot",
}


class Rule(enum.StrEnum):
    """What is watched. Stored."""

    SCHEDULE_LATE = "schedule.late"
    SCHEDULE_MISSED = "schedule.missed"
    SCHEDULE_OVERDUE = "schedule.overdue"
    QUEUE_AGE = "queue.age"
    NO_WORKER = "queue.no_worker"
    NO_WORKER_OF_KIND = "kind.no_worker"
    FAILURE_RATE = "kind.failure_rate"
    DEAD_LETTERS = "kind.dead_letters"
    HELD_SNAPSHOT = "database.held_snapshot"
    BLOAT = "database.bloat"
    REPLICA_LAG = "database.replica_lag"
    DISK_SPACE = "database.disk_space"
    DATABASE_SIZE = "database.size"
    LOG_INDEX = "logs.unindexed"
    CLOCK = "worker.clock"


MEANINGS: Final[Mapping[Rule, str]] = {
    Rule.SCHEDULE_LATE: "a job of a schedule waits longer than 5 minutes beyond its time",
    Rule.SCHEDULE_MISSED: "the last occurrence of a schedule passed without a job",
    Rule.SCHEDULE_OVERDUE: "the time of a schedule passed 5 minutes ago, and nothing is recorded of it",
    Rule.QUEUE_AGE: "a due job of a queue waits longer than 10 minutes, be it for a worker or for a limit",
    Rule.NO_WORKER: "a job of a queue is due for a minute, and no live worker serves the queue",
    Rule.NO_WORKER_OF_KIND: "a job of a kind is due for a minute, and no live worker of its queue can take it",
    Rule.FAILURE_RATE: "of at least 20 jobs of a kind that ended in 10 minutes, half or more are dead",
    Rule.DEAD_LETTERS: "at least 100 jobs of a kind died in 10 minutes",
    Rule.HELD_SNAPSHOT: "a transaction or unused slot of PostgreSQL keeps old rows for 30 minutes: nothing is vacuumed",
    Rule.BLOAT: "a table in PostgreSQL has a million dead rows, and more of them than live ones: vacuum cannot keep up",
    Rule.REPLICA_LAG: "a replica of PostgreSQL, or an unused slot for one, is 5 minutes or 256 MiB behind",
    Rule.DISK_SPACE: "less than 512 MiB are free where the database is, if that is on the machine of the keeper",
    Rule.DATABASE_SIZE: "the database is as large as the bound `database_size`, if one was set",
    Rule.LOG_INDEX: "lines of runs wait for the index longer than 5 minutes: searches get slower",
    Rule.CLOCK: "the clock of a live worker is off that of the database by 5 seconds or more",
}


class QueueFact(NamedTuple):
    """How long the first due job of a queue waits, not behind a gate, and how many live workers serve it."""

    queue: str
    waits: timedelta
    workers: int


class LaneFact(NamedTuple):
    """How long the first due job of a kind waits that has such needs, behind no gate."""

    tenant: str
    queue: str
    kind: str
    needs: Needs
    waits: timedelta


class KindFact(NamedTuple):
    """How many jobs of a kind ended lately, by themselves, and how many of them are dead."""

    tenant: str
    kind: str
    ended: int
    dead: int


class ScheduleFact(NamedTuple):
    """A schedule with a job that waits though it is due, or an occurrence that was missed or is not even recorded."""

    tenant: str
    schedule: str
    waits: timedelta | None
    missed: datetime | None
    overdue: timedelta | None = None
    """How long ago its next time was, of which nothing is recorded."""


class SnapshotFact(NamedTuple):
    """Something that keeps old rows from being removed."""

    holder: str
    """Such as `pid 17`, `prepared transfer-1` or `slot standby`."""
    held: timedelta


class TableFact(NamedTuple):
    """How many rows of a table live, and how many are dead and not removed yet."""

    table: str
    live: int
    dead: int


class ReplicaFact(NamedTuple):
    """How far a replica is behind: in bytes, and in time where that is known."""

    name: str
    behind: int
    lag: timedelta | None


class DiskFact(NamedTuple):
    """How many bytes are free where the database is."""

    place: str
    free: int


class SizeFact(NamedTuple):
    """How many bytes a database has."""

    database: str
    size: int


class ClockFact(NamedTuple):
    """By how much the clock of a live worker was ahead of the database's when it last beat."""

    worker: str
    ahead: timedelta


class AlertFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to judge, as of one moment."""

    queues: list[QueueFact] = []
    lanes: list[LaneFact] = []
    """Of queues that workers serve, what none of these takes."""
    kinds: list[KindFact] = []
    schedules: list[ScheduleFact] = []
    snapshots: list[SnapshotFact] = []
    tables: list[TableFact] = []
    replicas: list[ReplicaFact] = []
    disks: list[DiskFact] = []
    sizes: list[SizeFact] = []
    unindexed: LogBacklog | None = None
    clocks: list[ClockFact] = []


class Finding(NamedTuple):
    """Something that a rule found."""

    rule: Rule
    subject: str
    told: str
    tenant: str | None = None

    @property
    def key(self) -> str:
        """What tells alerts apart."""
        return f"{self.rule}:{self.tenant or ''}:{self.subject}"


class AlertState(enum.StrEnum):
    """Whether it is so now."""

    FIRING = "firing"
    RESOLVED = "resolved"


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, and what became of it."""

    id: UUID
    rule: Rule
    subject: str
    tenant: str | None
    told: str
    state: AlertState
    since: datetime
    resolved_at: datetime | None = None
    acknowledged_by: str | None = None
    acknowledged_at: datetime | None = None

    @property
    def key(self) -> str:
        """What tells alerts apart that fire."""
        return Finding(self.rule, self.subject, self.told, self.tenant).key


class WindowSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A time in which rules are silent; no rules stands for all."""

    start: datetime
    end: datetime
    rules: frozenset[Rule] = frozenset()
    reason: str = ""
    author: str = ""


class Window(WindowSpec, frozen=True, kw_only=True):
    """A maintenance window that is stored."""

    id: UUID


class Turns(NamedTuple):
    """What changes: what fires, and the keys of what is over."""

    firing: list[Finding]
    resolved: list[str]


def find(facts: AlertFacts, bounds: Bounds = USUAL) -> list[Finding]:
    """Return all that is wrong."""
    return [
        *_in_queues(facts.queues, bounds),
        *_in_lanes(facts.lanes, bounds),
        *_in_kinds(facts.kinds, bounds),
        *_in_schedules(facts.schedules, bounds),
        *_in_tables(facts, bounds),
        *_in_storage(facts, bounds),
        *_in_logs(facts.unindexed, bounds),
        *_in_clocks(facts.clocks, bounds),
    ]


def not_taken(lanes: Iterable[LaneFact], workers: Sequence[Worker]) -> list[LaneFact]:
    """Return of these lanes those whose queue is served, but by no worker that takes their jobs."""
    served = {queue for worker in workers for queue in worker.queues}
    return [lane for lane in lanes if lane.queue in served and not _is_taken(lane, workers)]


def turn(standing: Collection[str], findings: Iterable[Finding], muted: Collection[Rule]) -> Turns:
    """Compare what is found with the keys of what fires; rules that are muted stay as they are."""
    found = {finding.key: finding for finding in findings}
    firing = [finding for key, finding in found.items() if key not in standing and finding.rule not in muted]
    silent = tuple(f"{rule}:" for rule in muted)
    over = [key for key in standing if key not in found and not key.startswith(silent)]
    return Turns(firing, over)


def muted_by(windows: Iterable[WindowSpec], now: datetime) -> frozenset[Rule]:
    """Return the rules that are silent now."""
    open_now = [window for window in windows if window.start <= now < window.end]
    return frozenset(rule for window in open_now for rule in (window.rules or Rule))


def window_times(now: datetime, begins: timedelta, lasts: timedelta) -> tuple[datetime, datetime]:
    """Return start and end of a window that begins in so long a time. Raises Invalid."""
    start = now + check_duration("begins", begins, timedelta(0), MAX_SILENCE)
    return start, start + check_duration("lasts", lasts, timedelta(seconds=1), MAX_SILENCE)


def check_window_spec(spec: WindowSpec) -> None:
    """Refuse a window that nobody can mean."""
    check_window(spec.start, spec.end)
    check_text("reason", spec.reason, MAX_REASON)
    check_text("author", spec.author, MAX_REASON)


def parse_rules(names: Iterable[str]) -> frozenset[Rule]:
    """Return the rules of these names."""
    rules = []
    for name in names:
        if name not in list(Rule):
            raise Invalid("rules", f"must be among {', '.join(Rule)}, not {name[:40]!r}")
        rules.append(Rule(name))
    return frozenset(rules)


def _in_queues(queues: Iterable[QueueFact], bounds: Bounds) -> Iterator[Finding]:
    for queue, waits, workers in queues:
        told = f"the first due job of queue {queue} waits for {_about(waits)}"
        if not workers and waits >= bounds.no_worker:
            yield Finding(Rule.NO_WORKER, queue, f"{told}, and no live worker serves the queue")
        elif waits >= bounds.queue_age:
            yield Finding(Rule.QUEUE_AGE, queue, told)


def _is_taken(lane: LaneFact, workers: Sequence[Worker]) -> bool:
    own = [worker for worker in workers if worker.tenant in (None, lane.tenant)]
    return bool(able(own, queue=lane.queue, kind=lane.kind, needs=lane.needs))


def _in_lanes(lanes: Iterable[LaneFact], bounds: Bounds) -> Iterator[Finding]:
    """Find kinds that nobody takes, once for each."""
    found = {(lane.tenant, lane.kind): lane for lane in sorted(lanes, key=lambda lane: lane.waits)}
    for (tenant, kind), lane in sorted(found.items()):
        if lane.waits >= bounds.no_worker:
            told = f"the first due job of kind {kind} waits for {_about(lane.waits)}"
            why = f"no live worker of queue {lane.queue} can take it"
            yield Finding(Rule.NO_WORKER_OF_KIND, kind, f"{told}, and {why}", tenant)


def _in_kinds(kinds: Iterable[KindFact], bounds: Bounds) -> Iterator[Finding]:
    for tenant, kind, ended, dead in kinds:
        told = f"{dead} of {ended} jobs of kind {kind} that ended within {duration_text(LOOK_BACK)} are dead"
        if ended >= bounds.failures_of and dead >= bounds.failure_rate * ended:
            yield Finding(Rule.FAILURE_RATE, kind, told, tenant)
        if dead >= bounds.dead_letters:
            yield Finding(Rule.DEAD_LETTERS, kind, told, tenant)


def _in_schedules(schedules: Iterable[ScheduleFact], bounds: Bounds) -> Iterator[Finding]:
    for tenant, schedule, waits, missed, overdue in schedules:
        if waits is not None and waits >= bounds.schedule_late:
            told = f"a job of schedule {schedule} waits for {_about(waits)} beyond its time"
            yield Finding(Rule.SCHEDULE_LATE, schedule, told, tenant)
        if missed is not None:
            told = f"schedule {schedule} missed its time at {missed.isoformat(timespec='seconds')}"
            yield Finding(Rule.SCHEDULE_MISSED, schedule, told, tenant)
        if overdue is not None and overdue >= bounds.schedule_overdue:
            told = f"schedule {schedule} was due {_about(overdue)} ago, and nobody has looked after it"
            yield Finding(Rule.SCHEDULE_OVERDUE, schedule, told, tenant)


def _in_tables(facts: AlertFacts, bounds: Bounds) -> Iterator[Finding]:
    for holder, held in facts.snapshots:
        if held >= bounds.held_snapshot:
            told = f"{_holder(holder)} has held a snapshot for {_about(held)}: nothing is vacuumed"
            yield Finding(Rule.HELD_SNAPSHOT, holder, told)
    for table, live, dead in facts.tables:
        if dead >= bounds.dead_rows and dead > live:
            told = f"table {table} has {dead} dead rows beside {live} that live: vacuum cannot keep up"
            yield Finding(Rule.BLOAT, table, told)


def _in_storage(facts: AlertFacts, bounds: Bounds) -> Iterator[Finding]:
    for name, behind, lag in facts.replicas:
        if behind >= bounds.replica_behind or (lag is not None and lag >= bounds.replica_lag):
            late = "" if lag is None else f", by {_about(lag)}"
            yield Finding(Rule.REPLICA_LAG, name, f"replica {name} is {_mebibytes(behind)} behind{late}")
    for place, free in facts.disks:
        if free < bounds.free_disk:
            yield Finding(Rule.DISK_SPACE, place, f"only {_mebibytes(free)} are free where {place} is")
    for database, size in facts.sizes:
        if 0 < bounds.database_size <= size:
            told = f"database {database} has {_mebibytes(size)}, its bound is {_mebibytes(bounds.database_size)}"
            yield Finding(Rule.DATABASE_SIZE, database, told)


def _in_logs(unindexed: LogBacklog | None, bounds: Bounds) -> Iterator[Finding]:
    if unindexed is not None and unindexed.lines and unindexed.waits >= bounds.log_index_age:
        told = f"{unindexed.lines} lines or more wait for the index, the first for {_about(unindexed.waits)}"
        yield Finding(Rule.LOG_INDEX, "index", f"{told}: does a keeper do the chore log-words?")


def _in_clocks(clocks: Iterable[ClockFact], bounds: Bounds) -> Iterator[Finding]:
    """Find clocks that are off, once for each name."""
    for worker, ahead in dict(clocks).items():
        if abs(ahead) >= bounds.clock_offset:
            way = "ahead of" if ahead > timedelta(0) else "behind"
            yield Finding(
                Rule.CLOCK, worker, f"the clock of worker {worker} is {_about(abs(ahead))} {way} the database's"
            )


def _holder(holder: str) -> str:
    what, _, name = holder.partition(" ")
    return f"{_HOLDERS[what]} {name}"


def _mebibytes(size: int) -> str:
    return f"{size / (1 << 20):.0f} MiB"


def _about(duration: timedelta) -> str:
    return duration_text(timedelta(seconds=int(duration.total_seconds())))
