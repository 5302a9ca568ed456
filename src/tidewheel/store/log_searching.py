"""What every store promises about searching lines, and the part of it that all stores share.

Lines are stored as pieces (`model.log_piece`). Each append leaves a note of the pieces that are *fresh*; a duty makes
*segments* of about a thousand lines out of these and writes the words of each segment to an index. A search asks the
index which segments may have what is wanted, and looks at their lines and at the fresh ones, in the order in which they
were stored, until the page is full. So an append indexes nothing, a line is found from the first moment on, and what
exactly is found is decided here and not by the tokenizer of a database.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, Protocol
from uuid import UUID

from tidewheel.errors import Invalid
from tidewheel.model.log import LogLine
from tidewheel.model.log_piece import columns_of
from tidewheel.model.log_query import FoundLine, LogBacklog, LogFilter, LogKey, LogPage, LogSearch, Sight
from tidewheel.model.log_words import token_of, words_to_index
from tidewheel.store.pages import LINES_BYTES, fills_page, one_page

MAX_PAGE: Final = 1000
SEGMENT_LINES: Final = 1000
"""Lines of a segment, at the least; unless its first lines have waited for long."""
SEGMENT_CHARS: Final = 256 * 1024
FRESH_FOR: Final = timedelta(seconds=30)
"""How long lines may wait for others to make a segment with."""
MOST_SEGMENTS: Final = 30
"""How many segments, and how many fresh appends, one page looks through before it answers short."""
MOST_LINES: Final = 30_000
"""How many lines one page looks through, about: an append may have five times as many as a segment should have."""
MOST_COUNTED: Final = 10_000
"""How many fresh appends are counted: more would take a database that does not keep up too long."""
MOST_TOGETHER: Final = 8
"""How many segments or appends are read at once."""
_LAST_ID: Final = UUID(int=2**128 - 1)
_FIRST_ID: Final = UUID(int=0)
_MOST: Final = 2**63 - 1
_STEP: Final = timedelta(microseconds=1)
_FIRST: Final = datetime(1, 1, 2, tzinfo=UTC)
_LAST: Final = datetime(9999, 12, 30, tzinfo=UTC)


class LogSearchStore(Protocol):
    """For readers of many logs, and for the keeper."""

    async def search_logs(
        self,
        where: LogFilter,
        *,
        limit: int = 50,
        after: LogKey | None = None,
        newest_first: bool = True,
        unseen_at: Sight | None = None,
        seen_at: Sight | None = None,
    ) -> LogPage:
        """Return lines that were found, in the order in which they were stored, beginning after the key `after`.

        Not more than fill a page (`store.pages`), by their number or by the size of their texts.
        Raises Invalid for a query that makes no sense. Lines of jobs that the store does not know are not found.

        A line may be seen later than others that were stored after it. With `seen_at` only lines are found that could
        be seen when the page was read that has this sight. With `unseen_at` only those that could not, oldest first:
        all that could be seen at `seen_at`, or else at the sight of the answer, by now. So whoever asks for
        what was unseen at the sight of the answer before gets each line once, if its commit took less than a day.
        """
        ...

    async def index_logs(self) -> int:
        """Make one segment of the first lines that are in none; return how many lines it got, 0 if they can wait."""
        ...

    async def unindexed_logs(self) -> LogBacklog:
        """Return how many lines are in no segment, counted up to those of 10 000 appends, and how long they wait."""
        ...


class PieceRow(NamedTuple):
    """The columns of every statement that reads pieces for a search, in this order."""

    job_id: UUID
    token: int
    first: int
    last: int
    lines: str
    stored_at: datetime
    tenant: str
    queue: str
    kind: str
    again: bool
    """Whether all of its lines were stored before, so that they are found there."""


class Candidate(NamedTuple):
    """Lines that were stored between two instants and may have what is looked for."""

    first_at: datetime
    last_at: datetime
    where: Any
    """How the store finds them."""
    lines: int | None = None
    """How many, if that was noted."""


def index_words(rows: Iterable[PieceRow]) -> tuple[set[str], int]:
    """Return all by which the lines of pieces can be found, and how many lines these are."""
    words: set[str] = set()
    count = 0
    for row in rows:
        columns = columns_of(row.lines)
        count += len(columns.texts)
        words |= words_to_index(columns.texts, columns.levels)
        words.update({f"stream={stream}" for stream in columns.streams})
        words.update(token_of(f"{name}={getattr(row, name)}") for name in ("tenant", "queue", "kind"))
        words.add(f"job={row.job_id.hex}")
    return words, count


class Walk:
    """Gathers one page."""

    def __init__(
        self, where: LogFilter, limit: int, after: LogKey | None, *, newest_first: bool, only_news: bool = False
    ) -> None:
        if not 1 <= limit <= MAX_PAGE:
            raise Invalid("limit", f"must be between 1 and {MAX_PAGE}, not {limit}")
        if only_news and newest_first:
            raise Invalid("unseen_at", "is for lines with the oldest first")
        self.search = LogSearch(where)
        self.newest_first = newest_first
        self._limit = limit
        self._after = after
        self._found: dict[tuple[UUID, int, int], FoundLine] = {}
        self._size = 0
        self._bound: datetime | None = None
        self.looked = 0
        """How many lines there were in what was looked through."""
        self._taken = 0
        self._rest: list[Candidate] = []

    @property
    def span(self) -> tuple[datetime, datetime]:
        """Between which instants, both included, lines may still be wanted."""
        first = self.search.since or _FIRST
        last = _LAST if self.search.before is None else self.search.before - _STEP
        if self._after is not None and self.newest_first:
            last = min(last, self._after.stored_at)
        elif self._after is not None:
            first = max(first, self._after.stored_at)
        return first, last

    def plan(self, *found: Sequence[Candidate]) -> list[Candidate]:
        """Put candidates in order. Each list is the nearest ones by themselves; a full one may have been cut short."""
        cuts = [self._edge(some[-1]) for some in found if len(some) >= MOST_SEGMENTS]
        if cuts:
            # Everything that is not in a list lies beyond its last one, by a microsecond at the least.
            self._bound = max(cuts) - _STEP if self.newest_first else min(cuts) + _STEP
        together = [one for some in found for one in some if self._bound is None or self._is_before(self._edge(one))]
        return sorted(together, key=self._edge, reverse=self.newest_first)

    def take(self, rows: Iterable[PieceRow]) -> None:
        """Look through pieces."""
        search = self.search
        first, last = self.span
        for row in rows:
            self.looked += row.last - row.first + 1
            if (
                first <= row.stored_at <= last
                and not row.again
                and search.is_about(row.job_id, row.tenant, row.queue, row.kind)
                and search.may_be_in(row.lines)
            ):
                self._look(row)

    def groups(self, candidates: Sequence[Candidate]) -> Iterator[list[Candidate]]:
        """Return candidates a few at a time, then more and more, until the page is done.

        Each group is to be taken before the next one is asked for.
        """
        rest, size = list(candidates), 2
        while rest:
            group = rest[: self._fitting(rest[:size])]
            self._rest = rest = rest[len(group) :]
            yield group
            self._taken += len(group)
            if self._is_full(rest) or (self.looked >= MOST_LINES and self._leads_on(rest)):
                return
            size = min(size * 2, MOST_TOGETHER)

    def _fitting(self, nearest: Sequence[Candidate]) -> int:
        """Return how many of them, at least one, have about as many lines together as may still be looked through."""
        usual = max(SEGMENT_LINES, self.looked // max(self._taken, 1))
        lines = self.looked
        for number, one in enumerate(nearest):
            lines += usual if one.lines is None else one.lines
            if number and lines > MOST_LINES:
                return number
        return len(nearest)

    def _leads_on(self, rest: Sequence[Candidate]) -> bool:
        """Tell whether a next page that begins with what is left would begin further on than this one did."""
        first, last = self.span
        return bool(rest) and (self._edge(rest[0]) < last if self.newest_first else self._edge(rest[0]) > first)

    def _is_full(self, rest: Sequence[Candidate]) -> bool:
        """Tell whether nothing that is left can come before the end of the page."""
        if len(self._found) < self._limit and self._size < LINES_BYTES:
            return False
        return fills_page([found.line for found in self._settled(self._bound_with(rest))], self._limit)

    def page(self, sight: Sight) -> LogPage:
        """Return what there is, when the rest of the candidates was not looked at."""
        bound = self._bound_with(self._rest)
        settled = self._settled(bound)
        in_order = sorted(settled, key=lambda found: found.key, reverse=self.newest_first)
        lines = in_order[: len(one_page([found.line for found in in_order], self._limit))]
        if len(settled) > len(lines):
            return LogPage(lines, lines[-1].key, sight)
        if bound is None:
            return LogPage(lines, sight=sight)
        edge = (_LAST_ID, _MOST, _MOST) if self.newest_first else (_FIRST_ID, -1, -1)
        return LogPage(lines, LogKey(bound, *edge), sight)

    def _look(self, row: PieceRow) -> None:
        columns = columns_of(row.lines)
        lines = zip(columns.offsets, columns.streams, columns.levels, columns.texts, strict=True)
        for number, (offset, stream, level, text) in enumerate(lines, row.first):
            if self.search.means(stream, level, text):
                at = columns.written_at(offset)
                line = LogLine(row.job_id, row.token, number, at, stream, level, text)
                self._keep(FoundLine(line, row.stored_at, row.tenant, row.queue, row.kind))

    def _keep(self, found: FoundLine) -> None:
        if self._after is not None and (found.key >= self._after if self.newest_first else found.key <= self._after):
            return
        place = (found.line.job_id, found.line.token, found.line.number)
        known = self._found.get(place)
        if known is None or found.stored_at < known.stored_at:  # a line that came again: the first counts
            self._found[place] = found
            self._size += len(found.line.text)

    def _edge(self, candidate: Candidate) -> datetime:
        return candidate.last_at if self.newest_first else candidate.first_at

    def _is_before(self, instant: datetime) -> bool:
        """Tell whether an instant lies before the place from which on something was not looked at."""
        return self._bound is None or (instant > self._bound if self.newest_first else instant < self._bound)

    def _bound_with(self, rest: Sequence[Candidate]) -> datetime | None:
        return self._edge(rest[0]) if rest else self._bound

    def _settled(self, bound: datetime | None) -> list[FoundLine]:
        found = list(self._found.values())
        if bound is None:
            return found
        return [one for one in found if (one.stored_at > bound if self.newest_first else one.stored_at < bound)]
