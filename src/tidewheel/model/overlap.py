"""Overlap: whether an occurrence of a schedule starts while earlier runs of it are alive.

A run is alive from the moment its job is made until it has ended, so a job that still waits for a worker counts. While
fewer than `max_concurrency` are alive the next one starts. At the limit:

    skip              it does not run, and is recorded as skipped
    queue             it waits for its turn; behind too long a queue it is skipped
    cancel_previous   the oldest runs are cancelled to make room, and it waits until they have ended
    allow             as queue, but without a limit unless one is given
"""

import enum
from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple, assert_never
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_count

MAX_CONCURRENCY: Final = 10_000
MAX_WAITING: Final = 100
"""A schedule that makes jobs faster than they end would otherwise fill the store, and its jobs would be ever older."""


class Overlap(enum.StrEnum):
    """What to do with an occurrence when the limit is reached."""

    SKIP = "skip"
    QUEUE = "queue"
    ALLOW = "allow"
    CANCEL_PREVIOUS = "cancel_previous"


class Action(enum.StrEnum):
    """What becomes of an occurrence."""

    START = "start"
    WAIT = "wait"
    SKIP = "skip"
    CANCEL_PREVIOUS = "cancel_previous"


class Decision(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The answer for one occurrence."""

    action: Action
    reason: str = ""
    """In words, when it does not start at once."""
    cancel: int = 0
    """How many of the runs alive to cancel first, oldest first."""


START: Final = Decision(action=Action.START)


def decide_overlap(policy: Overlap, running: int, waiting: int, max_concurrency: int | None = None) -> Decision:
    """Decide about the next occurrence while so many earlier runs are running and so many jobs wait.

    Without `max_concurrency` one run at a time is meant, and for `allow` any number.
    """
    alive = running + waiting
    if max_concurrency is None and policy is Overlap.ALLOW:
        return START
    limit = max_concurrency or 1
    if alive < limit:
        return START
    held = f"{alive} earlier {'run is' if alive == 1 else 'runs are'} alive, and {limit} may be"
    match policy:
        case Overlap.SKIP:
            return Decision(action=Action.SKIP, reason=held)
        case Overlap.QUEUE | Overlap.ALLOW:
            return _wait(waiting, held)
        case Overlap.CANCEL_PREVIOUS:
            return Decision(action=Action.CANCEL_PREVIOUS, reason=held, cancel=alive - limit + 1)
        case unknown:
            assert_never(unknown)


class Alive(NamedTuple):
    """A job of a schedule that has not ended; they are in the order of these fields."""

    due_at: datetime
    job_id: UUID
    running: bool


class Overlaps(NamedTuple):
    """What is to happen to the jobs of a schedule whose time has come."""

    skip: dict[UUID, str]
    """Those that do not run, with the reasons."""
    cancel: tuple[UUID, ...]
    """Those that make room."""


def decide_due(policy: Overlap, max_concurrency: int | None, alive: Sequence[Alive], due: Sequence[UUID]) -> Overlaps:
    """Decide about the jobs of one schedule that have become due, in their order; `alive` are all that are due.

    One that runs already had room, and one that has ended needs none: nothing happens to these.
    """
    undecided = set(due)
    ahead: list[Alive] = []
    skip: dict[UUID, str] = {}
    cancel: dict[UUID, None] = {}
    for job in sorted(alive):
        if job.job_id in undecided and not job.running:
            running = sum(earlier.running for earlier in ahead)
            decision = decide_overlap(policy, running, len(ahead) - running, max_concurrency)
            if decision.action is Action.SKIP:
                skip[job.job_id] = decision.reason
                continue
            leaving, staying = ahead[: decision.cancel], ahead[decision.cancel :]
            cancel |= dict.fromkeys(earlier.job_id for earlier in leaving)
            # Who runs is alive until its worker has ended it; who waits is gone at once.
            ahead = [*(earlier for earlier in leaving if earlier.running), *staying]
        ahead.append(job)
    return Overlaps(skip, tuple(cancel))


def check_max_concurrency(value: int | None, field: str = "max_concurrency") -> int | None:
    """Refuse limits under which nothing could ever run."""
    if value == 0 and value is not False:
        raise Invalid(field, f"must be between 1 and {MAX_CONCURRENCY}, not 0; pause a schedule to stop it")
    return None if value is None else check_count(field, value, 1, MAX_CONCURRENCY)


def _wait(waiting: int, held: str) -> Decision:
    if waiting >= MAX_WAITING:
        return Decision(action=Action.SKIP, reason=f"{waiting} earlier jobs wait already")
    return Decision(action=Action.WAIT, reason=held)
