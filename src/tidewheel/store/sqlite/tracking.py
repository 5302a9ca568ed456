"""Where the jobs may lie that someone looks for, as the phrases tell by which jobs are found."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

import apsw

from tidewheel.model.job_phrases import (
    LEAST_PART,
    LONG,
    MOST_PHRASES,
    Stretch,
    Trail,
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
from tidewheel.store.sqlite.connection import rows, value


class Tracker(NamedTuple):
    """Asks the phrases between two moments."""

    connection: apsw.Connection
    where: JobFilter
    tenant: int | None
    words: Sequence[str]

    def stretches(self, below: UUID, floor: UUID) -> tuple[list[Stretch], UUID | None]:
        """Return where to look, newest first, and below which id all must be looked through."""
        first, last = moment_of(floor), moment_of(below)
        trails = [self._trail(phrases, first, last) for phrases in self._clues(first, last)]
        return stretches_on(trails, first) if trails else ([], below)

    def _clues(self, first: int, last: int) -> list[list[int]]:
        """Return the phrases of the label, and those in which each of the words stands that are rare."""
        bounds = {"first": period_of(first), "last": period_of(last), "limit": MOST_PHRASES}
        asked = {"tenant": self.tenant, **bounds}
        long = self._ids("phrases_that_are", {**asked, "phrase": LONG})
        clues = []
        if self.where.label is not None:
            clues.append(self._ids("phrases_that_are", {**asked, "phrase": label_phrase(*self.where.label)}))
        in_messages = [] if self.where.error is None else [small(self.where.error)]
        words = (*in_messages, *[word for word in self.words if not self._is_in_kind(word)])
        clues += [
            self._ids("phrases_with", {**asked, "word": word, "parts": _all_of(parts_of(word))})
            for word in words
            if len(word) >= LEAST_PART
        ]
        return [[*phrases, *long] for phrases in clues if len(phrases) + len(long) < MOST_PHRASES]

    def _is_in_kind(self, word: str) -> bool:
        named = {"word": word, "tenant": self.tenant, "kind": self.where.kind}
        return bool(value(self.connection, "is_in_kind", named))

    def _trail(self, phrases: list[int], first: int, last: int) -> Trail:
        most = moments_each(len(phrases))
        bounds = {"first": first, "last": last, "limit": most}
        moments = [self._ids("moments_of_phrase", {**bounds, "phrase": phrase}) for phrase in phrases]
        return trail_of(moments, most, first)

    def _ids(self, name: str, values: dict[str, Any]) -> list[int]:
        return [number for (number,) in rows(self.connection, name, values)]


def _all_of(parts: list[str]) -> str:
    """Return the query for phrases that have all parts."""
    return " AND ".join(f'"{part.replace(chr(34), chr(34) * 2)}"' for part in parts)
