"""Lines that runs wrote: stored, read back by job, indexed and searched."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

import apsw

from tidewheel.errors import Invalid
from tidewheel.model.log import LogLine
from tidewheel.model.log_piece import Piece, StoredPiece, merge, merge_before
from tidewheel.model.log_query import LogBacklog, LogPage, Sight, Token
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
from tidewheel.store.sqlite.connection import SQL, rows
from tidewheel.store.sqlite.searching import get
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import id_of, instant, json_text, micros, span, timedelta_of

_MOST_FRESH: Final = 200
"""How many appends are looked at to make one segment."""
_DIGITS: Final = 19
_MOST: Final = 2**63 - 1


class Fresh(NamedTuple):
    """Pieces of one append that are in no segment yet."""

    id: int
    low: int
    high: int
    first_at: int
    last_at: int
    lines: int
    chars: int


class Segment(NamedTuple):
    """Pieces to be put together, and their words."""

    fresh: list[Fresh]
    words: str
    lines: int


def append(session: Session, pieces: Sequence[Piece]) -> None:
    """See `store.base.LogStore.append_pieces`."""
    now = session.now
    session.connection.executemany(
        SQL["append_piece"], [(p.job_id.bytes, p.token, p.first, p.last, now, p.lane, p.lines) for p in pieces]
    )
    high = session.connection.last_insert_rowid()
    lines = sum([piece.last - piece.first + 1 for piece in pieces])
    places = {"low": high - len(pieces) + 1, "high": high, "first_at": now, "last_at": now}
    session.run("add_fresh", **places, lines=lines, chars=sum([len(piece.lines) for piece in pieces]), now=now)


def logs(
    connection: apsw.Connection, job_id: UUID, tenant: str | None, after: tuple[int, int], limit: int
) -> list[LogLine]:
    """See `store.base.LogStore.logs`."""
    get(connection, job_id, tenant)
    lines: list[LogLine] = []
    while not fills_page(lines, limit):
        room = {"limit": limit - len(lines), "bytes": LINES_BYTES - bytes_of(lines)}
        values = {"id": job_id.bytes, "token": after[0], "number": after[1], **room}
        found = [StoredPiece(id_of(row[0]), *row[1:]) for row in rows(connection, "logs", values)]
        if not found:
            break
        lines += merge(found, after)
        after = (lines[-1].token, lines[-1].number)
    return one_page(lines, limit)


def last_logs(
    connection: apsw.Connection, job_id: UUID, tenant: str | None, before: tuple[int, int], limit: int
) -> list[LogLine]:
    """See `store.telling.LogStore.last_logs`."""
    get(connection, job_id, tenant)
    lines: list[LogLine] = []
    while not fills_page(lines, limit):
        room = {"limit": limit - len(lines), "bytes": LINES_BYTES - bytes_of(lines)}
        values = {"id": job_id.bytes, "token": before[0], "number": before[1], **room}
        found = [StoredPiece(id_of(row[0]), *row[1:]) for row in rows(connection, "last_logs", values)]
        if not found:
            break
        lines = [*merge_before(found, before), *lines]
        before = (lines[0].token, lines[0].number)
    return one_page(reversed(lines), limit)[::-1]


def read_sight(field: str, sight: Sight) -> int:
    """Return the last piece that could be seen: they are seen in the order of their ids. Raises Invalid."""
    if sight.isascii() and sight.isdecimal() and len(sight) <= _DIGITS:
        return min(int(sight), _MOST)
    raise Invalid(field, f"is no sight that a search of this database gave: {sight[:40]!r}")


def search(connection: apsw.Connection, walk: Walk, unseen: int | None, seen: int | None) -> LogPage:
    """See `store.log_searching.LogSearchStore.search_logs`."""
    where = walk.search.where
    [(last, lanes)] = rows(connection, "log_sight", {"tenant": where.tenant, "queue": where.queue, "kind": where.kind})
    words = _match(walk.search.tokens)
    order = f"{'' if words is None else '_with'}{'' if walk.newest_first else '_first'}"
    since, until = map(micros, walk.span)
    values = {"since": since, "until": until, "seen": unseen or 0}
    segments = _candidates(
        connection, f"segments{'' if unseen is None else '_news'}{order}", {**values, "words": words}
    )
    fresh = _candidates(connection, f"fresh{'' if walk.newest_first else '_first'}", {**values, "lanes": lanes})
    for group in walk.groups(walk.plan(segments, fresh)):
        for candidate in group:
            low, high = candidate.where
            low, high = max(low, (unseen or 0) + 1), min(high, _MOST if seen is None else seen)
            walk.take(_pieces(connection, low, high, lanes))
    return walk.page(str(last))


def next_segment(connection: apsw.Connection, now: int) -> Segment | None:
    """Gather the words of the first pieces that are in no segment; None if they can wait."""
    chosen = _enough([Fresh(*row) for row in rows(connection, "next_fresh", {"limit": _MOST_FRESH})], now)
    if not chosen:
        return None
    words, lines = index_words(_pieces(connection, chosen[0].low, chosen[-1].high))
    return Segment(chosen, " ".join(sorted(words)), lines)


def keep_segment(session: Session, segment: Segment) -> int:
    """Store what was gathered beside the writer, unless someone else has; return how many lines that were."""
    fresh = segment.fresh
    session.run("remove_fresh", ids=json_text([one.id for one in fresh]))
    if session.connection.changes() != len(fresh):
        return 0
    if segment.words:
        first, last = min(one.first_at for one in fresh), max(one.last_at for one in fresh)
        number = session.value("add_segment", low=fresh[0].low, high=fresh[-1].high, first_at=first, last_at=last)
        session.run("add_words", segment=number, words=segment.words)
    return segment.lines


def unindexed(connection: apsw.Connection, now: int) -> LogBacklog:
    """See `store.log_searching.LogSearchStore.unindexed_logs`."""
    [(lines, waits)] = rows(connection, "unindexed", {"now": now, "limit": MOST_COUNTED})
    return LogBacklog(lines, timedelta_of(waits))


def unindex(session: Session, job_id: UUID) -> None:
    """Take apart the segments with lines of a job, whose words are to be gathered anew.

    Fresh ones get new numbers, so that what someone is gathering from them just now is not kept.
    """
    for number, *places in session.rows("fresh_of_job", id=job_id.bytes):
        session.run("remove_fresh", ids=json_text([number]))
        session.run("add_fresh", **dict(zip(Fresh._fields[1:], places, strict=True)), now=session.now)
    for number, low, high, first_at, last_at in session.rows("segments_of_job", id=job_id.bytes):
        _remove_segment(session, number)
        places = {"low": low, "high": high, "first_at": first_at, "last_at": last_at}
        session.run("add_fresh", **places, lines=SEGMENT_LINES, chars=0, now=session.now)


def retire(session: Session, until: int, limit: int) -> int:
    """Remove lines that were stored before then, and the segments that have none any more; return how many pieces."""
    gone = len(session.rows("retire_logs", until=until, limit=limit))
    session.run("retire_fresh")
    for (number,) in session.rows("old_segments", limit=limit):
        _remove_segment(session, number)
    return gone


def _remove_segment(session: Session, number: int) -> None:
    session.run("remove_words", segment=number)
    session.run("remove_segment", segment=number)


def _candidates(connection: apsw.Connection, query: str, values: dict[str, Any]) -> list[Candidate]:
    """Return the nearest candidates, and with the last one all that lie as near."""
    found: list[Any] = []
    edge = 0 if query.endswith("_first") else 1
    for row in connection.execute(SQL[query], values):
        if len(found) >= MOST_SEGMENTS and row[edge] != found[-1][edge]:
            break
        found.append(row)
    return [Candidate(instant(first), instant(last), (low, high), lines) for first, last, low, high, lines in found]


def _pieces(connection: apsw.Connection, low: int, high: int, lanes: str | None = None) -> list[PieceRow]:
    found = rows(connection, "pieces", {"low": low, "high": high, "lanes": lanes})
    return [
        PieceRow(id_of(job), token, first, last, lines, instant(at), *names)
        for job, token, first, last, lines, at, *names in found
    ]


def _enough(fresh: Sequence[Fresh], now: int) -> list[Fresh]:
    """Return the first that make a segment: enough neighbours, or those that have waited for long enough."""
    lines = chars = 0
    for number, one in enumerate(fresh):
        if number and one.low != fresh[number - 1].high + 1:
            return list(fresh[:number])
        lines, chars = lines + one.lines, chars + one.chars
        if lines >= SEGMENT_LINES or chars >= SEGMENT_CHARS:
            return list(fresh[: number + 1])
    is_old = bool(fresh) and (fresh[0].last_at < now - span(FRESH_FOR) or len(fresh) == _MOST_FRESH)
    return list(fresh) if is_old else []


def _match(tokens: list[list[Token]]) -> str | None:
    """Return the text of a query; tokens have no quotation marks."""
    groups = [" OR ".join(f'"{token}"{"*" if prefix else ""}' for token, prefix in group) for group in tokens]
    return " AND ".join(f"({group})" for group in groups) or None
