"""What one run prints and logs, on its way to the shipper."""

import threading
from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal
from uuid import UUID

from tidewheel.clock import Clock
from tidewheel.logs.lines import LineCutter, lines_of_text
from tidewheel.logs.masks import Masks
from tidewheel.logs.quota import MAX_KEPT, Line, Quota, Tail
from tidewheel.logs.shipper import LogShipper
from tidewheel.model.log import LogLine, LogStream

_NO_MASKS: Final = Masks()


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
        self._masks = Masks(mask) if mask else _NO_MASKS
        self._cutters: dict[LogStream, LineCutter] = {}
        self._quota = Quota(max_bytes)
        self._tail: Tail | None = None
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
                self._held().take_raw(self._clock.now(), stream, data)
            elif texts := self._cutter(stream).feed(data):
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
        self._put(at, stream, level, texts if kept == len(texts) else texts[:kept])
        for text in texts[kept:]:
            self._held().take_line(Line(at, stream, level, text))
        if self._quota.full and not was_full:
            self._put(at, "system", None, [self._quota.mark])
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

    def _put_tail(self) -> None:
        left_out, lines = self._held().end()
        if left_out is not None:
            self._put(self._clock.now(), "system", None, [left_out])
        for line in lines:
            self._put(line.at, line.stream, line.level, [line.text])

    def _put(self, at: datetime, stream: LogStream, level: str | None, texts: list[str]) -> None:
        job_id, token, first = self._job_id, self._token, self._number + 1
        self._number += len(texts)
        lines = [LogLine(job_id, token, number, at, stream, level, text) for number, text in enumerate(texts, first)]
        self._shipper.put(lines, sum(map(len, texts)))
