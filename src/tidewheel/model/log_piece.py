"""How lines are stored: those of one run that follow one another are one piece, so a line costs next to nothing."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from tidewheel.model.log import LogLine, LogStream

MAX_PIECE: Final = 128 * 1024
"""Characters of text after which the next line begins another piece."""

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(list[tuple[datetime, LogStream, str | None, str]]).decode


class Piece(NamedTuple):
    """Lines `first` to `last` of a run, as JSON."""

    job_id: UUID
    token: int
    first: int
    last: int
    lines: str


class StoredPiece(NamedTuple):
    """A piece as it is read back; of two with the same line the one with the lower `place` came first."""

    job_id: UUID
    token: int
    first: int
    last: int
    place: int
    lines: str


def pieces_of(lines: Iterable[LogLine]) -> list[Piece]:
    """Put lines together, those of each run that follow one another."""
    pieces: list[list[LogLine]] = []
    growing: dict[tuple[UUID, int], list[LogLine]] = {}
    last: list[LogLine] | None = None
    job_id: UUID | None = None
    token, number, size = -1, -1, 0
    for line in lines:
        if line.job_id is not job_id or line.token != token:
            job_id, token = line.job_id, line.token
            last = growing.get((job_id, token))
            number, size = (-1, 0) if last is None else (last[-1].number, sum(len(one.text) for one in last))
        number += 1
        if last is None or line.number != number or size >= MAX_PIECE:
            last = growing[line.job_id, token] = []
            pieces.append(last)
            number, size = line.number, 0
        last.append(line)
        size += len(line.text)
    return [_closed(piece) for piece in pieces]


def _closed(lines: list[LogLine]) -> Piece:
    first = lines[0]
    rows = [(line.at, line.stream, line.level, line.text) for line in lines]
    return Piece(first.job_id, first.token, first.number, lines[-1].number, _encode(rows).decode())


def rows_of(text: str) -> list[tuple[datetime, LogStream, str | None, str]]:
    """Return what a piece tells of its lines: when, where, how loud and what."""
    return _decode(text)


def lines_of(job_id: UUID, token: int, first: int, text: str) -> list[LogLine]:
    """Return the lines of a piece."""
    return [LogLine(job_id, token, number, *row) for number, row in enumerate(_decode(text), first)]


def merge(pieces: Sequence[StoredPiece], after: tuple[int, int]) -> list[LogLine]:
    """Return the lines of pieces beyond a place in their order, each once, as it came first."""
    found: dict[tuple[int, int], LogLine] = {}
    for piece in sorted(pieces, key=lambda piece: piece.place):
        for line in lines_of(piece.job_id, piece.token, piece.first, piece.lines):
            found.setdefault((line.token, line.number), line)
    return [found[place] for place in sorted(place for place in found if place > after)]
