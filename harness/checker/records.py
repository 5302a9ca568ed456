"""What is written down during a run, by whom. Every instant is in seconds on the host's CLOCK_BOOTTIME."""

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

Phase = Literal["invoke", "ok", "fail", "unknown"]
"""`fail` means that it certainly did not happen; `unknown` stays open to both readings."""


class Submit(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The client submits a job under an idempotency key."""

    t: float
    phase: Phase
    key: str
    job: str | None = None


class Cancel(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The client cancels a job; the answer says what it was afterwards, `cancelling` if it still ran, and its token."""

    t: float
    phase: Phase
    job: str
    state: str | None = None
    token: int = 0


class Witness(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The task itself says that it is alive."""

    t: float
    event: Literal["start", "tick", "end"]
    job: str
    token: int
    run: str
    """Made anew by each execution, and kept by the processes that it leaves behind."""
    pid: int
    space: int = 0
    """The namespace of the pid."""
    ok: bool | None = None
    """Of an end: whether it was a success."""
    alone: bool | None = None
    """Of a start: whether a lock of the kernel proved that no other execution of the job was alive; None if unasked."""


class Fault(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The harness breaks something, or lets it go."""

    t: float
    name: str
    phase: Literal["begin", "end"]


class Kill(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The harness killed a process."""

    t: float
    pid: int
    role: str


class Death(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A process is dead; it was so at this instant at the latest."""

    t: float
    pid: int
    status: int | None = None


class Healed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """No fault is under way from here on."""

    t: float


class Left(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Something that was still there after everything had been stopped."""

    t: float
    pid: int
    command: str


class Cap(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """At most so many jobs with this limit key may run at once."""

    key: str
    most: int


class Final(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A job as the scheduler shows it after everything came to rest."""

    job: str
    key: str | None
    state: str
    token: int
    due: float
    finished: float | None = None
    failures: int = 0
    losses: int = 0
    max_attempts: int = 1
    attempts: int = 0
    """How many attempts its record shows."""
    reason: str | None = None
    """The word of its error."""
    result_token: int | None = None
    """The token that the accepted result carries, if tasks return theirs."""
    limit_keys: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()


Record = Submit | Cancel | Witness | Fault | Kill | Death | Healed | Left | Cap | Final

_decode = msgspec.json.Decoder(Record).decode
_encode = msgspec.json.Encoder().encode


def to_lines(records: Iterable[Record]) -> Iterator[bytes]:
    """Write records as JSON, one a line."""
    for record in records:
        yield _encode(record) + b"\n"


def from_lines(lines: Iterable[bytes]) -> Iterator[Record]:
    """Read records; the last line of a writer that was killed may be torn, which nobody can be blamed for."""
    for line in lines:
        if line.endswith(b"\n"):
            yield _decode(line)
