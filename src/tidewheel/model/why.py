"""Why a job does not run: all that keeps it from it now, from facts that a store has collected; pure.

Each reason is a record of its own type, for programs, with one sentence for people. A job that nothing keeps waits for
its turn, and that is a reason, too; so there is always at least one.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple, TypeAlias
from uuid import UUID

import msgspec

from tidewheel.model.dependency import Relative
from tidewheel.model.gate import Gate, GateMode, told_of
from tidewheel.model.ids import EPOCH
from tidewheel.model.job import Job
from tidewheel.model.limit import Standing
from tidewheel.model.order import AGING
from tidewheel.model.rate import next_token
from tidewheel.model.resources import Needs, fits
from tidewheel.model.retry_budget import RETRY_SHARE
from tidewheel.model.states import FINAL, State
from tidewheel.model.worker import Worker

SHOWN: Final = 10
"""How many holders of a limit and missing parents are named."""
COUNTED: Final = 10_000
"""How many jobs ahead are counted before it is said that there are more."""
_LONGEST: Final = 1e8
"""Seconds, beyond which nobody cares."""
FRESH: Final = timedelta(minutes=1)
"""How old a measured rate may be to tell the future by."""


# What a store collects


class LimitUse(msgspec.Struct, frozen=True, kw_only=True):
    """A limit of one of the job's keys that has no room now."""

    key: str
    most: int | None
    running: int
    rate: str | None = None
    """How many may start in a time, such as `10/s`."""
    holders: tuple[UUID, ...] = ()
    """Some of the jobs that run under it."""
    refill_at: datetime | None = None
    """When there is room again, if that is a matter of time."""


class Place(NamedTuple):
    """Where a job stands among those that go before it. Each number is counted up to `COUNTED`."""

    ahead: int = 0
    """How many go before it: of its tenant in its queue, or of those that wait for the same limit."""
    per_second: float | None = None
    """How fast jobs of its tenant in its queue ended of late; None if it is not known."""
    first_attempts: int = 0
    """If it is a retry: how many first attempts of any tenant are due in its queue."""
    retries_ahead: int = 0
    """If it is a retry: how many other retries of its tenant in its queue go before it."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a job and of all that it may wait for, as of an instant."""

    now: datetime
    job: Job
    """With the gates that it lies behind."""
    limits: tuple[LimitUse, ...] = ()
    parents: tuple[Relative, ...] = ()
    """Those that it still waits for, the first few."""
    workers: tuple[Worker, ...] = ()
    """Those whose lease is valid."""
    place: Place = Place()


# What is answered


class Ended(msgspec.Struct, frozen=True, kw_only=True, tag="ended"):
    """It has ended."""

    sentence: str
    state: State
    finished_at: datetime | None


class Runs(msgspec.Struct, frozen=True, kw_only=True, tag="runs"):
    """It runs."""

    sentence: str
    worker_id: UUID | None
    since: datetime | None
    cancelling: bool = False
    paused: bool = False


class BehindGate(msgspec.Struct, frozen=True, kw_only=True, tag="gate"):
    """A gate holds, drops or slows it."""

    sentence: str
    gate: Gate


class MissingParents(msgspec.Struct, frozen=True, kw_only=True, tag="parents"):
    """It waits for other jobs."""

    sentence: str
    missing: int
    parents: tuple[Relative, ...]
    """The first few of them."""


class FullLimit(msgspec.Struct, frozen=True, kw_only=True, tag="limit"):
    """One of its limit keys has no room."""

    sentence: str
    limit: LimitUse
    ahead: int | None = None
    """How many wait for the same key before it, if it waits for this one."""


class NotDue(msgspec.Struct, frozen=True, kw_only=True, tag="not_due"):
    """Its time has not come."""

    sentence: str
    until: datetime


class BacksOff(msgspec.Struct, frozen=True, kw_only=True, tag="backs_off"):
    """It failed, and waits before the next attempt."""

    sentence: str
    until: datetime
    failures: int


class NoWorker(msgspec.Struct, frozen=True, kw_only=True, tag="no_worker"):
    """Nobody is there who could run it."""

    sentence: str
    lacks: Literal["worker", "queue", "kind", "labels", "resources"]
    """What no living worker has, of those that have what comes before it in this list."""


class InLine(msgspec.Struct, frozen=True, kw_only=True, tag="in_line"):
    """Nothing keeps it but those that go before it."""

    sentence: str
    ahead: int
    """Jobs of its tenant in its queue that go first, up to `COUNTED`."""
    starts_at: datetime | None
    """An estimate by how fast such jobs have ended of late; None if that is not known."""


class AfterFirstAttempts(msgspec.Struct, frozen=True, kw_only=True, tag="first_attempts"):
    """It failed before, and those that never had their turn go first."""

    sentence: str
    first_attempts: int
    """How many of them are due in its queue, up to `COUNTED`."""
    share: float
    """The most that retries get of the starts of a queue meanwhile."""
    ahead: int
    """Retries of its tenant in its queue that go before it, up to `COUNTED`."""
    starts_at: datetime | None
    """An estimate by how fast such jobs have ended of late; None if that is not known."""


Reason: TypeAlias = (
    Ended | Runs | BehindGate | MissingParents | FullLimit | NotDue | BacksOff | NoWorker | InLine | AfterFirstAttempts
)


def why(facts: Facts) -> list[Reason]:
    """Return all reasons for which a job does not run now, or that it does or has ended."""
    job = facts.job
    if job.state in FINAL:
        return [_ended(job)]
    if job.state is State.RUNNING:
        return [_runs(job)]
    reasons: list[Reason] = [_behind(gate) for gate in job.gates]
    if job.state is State.BLOCKED:
        reasons.append(_missing(job, facts.parents))
    reasons += [_full(limit, job, facts.place.ahead) for limit in facts.limits]
    if job.run_at > facts.now:
        reasons.append(_not_due(job))
    if (lacks := _lacks(job, facts.workers)) is not None:
        reasons.append(lacks)
    # A slow gate lets it through in its turn, so that it also stands in line.
    if all(isinstance(reason, BehindGate) and reason.gate.mode is GateMode.SLOW for reason in reasons):
        reasons.append(_after_first_attempts(facts) if _gives_way(facts) else _in_line(facts))
    return reasons


def able(workers: Iterable[Worker], *, queue: str, kind: str, needs: Needs) -> list[Worker]:
    """Return the workers that could run such jobs if they had nothing else to do."""
    return [
        worker
        for worker in workers
        if _serves(worker, queue, kind) and fits(needs, worker.offer.resources, worker.offer.labels)
    ]


def _serves(worker: Worker, queue: str, kind: str) -> bool:
    return queue in worker.queues and (worker.kinds is None or kind in worker.kinds)


def _ended(job: Job) -> Ended:
    told = f": {job.error.message}" if job.error is not None and job.error.message else ""
    at = "" if job.finished_at is None else f" at {_at(job.finished_at)}"
    return Ended(sentence=f"It ended{at} as {job.state}{told}.", state=job.state, finished_at=job.finished_at)


def _runs(job: Job) -> Runs:
    doing = "is being cancelled" if job.cancelling else "runs, and is paused" if job.paused else "runs"
    since = "" if job.last_started_at is None else f" since {_at(job.last_started_at)}"
    return Runs(
        sentence=f"It {doing} on worker {job.last_worker}{since}.",
        worker_id=job.last_worker,
        since=job.last_started_at,
        cancelling=job.cancelling,
        paused=job.paused,
    )


def _behind(gate: Gate) -> BehindGate:
    names = {"kind": gate.kind, "queue": gate.queue, "tenant": gate.tenant}
    on = " and ".join(f"{field} {name}" for field, name in names.items() if name is not None)
    does = {
        GateMode.HOLD: "holds it",
        GateMode.DROP: "is about to drop it",
        GateMode.SLOW: f"lets {gate.rate or 0:g} jobs a second through",
    }[gate.mode]
    until = "" if gate.expires_at is None else f" until {_at(gate.expires_at)}"
    return BehindGate(sentence=f"Gate {gate.id} on {on} {does}{until}{told_of(gate)}.", gate=gate)


def _missing(job: Job, parents: Sequence[Relative]) -> MissingParents:
    named = ", ".join(f"{parent.job_id} ({parent.state or 'gone'})" for parent in parents)
    more = f" and {job.waiting_for - len(parents)} more" if job.waiting_for > len(parents) else ""
    held = any(parent.state in FINAL and parent.state is not State.SUCCEEDED for parent in parents)
    redrive = "; it goes on when those that failed are redriven and succeed" if held else ""
    return MissingParents(
        sentence=f"It waits for {_count(job.waiting_for, 'other job')}: {named}{more}{redrive}.",
        missing=job.waiting_for,
        parents=tuple(parents),
    )


def use_of(key: str, standing: Standing, now: int) -> LimitUse | None:
    """Return how a limit keeps a job from starting now; None if it does not."""
    if standing.room(now) > 0:
        return None
    pace = standing.pace
    slots_full = standing.most is not None and standing.running >= standing.most
    refill_at = None
    if pace is not None and not slots_full:
        refill_at = EPOCH + timedelta(microseconds=next_token(standing.level(pace, now), pace))
    rate = None if pace is None else str(pace)
    return LimitUse(key=key, most=standing.most, running=standing.running, rate=rate, refill_at=refill_at)


def _used(limit: LimitUse) -> str:
    if limit.refill_at is not None:
        return f"{limit.rate} may start"
    return f"{limit.running} of {limit.most} {_verb(limit.running, 'run')}"


def _full(limit: LimitUse, job: Job, ahead: int) -> FullLimit:
    waits = job.waits_for == limit.key
    held = f", {', '.join(map(str, limit.holders))}" if limit.holders else ""
    more = " among others" if limit.running > len(limit.holders) > 0 else ""
    refill = "" if limit.refill_at is None else f"; there is room again at {_at(limit.refill_at)}"
    queue = f"; {_count(ahead, 'job')} {_verb(ahead, 'wait')} for it before this one" if waits and ahead else ""
    return FullLimit(
        sentence=f"Limit {limit.key} is full: {_used(limit)}{held}{more}{refill}{queue}.",
        limit=limit,
        ahead=ahead if waits else None,
    )


def _not_due(job: Job) -> NotDue | BacksOff:
    until = job.run_at
    if job.failures and job.last_ended_at is not None:
        told = f"It failed {_count(job.failures, 'time')} and is tried again at {_at(until)}."
        return BacksOff(sentence=told, until=until, failures=job.failures)
    return NotDue(sentence=f"It may not start before {_at(until)}.", until=until)


def _lacks(job: Job, workers: Sequence[Worker]) -> NoWorker | None:
    if not workers:
        return NoWorker(sentence="No worker is alive.", lacks="worker")
    left = [worker for worker in workers if job.queue in worker.queues]
    if not left:
        return NoWorker(sentence=f"No living worker serves queue {job.queue}.", lacks="queue")
    left = [worker for worker in left if _serves(worker, job.queue, job.kind)]
    if not left:
        return NoWorker(sentence=f"No worker of queue {job.queue} knows kind {job.kind}.", lacks="kind")
    labels, resources = Needs(labels=job.needs.labels), Needs(resources=job.needs.resources)
    left = [worker for worker in left if fits(labels, {}, worker.offer.labels)]
    if not left:
        wanted = ", ".join(f"{name}={value}" for name, value in sorted(job.needs.labels.items()))
        return NoWorker(sentence=f"No worker that could run it has the labels {wanted}.", lacks="labels")
    if not any(fits(resources, worker.offer.resources) for worker in left):
        wanted = ", ".join(f"{name}={amount}" for name, amount in sorted(job.needs.resources.items()))
        return NoWorker(sentence=f"No worker that could run it has the resources {wanted}.", lacks="resources")
    return None


def _gives_way(facts: Facts) -> bool:
    """Tell whether first attempts go before a retry; the aged wait for nobody."""
    return facts.place.first_attempts > 0 and facts.job.run_at > facts.now - AGING


def _after_first_attempts(facts: Facts) -> AfterFirstAttempts:
    _, rate, first_attempts, ahead = facts.place
    starts_at = None
    if rate and ahead < COUNTED:
        # By its share, or because there is none left that goes first.
        starts = min((ahead + 1) / RETRY_SHARE, ahead + 1 + first_attempts)
        starts_at = facts.now + timedelta(seconds=min(starts / rate, _LONGEST))
    waiting = f"{_at_least(first_attempts, 'first attempt')} {_verb(first_attempts, 'wait')} in queue {facts.job.queue}"
    share = f"retries get at most {RETRY_SHARE:.0%} of its starts meanwhile"
    line = f", and {_at_least(ahead, 'retry')} of its tenant {_verb(ahead, 'go')} before this one" if ahead else ""
    return AfterFirstAttempts(
        sentence=f"It failed before: {waiting}, and {share}{line}{_guess(starts_at)}.",
        first_attempts=first_attempts,
        share=RETRY_SHARE,
        ahead=ahead,
        starts_at=starts_at,
    )


def _in_line(facts: Facts) -> InLine:
    ahead, rate, starts_at = facts.place.ahead, facts.place.per_second, None
    if rate and ahead < COUNTED:
        starts_at = facts.now + timedelta(seconds=min((ahead + 1) / rate, _LONGEST))
    if ahead:
        place = f"{_at_least(ahead, 'job')} of its tenant in queue {facts.job.queue} {_verb(ahead, 'go')} first"
    else:
        place = "It is the next of its tenant, as soon as a worker has room"
    return InLine(sentence=f"{place}{_guess(starts_at)}.", ahead=ahead, starts_at=starts_at)


def _guess(starts_at: datetime | None) -> str:
    return "" if starts_at is None else f"; it may start about {_at(starts_at)}"


def _at_least(number: int, what: str) -> str:
    return f"{COUNTED} or more {_plural(what)}" if number >= COUNTED else _count(number, what)


def _verb(number: int, verb: str) -> str:
    third = f"{verb}es" if verb.endswith("o") else f"{verb}s"
    return third if number == 1 else verb


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {_plural(what)}"


def _plural(what: str) -> str:
    return f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"


def _at(instant: datetime) -> str:
    return instant.isoformat(timespec="seconds")
