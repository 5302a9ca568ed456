"""Caps: how many jobs may wait in a queue or with a key, and what happens to one that is too many; pure.

Which jobs a cap by key counts is told by their limit keys: one whose name begins with `cap:` is counted while the job
waits, and asks for nothing when it starts. A job has one such key at most, and it is the first of its keys.
"""

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Final, Literal, TypeVar, get_args

import msgspec

from tidewheel.errors import Invalid, QueueFull
from tidewheel.model.checks import check_name, shown

Overflow = Literal["reject", "drop_oldest", "replace"]
"""`reject`: the submit fails. `drop_oldest`: whoever is first in line is dropped. `replace`: whoever is last in line is
dropped, and the new one takes its place."""

CAP_MARK: Final = "cap:"
"""How the keys begin by which waiting jobs are counted."""
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


class KeyCap(msgspec.Struct, frozen=True):
    """At most so many jobs of a tenant wait with a key."""

    tenant: str
    key: str
    most: int
    overflow: Overflow = "reject"


AnyCap = QueueCap | KeyCap


def check_cap(cap: QueueCap) -> QueueCap:
    """Refuse a cap that cannot be."""
    check_name("queue", cap.queue)
    check_name("tenant", cap.tenant)
    check_waiting("most", cap.most, cap.overflow)
    return cap


def check_waiting(field: str, most: object, overflow: object) -> None:
    """Refuse a number of jobs that cannot be a cap, and what cannot happen to one too many."""
    if type(most) is not int or not 1 <= most <= MOST:
        raise Invalid(field, f"must be between 1 and {MOST}, not {shown(most)}; close a gate to stop a queue")
    if overflow not in get_args(Overflow):
        raise Invalid("overflow", f"must be one of {', '.join(get_args(Overflow))}, not {shown(overflow)}")


def is_cap_key(key: str) -> bool:
    """Tell whether a limit key is one by which waiting jobs are counted."""
    return key.startswith(CAP_MARK)


def cap_key_of(keys: Sequence[str]) -> str | None:
    """Return the key by which a job is counted while it waits, if it has one; see `cap_key_first`."""
    return keys[0] if keys and is_cap_key(keys[0]) else None


def cap_key_first(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return limit keys in the order in which they are stored, or refuse a second one of a cap."""
    capped = tuple(filter(is_cap_key, keys))
    if len(capped) > 1:
        raise Invalid("limit_keys", f"may have one key that begins with {CAP_MARK}, not {len(capped)}")
    return (*capped, *(key for key in keys if not is_cap_key(key))) if capped else keys


def bound_of(cap: AnyCap, new: int) -> int:
    """Return how far to count: what is beyond that is left to the next submit."""
    return cap.most + new + DROPPED_AT_ONCE


def reason_of(cap: AnyCap) -> str:
    """Return why a job was dropped."""
    how = "a newer one took its place" if cap.overflow == "replace" else "it was the oldest"
    what = f"queue {cap.queue}" if isinstance(cap, QueueCap) else f"key {cap.key}"
    return f"{what} may have {cap.most} waiting jobs, and {how}"


def full(cap: AnyCap) -> QueueFull:
    """Return what a submit that brings too many is told."""
    if isinstance(cap, QueueCap):
        return QueueFull(
            f"queue {cap.queue!r} is full: at most {cap.most} jobs may wait in it", cap.most, queue=cap.queue
        )
    return QueueFull(f"key {cap.key!r} is full: at most {cap.most} jobs may wait with it", cap.most, key=cap.key)


def victims(cap: AnyCap, line: Iterable[Job], new: Collection[Job], excess: int) -> Sequence[Job]:
    """Return who is dropped.

    `line` is whoever waits, for `drop_oldest` from the first on, else from the last on; `new` are those of them that
    came just now, in their order: for `replace` they go last, and of them the first ones first.
    """
    waiting = list(line)
    if cap.overflow == "replace":
        fresh = set(new)
        waiting = [job for job in waiting if job not in fresh] + list(new)
    return waiting[:excess]
