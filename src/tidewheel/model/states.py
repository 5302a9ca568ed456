"""The one table of states: what a job can be, and what may happen to it.

Everything else derives from `MOVES`: the guards of the stores, the CHECK constraints of the schemas, the diagram in the
docs, and the property tests. A state is never written without naming the state it is believed to come from.
"""

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tidewheel.errors import IllegalMove


class State(enum.StrEnum):
    """What a job is now."""

    BLOCKED = "blocked"  # waits for other jobs
    QUEUED = "queued"  # runs when its time has come
    LIMITED = "limited"  # waits for room under one of its limit keys
    RUNNING = "running"  # a worker has it
    SUCCEEDED = "succeeded"
    DEAD = "dead"  # its policy ended without success
    CANCELLED = "cancelled"
    EXPIRED = "expired"  # its start deadline passed
    DROPPED = "dropped"  # by a gate
    SKIPPED = "skipped"  # by an overlap policy, or because a parent failed


class Cause(enum.StrEnum):
    """Why a job moves. Two causes may lead to the same state."""

    PARENTS_ENDED = "parents_ended"
    PARENT_FAILED = "parent_failed"
    OVERLAPPED = "overlapped"
    CANCELLED = "cancelled"  # asked for while nobody ran it
    EXPIRED = "expired"
    DROPPED = "dropped"
    CLAIMED = "claimed"
    NO_ROOM = "no_room"
    ROOM = "room"
    RETURNED = "returned"  # the body returned a result
    FAILED = "failed"  # and may try again
    GAVE_UP = "gave_up"  # failed for good
    SNOOZED = "snoozed"  # asked to be run later; no failure
    RELEASED = "released"  # given back unstarted or unfinished by a worker that stops; no failure
    CRASHED = "crashed"  # the run ended abnormally: signal, out of memory
    LOST = "lost"  # the worker died with it
    QUARANTINED = "quarantined"  # crashed or lost too often
    UNSTORABLE = "unstorable"  # its outcome cannot be stored
    STOPPED = "stopped"  # ended after it was asked to stop
    REDRIVEN = "redriven"  # an operator sends it round again


WAITING: Final = (State.BLOCKED, State.QUEUED, State.LIMITED)
ACTIVE: Final = (*WAITING, State.RUNNING)
FINAL: Final = tuple(state for state in State if state not in ACTIVE)
REDRIVABLE: Final = tuple(state for state in FINAL if state is not State.SUCCEEDED)

MOVES: Final[Mapping[tuple[State, Cause], State]] = MappingProxyType(
    {
        (State.BLOCKED, Cause.PARENTS_ENDED): State.QUEUED,
        (State.BLOCKED, Cause.PARENT_FAILED): State.SKIPPED,
        **{(state, Cause.OVERLAPPED): State.SKIPPED for state in (State.QUEUED, State.LIMITED)},
        (State.QUEUED, Cause.CLAIMED): State.RUNNING,
        (State.QUEUED, Cause.NO_ROOM): State.LIMITED,
        (State.LIMITED, Cause.ROOM): State.QUEUED,
        **{(state, Cause.CANCELLED): State.CANCELLED for state in WAITING},
        **{(state, Cause.EXPIRED): State.EXPIRED for state in ACTIVE},
        **{(state, Cause.DROPPED): State.DROPPED for state in WAITING},
        (State.RUNNING, Cause.RETURNED): State.SUCCEEDED,
        (State.RUNNING, Cause.FAILED): State.QUEUED,
        (State.RUNNING, Cause.SNOOZED): State.QUEUED,
        (State.RUNNING, Cause.RELEASED): State.QUEUED,
        (State.RUNNING, Cause.CRASHED): State.QUEUED,
        (State.RUNNING, Cause.LOST): State.QUEUED,
        (State.RUNNING, Cause.GAVE_UP): State.DEAD,
        (State.RUNNING, Cause.QUARANTINED): State.DEAD,
        (State.RUNNING, Cause.UNSTORABLE): State.DEAD,
        (State.RUNNING, Cause.STOPPED): State.CANCELLED,
        **{(state, Cause.REDRIVEN): State.QUEUED for state in REDRIVABLE},
    }
)


def move(state: State, cause: Cause) -> State:
    """Return the state that follows, or raise IllegalMove."""
    try:
        return MOVES[state, cause]
    except KeyError:
        raise IllegalMove(state, cause) from None


def end_of_run(cause: Cause, *, cancelling: bool) -> Cause:
    """Return the cause that counts when a run ends: who was asked to stop goes nowhere but to its end.

    Only a result that was reached before the stop stands; any other end of a cancelled run is its cancellation, so that
    it never returns to the queue.
    """
    if cancelling and cause is not Cause.RETURNED:
        return Cause.STOPPED
    return cause


def diagram() -> str:
    """Return the table as a Mermaid state diagram, one arrow for each pair of states."""
    arrows: dict[tuple[State, State], list[str]] = {}
    for (source, cause), target in MOVES.items():
        arrows.setdefault((source, target), []).append(cause.value)
    lines = ["stateDiagram-v2", "    [*] --> queued: submitted", "    [*] --> blocked: submitted after others"]
    lines += [f"    {source} --> {target}: {', '.join(causes)}" for (source, target), causes in arrows.items()]
    lines += [f"    {state} --> [*]" for state in FINAL]
    return "\n".join(lines)
