"""Moving all that is stored from one database to another, in pieces, so that it may be interrupted and gone on with.

The source is read as of one instant. The target must be empty, and nobody can open it before the copy is complete.
What is under way is found by counting: pieces are written in the order of the source, each in one transaction.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from tidewheel.errors import Conflict

PIECE: Final = 2000
"""Rows that are written in one transaction."""
TABLES: Final = (
    "tenant",
    "lane",
    "worker",
    "gate",
    "queue_cap",
    "limit_rule",
    "limit_key",
    "api_key",
    "secret",
    "audit",
    "channel",
    "subscription",
    "delivery",
    "outbox",
    "alert",
    "maintenance",
    "artifact",
    "artifact_grave",
    "statistic",
    "ended",
    "finished",
    "idempotency",
    "dependency",
    "ended_parent",
    "attempt",
    "run_note",
    "log",
    "job_history",
    "occurrence",
    "schedule",
    "job",
)
"""What is copied, in this order: what others refer to comes first."""
DERIVED: Final = frozenset(
    (
        *("meta", "rollup", "census", "finish_rate", "keeper", "duty", "log_fresh", "log_segment", "log_words"),
        *("phrase", "phrase_moment", "phrase_parts"),
    )
)
"""What the target makes of the rest by itself, or has no need of."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to copy."""

    counts: Mapping[str, int]
    """How many rows each table has."""
    fingerprint: str
    """Another one if anything was changed since."""
    epoch: int
    noted: int
    """The highest number that anything in the outbox ever had: keys of messages have it, and none may come again."""
    first_day: date
    """The earliest day of anything that is kept by days."""


class Piece(NamedTuple):
    """Rows of one table."""

    table: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    """As the source stores them."""


class CopySource(Protocol):
    """Where all comes from."""

    def snapshot(self) -> Snapshot:
        """Say what there is, as of the instant that is copied. Raises Conflict while workers are alive."""
        ...

    def pieces(self, table: str, skip: int) -> Iterator[Piece]:
        """Return the rows of a table in pieces, always in the same order, without the first few."""
        ...

    def fingerprint_now(self) -> str:
        """Return what the fingerprint is by now."""
        ...

    def close(self) -> None:
        """Let go of the source."""
        ...


class CopyTarget(Protocol):
    """Where all goes."""

    async def begin(self, snapshot: Snapshot, *, restart: bool) -> Mapping[str, int]:
        """Make ready for a copy and return how many rows of each table came before. Raises Conflict.

        A target must be empty, or have begun with the same source; with `restart` what had come is removed.
        """
        ...

    async def write(self, piece: Piece) -> None:
        """Add rows, all or none."""
        ...

    async def finish(self, snapshot: Snapshot) -> None:
        """Compare the numbers with those of the source, and let the store be opened. Raises Conflict."""
        ...

    async def close(self) -> None:
        """Let go of the target."""
        ...


async def copy(
    source: CopySource, target: CopyTarget, tell: Callable[[str, int, int], None], *, restart: bool = False
) -> Mapping[str, int]:
    """Copy all of it, tell of each table how many rows are there of how many, and return the numbers of rows."""
    snapshot = source.snapshot()
    done = await target.begin(snapshot, restart=restart)
    for table in TABLES:
        written, total = done[table], snapshot.counts[table]
        tell(table, written, total)
        for piece in source.pieces(table, written):
            await target.write(piece)
            written += len(piece.rows)
            tell(table, written, total)
    if source.fingerprint_now() != snapshot.fingerprint:
        raise changed_meanwhile()
    await target.finish(snapshot)
    return snapshot.counts


def changed_meanwhile() -> Conflict:
    """Return what to say of a source that somebody writes to."""
    return Conflict(
        "the source was changed since the copy began: stop all that uses it, and begin anew by `tide db copy --restart`"
    )
