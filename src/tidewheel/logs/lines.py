"""From chunks of bytes to clean lines of bounded length."""

from collections.abc import Sequence
from typing import Final

from tidewheel.model.harmless_text import clean, is_odd_text

MAX_LINE: Final = 16 * 1024
SHORT: Final = MAX_LINE // 4
"""Characters that are never too long for a line, whatever they are."""
CUT: Final = "… [line cut]"
_CONTINUES: Final = range(0x80, 0xC0)


class LineCutter:
    r"""Cuts output into lines, the same ones however it is chunked, and holds little more than one longest line.

    `\n` and `\r\n` end a line. Another `\r` begins it anew, as bars of progress do, and only the last state is kept. A
    line of more than 16 KiB comes in several pieces, but never cut within one of the `together` sequences: a piece that
    begins with one that is longer ends with it.
    """

    def __init__(self, together: Sequence[bytes] = (), *, max_line: int = MAX_LINE) -> None:
        self._max = max_line
        self._together = together
        self._ahead = max(map(len, self._together), default=1) - 1
        self._pending = b""

    def feed(self, data: bytes) -> list[str]:
        """Take a chunk and return the lines that it completes."""
        end = data.rfind(b"\n")
        if end < 0:
            self._pending += data
            return self._relieve()
        block = self._pending + data[:end] if self._pending else data[:end]
        self._pending = data[end + 1 :]
        lines = self._lines_of(block)
        return lines + self._relieve() if len(self._pending) > self._max else lines

    def flush(self) -> list[str]:
        """Return the last line, if it was not ended, and begin anew."""
        pending, self._pending = self._pending, b""
        return self._cut_line(pending) if pending.strip(b"\r") else []

    @property
    def is_amid(self) -> bool:
        """Whether a line has begun and not ended."""
        return bool(self._pending)

    def take_pending(self) -> bytes:
        """Return what no line was made of yet, and begin anew."""
        pending, self._pending = self._pending, b""
        return pending

    def _lines_of(self, block: bytes) -> list[str]:
        """Return the lines of a block, whose last line was ended as well."""
        if len(block) <= self._max or max(map(len, block.split(b"\n"))) <= self._max:
            text = block.decode(errors="replace")
            if not is_odd_text(text):
                return text.split("\n")
        return [line for body in block.split(b"\n") for line in self._cut_line(body)]

    def _cut_line(self, body: bytes) -> list[str]:
        pieces, rest = self._cut(body, self._max)
        return [*pieces, _shown(rest.rstrip(b"\r"))]

    def _relieve(self) -> list[str]:
        """Cut pieces off a line that has grown too long before it ended."""
        if len(self._pending) <= self._max + self._ahead:
            return []
        pieces, self._pending = self._cut(self._pending, self._max + self._ahead)
        return pieces

    def _cut(self, body: bytes, most: int) -> tuple[list[str], bytes]:
        """Return the pieces of a line, and the rest of its last state, which has at most so many bytes."""
        stripped = body.rstrip(b"\r")
        pieces: list[str] = []
        rest = b""
        *earlier, last = stripped.split(b"\r")
        for state, longest in [*((state, self._max) for state in earlier), (last, most)]:
            start = 0
            while len(state) - start > longest:
                end = start + self._place(state[start : start + self._max + self._ahead + 1])
                if end >= len(state):
                    break
                pieces.append(_shown(state[start:end]) + CUT)
                start = end
            rest = state[start:]
        return pieces, rest if len(stripped) == len(body) else rest + b"\r"

    def _place(self, piece: bytes) -> int:
        """Return where to cut: as late as can be, but not within a character or what must stay together."""
        place = self._max
        moved = True
        while moved:
            moved = False
            for sequence in self._together:
                found = piece.find(sequence, max(0, place - len(sequence) + 1), place + len(sequence) - 1)
                if found > 0:
                    place, moved = found, True
        place = max([place, *self._ends_beyond(piece, place)])
        back = _begun(piece, place)
        return place - back if place > back else place

    def _ends_beyond(self, piece: bytes, place: int) -> list[int]:
        """Return where those end that begin the piece and are not over at a place: there is no place before them."""
        return [len(sequence) for sequence in self._together if len(sequence) > place and piece.startswith(sequence)]


def _begun(piece: bytes, place: int) -> int:
    """Return how many bytes before a place belong to a character that goes on there; what is no text has none."""
    for step in range(4):
        byte = piece[place - step] if place - step < len(piece) else 0
        if byte not in _CONTINUES:
            length = 1 + (byte >= 0xC0) + (byte >= 0xE0) + (byte >= 0xF0)  # noqa: PLR2004 - as UTF-8 has it
            return step if step < length else 0
    return 0


def lines_of_text(text: str, together: Sequence[bytes] = ()) -> list[str]:
    """Return the lines of a text that comes whole; always one at least."""
    if len(text) <= SHORT and not is_odd_text(text):
        return text.removesuffix("\n").split("\n")
    if "\r" in text and not any(b"\r" in sequence for sequence in together):
        # This is no terminal, where it would begin the line anew: what was before it must not vanish.
        text = text.replace("\r\n", "\n").replace("\r", "\\x0d")
    cutter = LineCutter(together)
    return (cutter.feed(text.encode(errors="backslashreplace")) + cutter.flush()) or [""]


def _shown(data: bytes) -> str:
    return clean(data.decode(errors="replace"))
