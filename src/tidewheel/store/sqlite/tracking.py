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
from tidewheel.store.sqlite.connection import rows


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
        """Return the phrases of the label and the kind, and those in which each of the words stands that are rare."""
        asked = {"tenant": self.tenant, "first": period_of(first), "last": period_of(last), "limit": MOST_PHRASES}
        long = self._that_are(LONG, asked)
        clues = [] if self.where.label is None else [self._that_are(label_phrase(*self.where.label), asked) + long]
        clues += [] if self.where.kind is None else [self._that_are(kind_phrase(self.where.kind), asked)]
        in_messages = [] if self.where.error is None else [small(self.where.error)]
        clues += [
            self._ids("phrases_with", {**asked, "word": word, "parts": _all_of(parts_of(word))}) + long
            for word in (*in_messages, *self.words)
            if len(word) >= LEAST_PART
        ]
        return [phrases for phrases in clues if len(phrases) < MOST_PHRASES]

    def _that_are(self, phrase: str, asked: dict[str, Any]) -> list[int]:
        return self._ids("phrases_that_are", {**asked, "phrase": phrase})

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
