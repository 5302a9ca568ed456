"""Where the jobs may lie that someone looks for, as the phrases tell by which jobs are found."""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from tidewheel.model.job_phrases import (
    LEAST_PART,
    LONG,
    MOST_PHRASES,
    Stretch,
    Trail,
    kind_phrase,
    label_phrase,
    moment_of,
    moments_each,
    parts_of,
    period_of,
    small,
    stretches_on,
    trail_of,
)
from tidewheel.store.base import JobFilter
from tidewheel.store.postgres.connection import SQL, Connection

_SPECIAL: Final = re.compile(r"[\\%_]")
_ESCAPED: Final = r"\\\g<0>"


def pattern_of(word: str) -> str:
    """Return what LIKE finds a word by, wherever it stands."""
    return f"%{_SPECIAL.sub(_ESCAPED, word)}%"


class Tracker(NamedTuple):
    """Asks the phrases between two moments."""

    connection: Connection
    where: JobFilter
    tenant: int | None
    words: Sequence[str]

    async def stretches(self, below: UUID, floor: UUID) -> tuple[list[Stretch], UUID | None]:
        """Return where to look, newest first, and below which id all must be looked through."""
        first, last = moment_of(floor), moment_of(below)
        trails = [await self._trail(phrases, first, last) for phrases in await self._clues(first, last)]
        return stretches_on(trails, first) if trails else ([], below)

    async def _clues(self, first: int, last: int) -> list[list[int]]:
        """Return the phrases of the label and the kind, and those in which each of the words stands that are rare."""
        clues = [] if self.where.label is None else [await self._that_are(label_phrase(*self.where.label), LONG)]
        clues += [] if self.where.kind is None else [await self._of_kind(self.where.kind)]
        in_messages = [] if self.where.error is None else [small(self.where.error)]
        words = (*in_messages, *self.words)
        clues += [await self._with(word, first, last) for word in words if len(word) >= LEAST_PART]
        return [phrases for phrases in clues if phrases is not None]

    async def _that_are(self, *phrases: str) -> list[int] | None:
        """Return some phrases; None if these are too many, for each of many tenants may have them."""
        found = _ids(await self.connection.fetch(SQL["phrases_that_are"], self.tenant, phrases, MOST_PHRASES))
        return found if len(found) < MOST_PHRASES else None

    async def _of_kind(self, kind: str) -> list[int] | None:
        sought = self.tenant, kind_phrase(kind), kind, MOST_PHRASES
        found = _ids(await self.connection.fetch(SQL["phrases_of_kind"], *sought))
        return found if len(found) < MOST_PHRASES else None

    async def _with(self, word: str, first: int, last: int) -> list[int] | None:
        """Return the phrases in which a word stands, or may stand; None if these are too many."""
        long = await self._that_are(LONG)
        if long is None:
            return None
        periods = (period_of(first), period_of(last))
        sought = (parts_of(word), pattern_of(word), self.tenant, *periods, MOST_PHRASES)
        rows = await self.connection.fetch(SQL["phrases_with"], *sought)
        return [*_ids(rows), *long] if sum(row["seen"] for row in rows) < MOST_PHRASES else None

    async def _trail(self, phrases: list[int], first: int, last: int) -> Trail:
        most = moments_each(len(phrases))
        rows = await self.connection.fetch(SQL["moments_of_phrases"], phrases, last, first, most)
        return trail_of([row["moments"] for row in rows], most, first)


def _ids(rows: Sequence[Any]) -> list[int]:
    return [row["id"] for row in rows]
