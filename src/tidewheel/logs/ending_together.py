"""Lines of runs that end together and said nothing special, made all at once: that costs a fraction."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol
from uuid import UUID

from tidewheel.logs.handler import STDERR, STDOUT
from tidewheel.model.checks import FIRST_INSTANT, LAST_INSTANT
from tidewheel.model.harmless_text import is_odd_text
from tidewheel.model.log_piece import MARKS, MAX_PIECE, Piece, texts_of_pieces
from tidewheel.model.log_words import LEVELS

_LOG_MARKS: Final[dict[object, str]] = {
    name: MARKS["log", level] for level in LEVELS for name in (level, level.upper())
}
_PRINT_MARKS: Final[dict[object, str]] = {STDOUT: MARKS["stdout", None], STDERR: MARKS["stderr", None]}
EARLIEST: Final = FIRST_INSTANT.timestamp()
LATEST: Final = LAST_INSTANT.timestamp()
_LOGGED: Final = 3
_PRINTED: Final = 6
"""Items that a line takes: of what was printed, the end of the line comes apart."""


class EndingRun(Protocol):
    """A run that ends."""

    @property
    def job_id(self) -> UUID: ...
    @property
    def token(self) -> int: ...
    @property
    def lane(self) -> int | None: ...

    def end(self) -> None:
        """Give out all lines."""

    def end_plainly(self) -> list[Any] | None:
        """End and return what was said (see `RunSink`), if no line was made before and none is to be hidden or cut."""

    def give_last(self, said: list[Any]) -> None:
        """Give out lines of it all the same."""


_Ended = Sequence[tuple[EndingRun, list[Any]]]
"""Runs, with what they said."""


class _Lines(NamedTuple):
    ats: list[float]
    kinds: list[Any]
    texts: list[str]


def end_together(runs: Sequence[EndingRun], put: Callable[[Sequence[Piece]], None]) -> None:
    """End runs, and put their lines."""
    logging: list[tuple[EndingRun, list[Any]]] = []
    printing: list[tuple[EndingRun, list[Any]]] = []
    for run in runs:
        said = run.end_plainly()
        if said is None:
            run.end()
        elif said:
            (logging if isinstance(said[1], str) else printing).append((run, said))
    for ended, items in ((logging, _LOGGED), (printing, _PRINTED)):
        if ended:
            _put_all(ended, items, put)


def _put_all(ended: _Ended, items: int, put: Callable[[Sequence[Piece]], None]) -> None:
    pieces = _pieces(ended, items)
    if pieces is not None:
        put(pieces)
    elif len(ended) > 1:
        for one in ended:
            _put_all([one], items, put)
    else:
        for run, said in ended:
            run.give_last(said)


def _pieces(ended: _Ended, items: int) -> list[Piece] | None:
    """Return the lines of runs; None if there is anything to be cleaned or cut in what one of them said.

    One look at all is much faster than one at each.
    """
    everything: list[Any] = []
    ends: list[int] = []
    for _, said in ended:
        everything += said
        ends.append(len(everything) // items)
        if len(everything) % items:
            return None
    lines = _Lines(everything[0::items], everything[1::items], everything[2::items])
    try:
        if items == _PRINTED and not _is_by_line(everything):
            return None
        mark_of = _LOG_MARKS if items == _LOGGED else _PRINT_MARKS  # of who did both, a line may have several chunks
        in_order = sorted(lines.ats)  # as they most often are: that takes less than to look for the least and the last
        marks, joined = "".join(map(mark_of.__getitem__, lines.kinds)), "\n".join(lines.texts)
        if in_order[0] < EARLIEST or in_order[-1] >= LATEST or is_odd_text(joined):
            return None
        if joined.count("\n") != len(marks) - 1:
            return None
        return _cut(ended, ends, lines, marks)
    except Exception:  # noqa: BLE001 - a level of the user's own, bytes, or whatever else a record was given
        return None


def _is_by_line(said: list[Any]) -> bool:
    """Tell whether all was printed by the line, as `print` does it: a text, then the end of the line."""
    line_ends = said[5::6]
    return line_ends.count("\n") == len(line_ends) and said[1::6] == said[4::6]


def _cut(ended: _Ended, ends: Sequence[int], lines: _Lines, marks: str) -> list[Piece] | None:
    """Return lines as pieces, one for each run; None if one is too large."""
    ats, texts = lines.ats, lines.texts
    begun = ats[0]
    offsets = [int((at - begun) * 1e6 + 0.5) for at in ats]
    micros = round(begun * 1e6)
    spans = list(zip([0, *ends[:-1]], ends, strict=True))
    pieces = texts_of_pieces(
        [(micros, offsets[start:end], marks[start:end]) for start, end in spans],
        [texts[start:end] for start, end in spans],
    )
    if max(map(len, pieces)) > MAX_PIECE:
        return None
    return [
        Piece(run.job_id, run.token, 1, end - start, piece, run.lane)
        for (run, _), (start, end), piece in zip(ended, spans, pieces, strict=True)
    ]
