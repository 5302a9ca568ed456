"""What one run prints and logs, on its way to the shipper."""

import threading
from collections.abc import Sequence
from typing import Literal
from uuid import UUID

from tidewheel.clock import Clock
from tidewheel.logs.lines import LineCutter, lines_of_text
from tidewheel.logs.masks import Masks
from tidewheel.logs.quota import MAX_KEPT, Line, Quota, Tail
from tidewheel.logs.shipper import LogShipper
from tidewheel.model.log import LogLine, LogStream


class RunLog:
    """Makes numbered lines of a run's output and log, without its secrets and within its quota.

    Never blocks and never raises. Any thread may call it.
    """

    def __init__(
        self,
        job_id: UUID,
        token: int,
        shipper: LogShipper,
        clock: Clock,
        *,
        mask: Sequence[str] = (),
        max_bytes: int = MAX_KEPT,
    ) -> None:
        self._job_id = job_id
        self._token = token
        self._shipper = shipper
        self._clock = clock
        self._masks = Masks(mask)
        self._cutters: dict[LogStream, LineCutter] = {
            "stdout": LineCutter(self._masks.raw),
            "stderr": LineCutter(self._masks.raw),
        }
        self._quota = Quota(max_bytes)
        self._tail = Tail(self._masks)
        self._number = 0
        self._ended = False
        self._lock = threading.Lock()

    @property
    def full(self) -> bool:
        """Whether the quota is used up, so that more output is thrown away but for the last lines."""
        return self._quota.full

    @property
    def behind(self) -> bool:
        """Whether lines will soon be dropped, so that whoever can read more slowly should."""
        return self._shipper.behind

    def output(self, stream: Literal["stdout", "stderr"], data: bytes) -> None:
        """Take raw output, in chunks as they come."""
        with self._lock:
            if self._ended:
                return
            if self._quota.full:
                self._tail.take_raw(self._clock.now(), stream, data)
            elif texts := self._cutters[stream].feed(data):
                self._keep(stream, None, texts)

    def log(self, level: str, text: str) -> None:
        """Take what the task logged; several lines become several lines."""
        with self._lock:
            if not self._ended:
                self._keep("log", level, lines_of_text(text, self._masks.raw))

    def end(self) -> None:
        """Give out what is still held; later words are ignored. Then flush the shipper."""
        with self._lock:
            if self._ended:
                return
            for stream, cutter in self._cutters.items():
                if texts := cutter.flush():
                    self._keep(stream, None, texts)
            self._ended = True
            if self._quota.full:
                self._put_tail()

    def _keep(self, stream: LogStream, level: str | None, texts: list[str]) -> None:
        at = self._clock.now()
        texts = self._masks.hide_in(texts)
        was_full = self._quota.full
        kept = 0 if was_full else self._quota.fit(texts)
        self._put([Line(at, stream, level, text) for text in texts[:kept]])
        for text in texts[kept:]:
            self._tail.take_line(Line(at, stream, level, text))
        if self._quota.full and not was_full:
            self._put([Line(at, "system", None, self._quota.mark)])
            for name, cutter in self._cutters.items():
                self._tail.take_raw(at, name, cutter.take_pending())

    def _put_tail(self) -> None:
        left_out, lines = self._tail.end()
        if left_out is not None:
            self._put([Line(self._clock.now(), "system", None, left_out)])
        self._put(lines)

    def _put(self, lines: Sequence[Line]) -> None:
        first = self._number + 1
        self._number += len(lines)
        numbered = [LogLine(self._job_id, self._token, number, *line) for number, line in enumerate(lines, first)]
        self._shipper.put(numbered, sum(len(line.text) for line in lines))
