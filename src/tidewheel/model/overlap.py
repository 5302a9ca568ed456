"""Overlap: whether an occurrence of a schedule starts while earlier runs of it are alive.

A run is alive from the moment its job is made until it has ended, so a job that still waits for a worker counts. While
fewer than `max_concurrency` are alive the next one starts. At the limit:

    skip              it does not run, and is recorded as skipped
    queue             it waits for its turn; behind too long a queue it is skipped
    cancel_previous   the oldest runs are cancelled to make room, and it waits until they have ended
    allow             as queue, but without a limit unless one is given
"""

import enum
from typing import Final, assert_never

import msgspec

from tidewheel.errors import Invalid

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


def check_max_concurrency(value: int | None, field: str = "max_concurrency") -> int | None:
    """Refuse limits under which nothing could ever run."""
    if value is not None and not 1 <= value <= MAX_CONCURRENCY:
        raise Invalid(field, f"must be between 1 and {MAX_CONCURRENCY}, not {value}; pause a schedule to stop it")
    return value


def _wait(waiting: int, held: str) -> Decision:
    if waiting >= MAX_WAITING:
        return Decision(action=Action.SKIP, reason=f"{waiting} earlier jobs wait already")
    return Decision(action=Action.WAIT, reason=held)
