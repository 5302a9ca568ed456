"""How lines are stored: those of one run that follow one another are one piece, so a line costs next to nothing.

A piece is written as JSON by columns: when its first line was written, how much later each of them was, their streams,
their levels and their texts. A column in which all are the same is said once.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import repeat
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from tidewheel.model.ids import EPOCH
from tidewheel.model.log import LogLine, LogStream

MAX_PIECE: Final = 128 * 1024
"""Characters of text after which the next line begins another piece."""

Said = list[Any]
"""Lines without their places, four items for each, one after the other since that is by far the fastest: when it was
written, in nanoseconds since the epoch, its stream, its level and its text."""

_MICROSECOND: Final = timedelta(microseconds=1)
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(
    tuple[int, int | list[int], LogStream | list[LogStream], str | list[str | None] | None, list[str]]
).decode


class Piece(NamedTuple):
    """Lines `first` to `last` of a run, ready to be stored."""

    job_id: UUID
    token: int
    first: int
    last: int
    lines: str
    lane: int | None = None
    """The lane of the job, if whoever wrote the lines knows it."""


class StoredPiece(NamedTuple):
    """A piece as it is read back; of two with the same line the one with the lower `place` came first."""

    job_id: UUID
    token: int
    first: int
    last: int
    place: int
    lines: str


class Columns(NamedTuple):
    """What a piece tells of its lines."""

    begun: int
    """In microseconds since the epoch."""
    offsets: Iterable[int]
    streams: Iterable[LogStream]
    levels: Iterable[str | None]
    texts: list[str]

    def written_at(self, offset: int) -> datetime:
        """Return when a line was written."""
        return EPOCH + timedelta(microseconds=self.begun + offset)


def pieces_of_run(job_id: UUID, token: int, first: int, said: Said, lane: int | None = None) -> list[Piece]:
    """Put lines of one run together that follow one another, the first of which has this number."""
    texts = said[3::4]
    if sum(map(len, texts)) <= MAX_PIECE:
        return [_piece(job_id, token, first, said, lane)] if said else []
    pieces, start, size = [], 0, 0
    for end, text in enumerate(texts):
        if size >= MAX_PIECE:
            pieces.append(_piece(job_id, token, first + start, said[4 * start : 4 * end], lane))
            start, size = end, 0
        size += len(text)
    return [*pieces, _piece(job_id, token, first + start, said[4 * start :], lane)]


def pieces_of(lines: Iterable[LogLine]) -> list[Piece]:
    """Put lines together, those of each run that follow one another."""
    growing: dict[tuple[UUID, int], list[tuple[int, Said]]] = {}
    at, written = None, 0
    for line in lines:
        parts = growing.setdefault((line.job_id, line.token), [])
        if not parts or parts[-1][0] + len(parts[-1][1]) // 4 != line.number:
            parts.append((line.number, []))
        if line.at is not at:  # many are of the same instant
            at, written = line.at, (line.at - EPOCH) // _MICROSECOND * 1000
        parts[-1][1].extend((written, line.stream, line.level, line.text))
    return [
        piece
        for (job_id, token), parts in growing.items()
        for first, said in parts
        for piece in pieces_of_run(job_id, token, first, said)
    ]


def _piece(job_id: UUID, token: int, first: int, said: Said, lane: int | None) -> Piece:
    ats, texts = said[0::4], said[3::4]
    begun = ats[0] // 1000
    columns = (begun, _once([at // 1000 - begun for at in ats]), _once(said[1::4]), _once(said[2::4]), texts)
    return Piece(job_id, token, first, first + len(texts) - 1, _encode(columns).decode(), lane)


def _once(column: list[Any]) -> Any:
    return column[0] if column.count(column[0]) == len(column) else column


def columns_of(piece: str) -> Columns:
    """Return what a piece tells of its lines."""
    begun, offsets, streams, levels, texts = _decode(piece)
    count = len(texts)
    return Columns(
        begun,
        offsets if isinstance(offsets, list) else repeat(offsets, count),
        streams if isinstance(streams, list) else repeat(streams, count),
        levels if isinstance(levels, list) else repeat(levels, count),
        texts,
    )


def lines_of(job_id: UUID, token: int, first: int, piece: str) -> list[LogLine]:
    """Return the lines of a piece."""
    columns = columns_of(piece)
    rows = zip(columns.offsets, columns.streams, columns.levels, columns.texts, strict=True)
    return [
        LogLine(job_id, token, number, columns.written_at(offset), stream, level, text)
        for number, (offset, stream, level, text) in enumerate(rows, first)
    ]


def merge(pieces: Sequence[StoredPiece], after: tuple[int, int]) -> list[LogLine]:
    """Return the lines of pieces beyond a place in their order, each once, as it came first."""
    found = _each_once(pieces)
    return [found[place] for place in sorted(place for place in found if place > after)]


def merge_before(pieces: Sequence[StoredPiece], before: tuple[int, int]) -> list[LogLine]:
    """Return those up to a place in the same way."""
    found = _each_once(pieces)
    return [found[place] for place in sorted(place for place in found if place < before)]


def _each_once(pieces: Sequence[StoredPiece]) -> dict[tuple[int, int], LogLine]:
    found: dict[tuple[int, int], LogLine] = {}
    for piece in sorted(pieces, key=lambda piece: piece.place):
        for line in lines_of(piece.job_id, piece.token, piece.first, piece.lines):
            found.setdefault((line.token, line.number), line)
    return found
