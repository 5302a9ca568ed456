"""How much of a run's output is kept: the beginning, and the very end."""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from tidewheel.logs.lines import CUT, LineCutter
from tidewheel.logs.masks import Masks
from tidewheel.model.log import LogStream

MAX_KEPT: Final = 1024 * 1024
MAX_LINES: Final = 10_000
WHOLE_RUNS: Final = 20
"""Of so many runs of a job all that fits is kept, of as many more the half, and so on."""
_LEAST_PART: Final = 10
"""How often it is halved: down to 1 KiB."""
LAST_LINES: Final = 50
LAST_BYTES: Final = 16 * 1024
_HELD: Final = 64 * 1024
"""How much is held for the last lines; colours and lines that were written anew may shrink it."""
_UNITS: Final = ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"), (1, "bytes"))


class Line(NamedTuple):
    """A line without a number; times are in microseconds since the epoch."""

    at: int
    stream: LogStream
    level: str | None
    text: str


class Quota:
    """Counts what is kept of one run."""

    def __init__(self, max_bytes: int = MAX_KEPT, max_lines: int = MAX_LINES) -> None:
        self._left = self._max = max_bytes
        self._lines_left = self._max_lines = max_lines
        self.full = False

    def fit_all(self, lines: int, size: int) -> bool:
        """Keep so many lines, which have so many bytes, if there is room for all of them; tell whether there is."""
        if size > self._left or lines > self._lines_left:
            return False
        self._left -= size
        self._lines_left -= lines
        return True

    def fit(self, texts: Sequence[str]) -> int:
        """Return how many of these lines are still kept; the first that is not makes it full."""
        if self.fit_all(len(texts), size_of("\n".join(texts))):
            return len(texts)
        for index, text in enumerate(texts):
            self._left -= size_of(text)
            self._lines_left -= 1
            if self._left < 0 or self._lines_left < 0:
                self.full = True
                return index
        return len(texts)

    @property
    def mark(self) -> str:
        """The line that says where the output was cut."""
        if self._lines_left < 0:
            return f"[output cut: more than {self._max_lines} lines]"
        size, unit = next((size, unit) for size, unit in _UNITS if self._max % size == 0)
        return f"[output cut: more than {self._max // size} {unit}]"


class _Raw(NamedTuple):
    at: int
    stream: LogStream
    data: bytes


class Tail:
    """Holds the end of what is left out, cheaply: nothing is made of it before the end is known."""

    def __init__(self, masks: Masks) -> None:
        self._masks = masks
        self._held: deque[_Raw | Line] = deque()
        self._held_bytes = 0
        self._torn: set[LogStream] = set()
        """Streams whose first held line lacks its beginning."""
        self._lines = 0
        self._bytes = 0

    def take_line(self, line: Line) -> None:
        """Take a line that was left out."""
        self._lines += 1
        self._hold(line, size_of(line.text))

    def take_raw(self, at: int, stream: LogStream, data: bytes) -> None:
        """Take raw output that was left out."""
        self._lines += data.count(b"\n")
        if len(data) > _HELD:  # all else will go, and so does its beginning
            while self._held:
                self._let_go()
            self._bytes += len(data) - _HELD
            self._tear(stream, last=data[-_HELD - 1 : -_HELD])
            data = data[-_HELD:]
        if data:
            self._hold(_Raw(at, stream, data), len(data))

    def _hold(self, item: _Raw | Line, size: int) -> None:
        self._bytes += size
        self._held_bytes += size
        self._held.append(item)
        while self._held_bytes - _held_size(self._held[0]) >= _HELD:
            self._let_go()

    def _let_go(self) -> None:
        gone = self._held.popleft()
        self._held_bytes -= _held_size(gone)
        if isinstance(gone, _Raw):
            self._tear(gone.stream, last=gone.data[-1:])

    def _tear(self, stream: LogStream, last: bytes) -> None:
        if last == b"\n":
            self._torn.discard(stream)
        else:
            self._torn.add(stream)

    def end(self) -> tuple[str | None, list[Line]]:
        """Return the line that says how much was left out, unless that is nothing, and the last lines."""
        lines = list(islice(_last(list(self._cut())), LAST_LINES))[::-1]
        left_out = max(0, self._lines - len(lines))
        unseen = max(0, self._bytes - sum(size_of(line.text) for line in lines))
        return (f"[… {left_out} lines, {unseen} bytes left out …]" if left_out else None), lines

    def _cut(self) -> Iterator[Line]:
        cutters: dict[LogStream, LineCutter] = {}
        torn = dict.fromkeys(self._torn, self._masks.longest)
        at: dict[LogStream, int] = {}
        for item in self._held:
            if isinstance(item, Line):
                yield item
                continue
            cutter = cutters.setdefault(item.stream, LineCutter(self._masks.raw))
            texts = cutter.feed(item.data)
            at[item.stream] = item.at
            while texts and item.stream in torn:  # the pieces of a long line go until no half secret is left
                gone = texts.pop(0)
                torn[item.stream] -= len(gone)
                if not gone.endswith(CUT) or torn[item.stream] < 0:
                    del torn[item.stream]
            yield from (Line(item.at, item.stream, None, self._masks.hide(text)) for text in texts)
        for stream, cutter in cutters.items():
            for text in cutter.flush():
                # The only line of all, and its beginning is gone: with it maybe the beginning of a secret.
                hidden = self._masks.hide(text)
                seen = "…" + hidden[self._masks.longest :] if stream in torn else hidden
                yield Line(at[stream], stream, None, seen)


def kept_of(token: int) -> int:
    """Return how many bytes are kept of a run beside its end, by its number among those of its job.

    A job that asks to run later may run for ever, and yet must not fill the store.
    """
    return MAX_KEPT >> min(_LEAST_PART, max(0, token - 1) // WHOLE_RUNS)


def _held_size(item: _Raw | Line) -> int:
    return len(item.data) if isinstance(item, _Raw) else size_of(item.text)


def _last(lines: list[Line]) -> Iterator[Line]:
    """Give lines from the last one on, as many as there is room for; one at least."""
    left = LAST_BYTES
    for index, line in enumerate(reversed(lines)):
        left -= size_of(line.text)
        if left < 0 and index:
            return
        yield line


def size_of(text: str) -> int:
    """Return how many bytes a line takes, with its end."""
    return (len(text) if text.isascii() else len(text.encode())) + 1
