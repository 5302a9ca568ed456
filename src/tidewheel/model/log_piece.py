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


class _Open:
    """A piece that grows."""

    def __init__(self, line: LogLine) -> None:
        self.job_id = line.job_id
        self.token = line.token
        self.first = line.number
        self.next = line.number
        self.size = 0
        self.rows: list[tuple[datetime, str, str | None, str]] = []

    def takes(self, line: LogLine) -> bool:
        return line.number == self.next and self.size < MAX_PIECE

    def add(self, line: LogLine) -> None:
        self.rows.append((line.at, line.stream, line.level, line.text))
        self.next += 1
        self.size += len(line.text)

    def close(self) -> Piece:
        return Piece(self.job_id, self.token, self.first, self.next - 1, _encode(self.rows).decode())


def pieces_of(lines: Iterable[LogLine]) -> list[Piece]:
    """Put lines together, those of each run that follow one another."""
    pieces: list[_Open] = []
    growing: dict[tuple[UUID, int], _Open] = {}
    last: _Open | None = None
    for line in lines:
        if last is None or line.job_id is not last.job_id or line.token != last.token:
            last = growing.get((line.job_id, line.token))
        if last is None or not last.takes(line):
            last = growing[line.job_id, line.token] = _Open(line)
            pieces.append(last)
        last.add(line)
    return [piece.close() for piece in pieces]


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
