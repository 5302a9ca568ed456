"""What one run prints and logs, on its way to the shipper."""

import threading
from collections.abc import Callable, Sequence
from typing import Final, Literal
from uuid import UUID

from tidewheel.clock import Clock
from tidewheel.logs.lines import SHORT, LineCutter, lines_of_text
from tidewheel.logs.masks import Masks
from tidewheel.logs.quota import MAX_KEPT, Line, Quota, Tail, size_of
from tidewheel.logs.shipper import LogShipper
from tidewheel.model.checks import clean_text
from tidewheel.model.harmless_text import is_odd
from tidewheel.model.log import MAX_LEVEL, LogStream
from tidewheel.model.log_piece import Said, pieces_of_run
from tidewheel.model.log_words import LEVELS

MOST_SAID: Final = 256
LARGE: Final = 4 * 1024
"""So many chunks, or one of so many bytes, are made lines of at once."""
_MOST_ITEMS: Final = 4 * MOST_SAID

_BEGINNING: Final = threading.Lock()
_NO_MASKS: Final = Masks()
_USUAL_LEVELS: Final = frozenset((None, *LEVELS))


class RunLog:
    """Makes numbered lines of a run's output and log, without its secrets and within its quota.

    What is said is only noted at first. Lines are made of it, of all at once, when the shipper asks, when it has become
    much, or at the end. Never blocks and never raises. Any thread may call it. Costs next to nothing until it is used.
    """

    _said: Said | None = None
    """As it came, in chunks; only ever extended and cut at its beginning, which several threads may do at once."""
    _announced = False
    """Whether the shipper will ask; set back before what was said is looked at, so that nothing is overlooked."""
    _ended = False
    _number = 1
    _masks = _NO_MASKS
    _tail: Tail | None = None
    _lock: threading.Lock
    _lines: Said
    _cutters: dict[LogStream, LineCutter]
    _quota: Quota

    def __init__(
        self,
        job_id: UUID,
        token: int,
        shipper: LogShipper,
        clock: Clock,
        *,
        lane: int | None = None,
        max_bytes: int = MAX_KEPT,
    ) -> None:
        self._job_id = job_id
        self._token = token
        self._lane = lane
        self._shipper = shipper
        self._time_ns = clock.time_ns
        self._max_bytes = max_bytes

    @property
    def full(self) -> bool:
        """Whether the quota is used up, so that more output is thrown away but for the last lines."""
        return self._said is not None and self._quota.full

    def hide(self, secrets: Sequence[str]) -> None:
        """Keep secrets out of all that is said from now on; before anything is."""
        self._masks = Masks(secrets)

    def output(self, stream: Literal["stdout", "stderr"], data: bytes | str) -> None:
        """Take output, in chunks as they come."""
        said = self._said
        if said is None:
            said = self._begin()
        if not self._ended:
            said.extend((self._time_ns(), stream, None, data))
            if len(data) > LARGE or len(said) >= _MOST_ITEMS:
                self.give()
            elif not self._announced:
                self._announce()

    def log(self, level: str, text: str) -> None:
        """Take what the task logged; several lines become several lines."""
        said = self._said
        if said is None:
            said = self._begin()
        if not self._ended:
            said.extend((self._time_ns(), "log", level, text))
            if len(text) > LARGE or len(said) >= _MOST_ITEMS:
                self.give()
            elif not self._announced:
                self._announce()

    def _begin(self) -> Said:
        with _BEGINNING:
            if self._said is None:
                self._lock = threading.Lock()
                self._lines = []
                self._cutters = {}
                self._quota = Quota(self._max_bytes)
                self._said = []
        return self._said

    def give(self) -> None:
        """Hand the lines of what was said to the shipper."""
        if self._ended or self._said is None:
            return
        with self._lock:
            if not self._ended:
                self._take_in(self._said)
                self._put()

    def end(self) -> None:
        """Give out all that is still held; later words are ignored. Then flush the shipper."""
        said = self._begin()
        with self._lock:
            if self._ended:
                return
            self._ended = True
            self._take_in(said)
            for stream, cutter in self._cutters.items():
                if texts := cutter.flush():
                    self._keep(self._time_ns(), stream, None, texts)
            if self._quota.full:
                self._take_tail()
            self._put()
        self._shipper.forget(self)

    def end_soon(self, then: Callable[[bool], None]) -> None:
        """End together with other runs, and have it told when all is stored, or took too long, with which it was."""
        self._shipper.finish(self, len(self._said or ()) // 4, then)

    def _announce(self) -> None:
        self._announced = True
        self._shipper.expect(self)

    def _take_in(self, noted: Said) -> None:
        """Make lines of what was said: of all at once if nothing is special about it, as is most often so."""
        self._announced = False
        said = noted[:]
        del noted[: len(said)]  # other threads may have said more meanwhile
        if not said or self._take_plain(said):
            return
        for at, stream, level, data in zip(said[0::4], said[1::4], said[2::4], said[3::4], strict=True):
            if stream == "log":
                self._keep(at, stream, clean_text(level, MAX_LEVEL), lines_of_text(data, self._masks.raw))
                continue
            raw = data if isinstance(data, bytes) else data.encode(errors="replace")
            if self._quota.full:
                self._held().take_raw(at, stream, raw)
            elif texts := self._cutter(stream).feed(raw):
                self._keep(at, stream, None, texts)

    def _take_plain(self, said: Said) -> bool:
        """Take whole lines of one stream, if there is nothing to mend, hide or leave out; tell whether that is so."""
        streams, stream = said[1::4], said[1]
        if self._masks.raw or self._quota.full or streams.count(stream) != len(streams):
            return False
        lines = said if stream == "log" else self._printed(said)
        texts = lines[3::4]
        try:
            joined = "".join(texts)  # one look at all is much faster than one at each
        except TypeError:  # bytes
            return False
        if (
            not texts
            or is_odd(joined)
            or not _USUAL_LEVELS.issuperset(lines[2::4])
            or (len(joined) > SHORT and max(map(len, texts)) > SHORT)
            or not self._quota.fit_all(len(texts), size_of(joined) - 1 + len(texts))
        ):
            return False
        self._lines = self._lines + lines if self._lines else lines
        return True

    def _printed(self, said: Said) -> Said:
        """Return what was printed by the line, as `print` does it: a text, then the end of the line; else nothing."""
        ends = said[7::8]
        cutter = self._cutters.get(said[1])
        if len(said) != 8 * len(ends) or ends.count("\n") != len(ends) or (cutter is not None and cutter.is_amid):
            return []
        lines = said[: 4 * len(ends)]
        lines[0::4], lines[3::4] = said[4::8], said[3::8]
        return lines

    def _keep(self, at: int, stream: LogStream, level: str | None, texts: list[str]) -> None:
        texts = self._masks.hide_in(texts)
        was_full = self._quota.full
        kept = 0 if was_full else self._quota.fit(texts)
        for text in texts[:kept]:
            self._lines += (at, stream, level, text)
        for text in texts[kept:]:
            self._held().take_line(Line(at, stream, level, text))
        if self._quota.full and not was_full:
            self._lines += (at, "system", None, self._quota.mark)
            for name, cutter in self._cutters.items():
                self._held().take_raw(at, name, cutter.take_pending())

    def _cutter(self, stream: LogStream) -> LineCutter:
        cutter = self._cutters.get(stream)
        if cutter is None:
            cutter = self._cutters[stream] = LineCutter(self._masks.raw)
        return cutter

    def _held(self) -> Tail:
        if self._tail is None:
            self._tail = Tail(self._masks)
        return self._tail

    def _take_tail(self) -> None:
        left_out, lines = self._held().end()
        if left_out is not None:
            self._lines += (self._time_ns(), "system", None, left_out)
        for line in lines:
            self._lines += line

    def _put(self) -> None:
        lines, self._lines = self._lines, []
        if lines:
            self._shipper.put(pieces_of_run(self._job_id, self._token, self._number, lines, self._lane))
            self._number += len(lines) // 4
