"""Lines that runs wrote: stored, read back by job, indexed and searched."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import msgspec

from tidewheel.errors import NotFound
from tidewheel.model.ids import time_of
from tidewheel.model.log import LogLine, prepare_lines
from tidewheel.model.log_piece import Piece, StoredPiece, merge, merge_before, pieces_of
from tidewheel.model.log_query import LogBacklog, LogFilter, LogKey, LogPage, Sight, Token
from tidewheel.store.log_searching import (
    FRESH_FOR,
    MOST_COUNTED,
    MOST_SEGMENTS,
    SEGMENT_CHARS,
    SEGMENT_LINES,
    Candidate,
    PieceRow,
    Walk,
    index_words,
)
from tidewheel.store.pages import LINES_BYTES, bytes_of, fills_page, one_page
from tidewheel.store.postgres.connection import SQL, Connection, one
from tidewheel.store.postgres.log_sights import MOST_UNDER_WAY, Seen, read_sight, sight_of
from tidewheel.store.postgres.parts import Part
from tidewheel.store.postgres.searching import find_job
from tidewheel.store.records import check_last_page, check_page

_MOST_FRESH: Final = 200
"""How many appends are looked at to make one segment."""
_MOST_WORDS: Final = 1_000_000
"""Bytes of the words of a segment: a tsvector addresses 2^20 of them, and loses the rest without a word."""


class LogLines(Part):
    """See `store.base.LogStore` and `store.log_searching.LogSearchStore`."""

    async def append_logs(self, lines: Sequence[LogLine]) -> None:
        await self.append_pieces(pieces_of(prepare_lines(lines)))

    async def append_pieces(self, pieces: Sequence[Piece]) -> None:
        if pieces:
            jobs, tokens, firsts, lasts, texts, lanes = zip(*pieces, strict=True)
            lines = sum(lasts) - sum(firsts) + len(pieces)
            numbers = map(as_text, (tokens, firsts, lasts, lanes))
            values = (jobs, *numbers, texts, lines, sum(map(len, texts)), as_text([*{*lanes}]))
            await self._db.write(lambda connection: connection.execute(SQL["append_logs"], *values))

    async def logs(
        self, job_id: UUID, *, tenant: str | None = None, after: tuple[int, int] | None = None, limit: int = 1000
    ) -> list[LogLine]:
        begin = check_page(after, limit)

        async def look(connection: Connection) -> list[LogLine] | None:
            if await find_job(connection, job_id, tenant) is None:
                return None
            return await _lines(connection, job_id, begin, limit)

        lines = await self._db.read(look)
        if lines is None:
            raise NotFound("job", job_id)
        return lines

    async def last_logs(
        self, job_id: UUID, *, tenant: str | None = None, before: tuple[int, int] | None = None, limit: int = 1000
    ) -> list[LogLine]:
        end = check_last_page(before, limit)

        async def look(connection: Connection) -> list[LogLine] | None:
            if await find_job(connection, job_id, tenant) is None:
                return None
            return await _last_lines(connection, job_id, end, limit)

        lines = await self._db.read(look)
        if lines is None:
            raise NotFound("job", job_id)
        return lines

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
        walk = Walk(where, limit, after, newest_first=newest_first, only_news=unseen_at is not None)
        unseen = None if unseen_at is None else read_sight("unseen_at", unseen_at)
        seen = None if seen_at is None else read_sight("seen_at", seen_at)

        async def look(connection: Connection) -> LogPage:
            # One moment for all: what is fresh may be put into a segment meanwhile.
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                return await _search(connection, walk, unseen, seen)

        return await self._db.read(look)

    async def index_logs(self) -> int:
        return await self._db.transaction(_index)

    async def unindexed_logs(self) -> LogBacklog:
        return LogBacklog(*await self._db.read(lambda connection: one(connection, SQL["unindexed"], MOST_COUNTED)))


def as_text(numbers: Sequence[int | None]) -> str:
    """Return an array of numbers as text: the driver would look at each of them, which takes it ten times as long."""
    return f"{{{msgspec.json.encode(numbers)[1:-1].decode()}}}"


async def _lines(connection: Connection, job_id: UUID, after: tuple[int, int], limit: int) -> list[LogLine]:
    lines: list[LogLine] = []
    while not fills_page(lines, limit):
        room = (limit - len(lines), LINES_BYTES - bytes_of(lines))
        rows = await connection.fetch(SQL["logs"], job_id, time_of(job_id), *after, *room)
        if not rows:
            break
        lines += merge([StoredPiece(*row) for row in rows], after)
        after = (lines[-1].token, lines[-1].number)
    return one_page(lines, limit)


async def _last_lines(connection: Connection, job_id: UUID, before: tuple[int, int], limit: int) -> list[LogLine]:
    lines: list[LogLine] = []
    while not fills_page(lines, limit):
        room = (limit - len(lines), LINES_BYTES - bytes_of(lines))
        rows = await connection.fetch(SQL["last_logs"], job_id, time_of(job_id), *before, *room)
        if not rows:
            break
        lines = [*merge_before([StoredPiece(*row) for row in rows], before), *lines]
        before = (lines[0].token, lines[0].number)
    return one_page(reversed(lines), limit)[::-1]


async def _search(connection: Connection, walk: Walk, unseen: Seen | None, seen: Seen | None) -> LogPage:
    where = walk.search.where
    now = await one(connection, SQL["log_sight"], where.tenant, where.queue, where.kind, MOST_UNDER_WAY)
    if unseen is None:
        segments, fresh = await _in_span(connection, walk, now["lanes"])
    else:
        segments, fresh = await _in_news(connection, walk, now["lanes"], unseen)
        seen = seen or Seen(unseen.at, now["snapshot"])
    scope = (now["lanes"], unseen and unseen.snapshot, seen and seen.snapshot)
    for group in walk.groups(walk.plan(_candidates(segments), _candidates(fresh))):
        walk.take(await _pieces(connection, group, *scope))
    return walk.page(sight_of(now["at"], now["snapshot"]))


async def _in_span(connection: Connection, walk: Walk, lanes: list[int] | None) -> tuple[list[Any], list[Any]]:
    """Return the segments and fresh appends of a time."""
    words = _tsquery(walk.search.tokens)
    order = "" if walk.newest_first else "_first"
    query = SQL[f"segments{'' if words is None else '_with'}{order}"]
    segments = await connection.fetch(query, words, *walk.span, MOST_SEGMENTS)
    return segments, await connection.fetch(SQL[f"fresh{order}"], *walk.span, MOST_SEGMENTS, lanes)


async def _in_news(
    connection: Connection, walk: Walk, lanes: list[int] | None, unseen: Seen
) -> tuple[list[Any], list[Any]]:
    """Return those that could not be seen; the time bounds the days to look through."""
    first, last = walk.span
    span = (max(first, unseen.since), last)
    words = _tsquery(walk.search.tokens)
    segments = await connection.fetch(SQL["segments_news"], words, *span, MOST_SEGMENTS, unseen.snapshot)
    return segments, await connection.fetch(SQL["fresh_news"], *span, MOST_SEGMENTS, lanes, unseen.snapshot)


def _candidates(rows: Sequence[Any]) -> list[Candidate]:
    return [
        Candidate(row["first_at"], row["last_at"], (row["jobs"], row["tokens"], row["firsts"]), row["lines"])
        for row in rows
    ]


async def _pieces(
    connection: Connection,
    candidates: Sequence[Candidate],
    lanes: list[int] | None = None,
    unseen: str | None = None,
    seen: str | None = None,
) -> list[PieceRow]:
    columns: tuple[list[Any], ...] = ([], [], [])
    for candidate in candidates:
        for column, values in zip(columns, candidate.where, strict=True):
            column.extend(values)
    span = (min(each.first_at for each in candidates), max(each.last_at for each in candidates))
    rows = await connection.fetch(SQL["pieces"], *columns, *span, lanes, unseen, seen)
    return [PieceRow(*row) for row in rows]


async def _index(connection: Connection) -> int:
    await connection.execute(SQL["lock_segments"])
    chosen = _enough(await connection.fetch(SQL["next_fresh"], _MOST_FRESH, FRESH_FOR))
    if not chosen:
        return 0
    candidates = _candidates(chosen)
    await _note_lanes(connection, candidates)
    lines = await _add_segment(connection, await _pieces(connection, candidates))
    await connection.execute(SQL["remove_fresh"], [row["id"] for row in chosen])
    return lines


async def _add_segment(connection: Connection, rows: Sequence[PieceRow]) -> int:
    """Add a segment of these pieces, or several if they have more words than one can hold; return how many lines."""
    words, lines = index_words(rows)
    if len(rows) > 1 and sum(len(word.encode()) for word in words) > _MOST_WORDS:
        middle = len(rows) // 2
        return await _add_segment(connection, rows[:middle]) + await _add_segment(connection, rows[middle:])
    if words:
        stored = [row.stored_at for row in rows]
        columns = [[row[column] for row in rows] for column in range(3)]
        await connection.execute(SQL["add_segment"], min(stored), max(stored), *columns, sorted(words))
    return lines


async def _note_lanes(connection: Connection, candidates: Sequence[Candidate]) -> None:
    jobs = {job_id for each in candidates for job_id in each.where[0]}
    span = (min(each.first_at for each in candidates), max(each.last_at for each in candidates))
    await connection.execute(SQL["note_lanes_of_late"], list(jobs), *span)


def _enough(rows: Sequence[Any]) -> list[Any]:
    """Return the first that make a segment: enough of them, or those that have waited for long enough."""
    lines = chars = 0
    for number, row in enumerate(rows, 1):
        lines, chars = lines + row["lines"], chars + row["chars"]
        if lines >= SEGMENT_LINES or chars >= SEGMENT_CHARS:
            return list(rows[:number])
    return list(rows) if rows and (rows[0]["old"] or len(rows) == _MOST_FRESH) else []


def _tsquery(tokens: list[list[Token]]) -> str | None:
    """Return the text of a query; tokens have neither quotation marks nor backslashes."""
    groups = [" | ".join(f"'{token}'{':*' if prefix else ''}" for token, prefix in group) for group in tokens]
    return " & ".join(f"({group})" for group in groups) or None
