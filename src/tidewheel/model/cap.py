"""Caps: how many jobs may wait in a queue, and what happens to one that is too many; pure."""

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Final, Literal, TypeVar, get_args

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_name

Overflow = Literal["reject", "drop_oldest", "replace"]
"""`reject`: the submit fails. `drop_oldest`: whoever is first in line is dropped. `replace`: whoever is last in line is
dropped, and the new one takes its place."""

MOST: Final = 1_000_000
"""A larger cap would protect nobody, and who submits has to count."""
DROPPED_AT_ONCE: Final = 1000
"""How many are dropped for one submit, besides as many as it brings: a cap that is lowered takes effect bit by bit."""

Job = TypeVar("Job", bound=Hashable)


class QueueCap(msgspec.Struct, frozen=True):
    """At most so many jobs of a tenant wait in a queue."""

    tenant: str
    queue: str
    most: int
    overflow: Overflow = "reject"


def check_cap(cap: QueueCap) -> QueueCap:
    """Refuse a cap that cannot be."""
    check_name("queue", cap.queue)
    check_name("tenant", cap.tenant)
    if type(cap.most) is not int or not 1 <= cap.most <= MOST:
        raise Invalid("most", f"must be between 1 and {MOST}, not {cap.most}; close a gate to stop a queue")
    if cap.overflow not in get_args(Overflow):
        raise Invalid("overflow", f"must be one of {', '.join(get_args(Overflow))}, not {cap.overflow!r}")
    return cap


def bound_of(cap: QueueCap, new: int) -> int:
    """Return how far to count: what is beyond that is left to the next submit."""
    return cap.most + new + DROPPED_AT_ONCE


def reason_of(cap: QueueCap) -> str:
    """Return why a job was dropped."""
    how = "a newer one took its place" if cap.overflow == "replace" else "it was the oldest"
    return f"queue {cap.queue} may have {cap.most} waiting jobs, and {how}"


def victims(cap: QueueCap, line: Iterable[Job], new: Collection[Job], excess: int) -> Sequence[Job]:
    """Return who is dropped.

    `line` is whoever waits, for `drop_oldest` from the first on, else from the last on; `new` are those of them that
    came just now, in their order: for `replace` they go last, and of them the first ones first.
    """
    waiting = list(line)
    if cap.overflow == "replace":
        fresh = set(new)
        waiting = [job for job in waiting if job not in fresh] + list(new)
    return waiting[:excess]
