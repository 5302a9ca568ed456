"""Alerts: what an operator should hear of before a user does. Rules are functions of numbers that a store gives.

A rule finds something or it does not. What is found for the first time fires, what is found no more is resolved, and
each of the two is an event that subscriptions may name. In a maintenance window a rule neither fires nor resolves.
"""

import enum
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_text, check_window, duration_text

LOOK_BACK: Final = timedelta(minutes=10)
"""Of which time the ends of jobs are counted."""
MAX_REASON: Final = 1000
KEEP_RESOLVED: Final = timedelta(days=30)


class Rule(enum.StrEnum):
    """What is watched. Stored."""

    SCHEDULE_LATE = "schedule.late"
    SCHEDULE_MISSED = "schedule.missed"
    QUEUE_AGE = "queue.age"
    NO_WORKER = "queue.no_worker"
    FAILURE_RATE = "kind.failure_rate"
    DEAD_LETTERS = "kind.dead_letters"
    HELD_SNAPSHOT = "database.held_snapshot"


MEANINGS: Final[Mapping[Rule, str]] = {
    Rule.SCHEDULE_LATE: "a job of a schedule waits longer than 5 minutes beyond its time",
    Rule.SCHEDULE_MISSED: "the last occurrence of a schedule passed without a job",
    Rule.QUEUE_AGE: "a due job of a queue waits longer than 10 minutes",
    Rule.NO_WORKER: "a job of a queue is due for a minute, and no live worker serves the queue",
    Rule.FAILURE_RATE: "of at least 20 jobs of a kind that ended in 10 minutes, half or more are dead",
    Rule.DEAD_LETTERS: "at least 100 jobs of a kind died in 10 minutes",
    Rule.HELD_SNAPSHOT: "a connection to PostgreSQL holds a snapshot longer than 30 minutes: nothing is vacuumed",
}


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """From when on a rule finds something."""

    schedule_late: timedelta = timedelta(minutes=5)
    queue_age: timedelta = timedelta(minutes=10)
    no_worker: timedelta = timedelta(minutes=1)
    failure_rate: float = 0.5
    failures_of: int = 20
    dead_letters: int = 100
    held_snapshot: timedelta = timedelta(minutes=30)


USUAL: Final = Bounds()


class QueueFact(NamedTuple):
    """How long the first due job of a queue waits, behind no gate, and how many live workers serve it."""

    queue: str
    waits: timedelta
    workers: int


class KindFact(NamedTuple):
    """How many jobs of a kind ended lately, by themselves, and how many of them are dead."""

    tenant: str
    kind: str
    ended: int
    dead: int


class ScheduleFact(NamedTuple):
    """A schedule with a job that waits though it is due, or whose last occurrence was missed."""

    tenant: str
    schedule: str
    waits: timedelta | None
    missed: datetime | None


class SnapshotFact(NamedTuple):
    """A connection that keeps old rows from being removed."""

    pid: int
    held: timedelta


class AlertFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to judge, as of one moment."""

    queues: list[QueueFact] = []
    kinds: list[KindFact] = []
    schedules: list[ScheduleFact] = []
    snapshots: list[SnapshotFact] = []


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
    return [*_in_queues(facts.queues, bounds), *_in_kinds(facts.kinds, bounds), *_elsewhere(facts, bounds)]


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


def _in_kinds(kinds: Iterable[KindFact], bounds: Bounds) -> Iterator[Finding]:
    for tenant, kind, ended, dead in kinds:
        told = f"{dead} of {ended} jobs of kind {kind} that ended within {duration_text(LOOK_BACK)} are dead"
        if ended >= bounds.failures_of and dead >= bounds.failure_rate * ended:
            yield Finding(Rule.FAILURE_RATE, kind, told, tenant)
        if dead >= bounds.dead_letters:
            yield Finding(Rule.DEAD_LETTERS, kind, told, tenant)


def _elsewhere(facts: AlertFacts, bounds: Bounds) -> Iterator[Finding]:
    for tenant, schedule, waits, missed in facts.schedules:
        if waits is not None and waits >= bounds.schedule_late:
            told = f"a job of schedule {schedule} waits for {_about(waits)} beyond its time"
            yield Finding(Rule.SCHEDULE_LATE, schedule, told, tenant)
        if missed is not None:
            told = f"schedule {schedule} missed its time at {missed.isoformat(timespec='seconds')}"
            yield Finding(Rule.SCHEDULE_MISSED, schedule, told, tenant)
    for pid, held in facts.snapshots:
        if held >= bounds.held_snapshot:
            told = f"the connection of process {pid} has held a snapshot for {_about(held)}: nothing is vacuumed"
            yield Finding(Rule.HELD_SNAPSHOT, f"pid {pid}", told)


def _about(duration: timedelta) -> str:
    return duration_text(timedelta(seconds=int(duration.total_seconds())))
