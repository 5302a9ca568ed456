"""How lines are stored: those of one run that follow one another are one piece, so a line costs next to nothing.

A piece is a text. Its first line is JSON by columns: an instant, how much later than it (or earlier, if it is shared
with other runs) each line was written, and a letter for each that tells its stream and level. The others are the lines
themselves.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import repeat
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from tidewheel.model.ids import EPOCH
from tidewheel.model.log import LogLine, LogStream
from tidewheel.model.log_words import LEVELS

MAX_PIECE: Final = 128 * 1024
"""Characters of text after which the next line begins another piece."""

Kind = tuple[LogStream, str | None]
"""Stream and level of a line."""

Said = list[Any]
"""Lines without their places, three items for each, one after the other since that is by far the fastest: when it was
written, in microseconds since the epoch, its mark (see `mark_of`) and its text."""

MARKS: Final[Mapping[Kind, str]] = MappingProxyType(
    {
        ("stdout", None): "o",
        ("stderr", None): "r",
        ("system", None): "s",
        **{("log", level): level[0] for level in LEVELS},
    }
)
"""Letters for what lines usually are."""

_STREAMS: Final = {mark: stream for (stream, _), mark in MARKS.items()}
_LEVELS: Final = {mark: level for (_, level), mark in MARKS.items()}
_MICROSECOND: Final = timedelta(microseconds=1)
_encode: Final = msgspec.json.Encoder().encode
_encode_lines: Final = msgspec.json.Encoder().encode_lines


class _Head(msgspec.Struct, array_like=True):
    """The first line of a piece."""

    begun: int
    """In microseconds since the epoch."""
    offsets: list[int]
    marks: str | list[Kind]
    """A letter for each line, or stream and level of each if there is no letter for one of them."""
    texts: list[str] | None = None
    """The lines, if one of them has an end of a line within it, as only those have that others made."""


_decode: Final = msgspec.json.Decoder(_Head).decode


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


def mark_of(stream: LogStream, level: str | None) -> str | Kind:
    """Return the letter for a line, or what it is if there is none."""
    kind = (stream, level)
    return MARKS.get(kind, kind)


def pieces_of_run(job_id: UUID, token: int, first: int, said: Said, lane: int | None = None) -> list[Piece]:
    """Put lines of one run together that follow one another, the first of which has this number."""
    texts = said[2::3]
    if sum(map(len, texts)) <= MAX_PIECE:
        return [_piece(job_id, token, first, said, lane)] if said else []
    pieces, start, size = [], 0, 0
    for end, text in enumerate(texts):
        if size >= MAX_PIECE:
            pieces.append(_piece(job_id, token, first + start, said[3 * start : 3 * end], lane))
            start, size = end, 0
        size += len(text)
    return [*pieces, _piece(job_id, token, first + start, said[3 * start :], lane)]


def pieces_of(lines: Iterable[LogLine]) -> list[Piece]:
    """Put lines together, those of each run that follow one another."""
    growing: dict[tuple[UUID, int], list[tuple[int, Said]]] = {}
    at, written = None, 0
    for line in lines:
        parts = growing.setdefault((line.job_id, line.token), [])
        if not parts or parts[-1][0] + len(parts[-1][1]) // 3 != line.number:
            parts.append((line.number, []))
        if line.at is not at:  # many are of the same instant
            at, written = line.at, (line.at - EPOCH) // _MICROSECOND
        parts[-1][1].extend((written, mark_of(line.stream, line.level), line.text))
    return [
        piece
        for (job_id, token), parts in growing.items()
        for first, said in parts
        for piece in pieces_of_run(job_id, token, first, said)
    ]


def _piece(job_id: UUID, token: int, first: int, said: Said, lane: int | None) -> Piece:
    ats, marks, texts = said[0::3], said[1::3], said[2::3]
    begun = ats[0]
    kinds: str | list[Kind]
    try:
        kinds = "".join(marks)
    except TypeError:  # there is no letter for one of them
        kinds = [(_STREAMS[mark], _LEVELS[mark]) if isinstance(mark, str) else mark for mark in marks]
    body = "\n".join(texts)
    offsets = [at - begun for at in ats]
    if body.count("\n") == len(texts) - 1:
        lines = f"{_encode((begun, offsets, kinds)).decode()}\n{body}"
    else:
        lines = _encode((begun, offsets, kinds, texts)).decode()
    return Piece(job_id, token, first, first + len(texts) - 1, lines, lane)


def texts_of_pieces(heads: Sequence[tuple[int, list[int], str]], lines: Sequence[list[str]]) -> list[str]:
    """Return many pieces of plain lines at once.

    Given are of each an instant, how much later than it each line was written, and a letter for each line; and its
    lines, none of which has an end of a line within it.
    """
    first_lines = _encode_lines(heads).decode().splitlines()
    return ["\n".join((head, *texts)) for head, texts in zip(first_lines, lines, strict=True)]


def columns_of(piece: str) -> Columns:
    """Return what a piece tells of its lines."""
    first_line, _, body = piece.partition("\n")
    head = _decode(first_line)
    texts = body.split("\n") if head.texts is None else head.texts
    return Columns(head.begun, head.offsets, *_kinds(head.marks), texts)


def _kinds(marks: str | list[Kind]) -> tuple[Iterable[LogStream], Iterable[str | None]]:
    if not isinstance(marks, str):
        return [stream for stream, _ in marks], [level for _, level in marks]
    if marks.count(marks[0]) == len(marks):
        return repeat(_STREAMS[marks[0]], len(marks)), repeat(_LEVELS[marks[0]], len(marks))
    return [_STREAMS[mark] for mark in marks], [_LEVELS[mark] for mark in marks]


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
