"""What one run prints and logs, on its way to the shipper."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NamedTuple, Self
from uuid import UUID

from tidewheel.clock import Clock
from tidewheel.logs.ending_together import EARLIEST, LATEST, end_together
from tidewheel.logs.handler import LARGE, NUMBERS
from tidewheel.logs.lines import LineCutter, lines_of_text
from tidewheel.logs.masks import Masks
from tidewheel.logs.quota import MAX_KEPT, WHOLE_RUNS, Line, Quota, Tail, kept_of
from tidewheel.logs.shipper import LogShipper
from tidewheel.model.checks import clean_text
from tidewheel.model.log import MAX_LEVEL, LogStream
from tidewheel.model.log_piece import Said, mark_of, pieces_of_run
from tidewheel.model.log_words import LEVELS

MOST_SAID: Final = 256
"""So many chunks, or one that is large, are made lines of at once."""
_ROOM: Final = 3 * MOST_SAID - 1

_BEGINNING: Final = threading.Lock()
_NO_MASKS: Final = Masks()
_STREAMS: Final[dict[int, LogStream]] = {number: stream for stream, number in NUMBERS.items()}
_SYSTEM: Final = mark_of("system", None)


class _Grave(list[Any]):
    """What is said into it is not heard."""

    def __iadd__(self, _: object) -> Self:  # type: ignore[misc]
        return self


_GRAVE: Final = _Grave()


class _Level(NamedTuple):
    """A level that is not to be changed, unlike that of a record."""

    name: str


class RunLog:
    """Makes numbered lines of a run's output and log, without its secrets and within its quota.

    What is said is only noted at first. Lines are made of it, of all at once, when the shipper asks, when it has become
    much, or at the end. Never blocks and never raises. Any thread may call it. Costs next to nothing until it is used.
    """

    _ended = False
    _number = 1
    _masks = _NO_MASKS
    _tail: Tail | None = None
    _lock: "threading.Lock | None" = None
    """There is none as long as nothing was done but noting what is said."""
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
        self.job_id = job_id
        self.token = token
        self.lane = lane
        self.said: list[Any] = []
        """As it came, in chunks (see `RunSink`); only ever extended and cut at its beginning, which several threads may
        do at once."""
        self.room = 0
        """As the shipper must be told of the first words; set back before what was said is looked at, so that nothing
        is overlooked."""
        self.time = clock.time
        self._shipper = shipper
        self._max_bytes = max_bytes if token <= WHOLE_RUNS else min(max_bytes, kept_of(token))
        self._is_plain = self._max_bytes >= MAX_KEPT
        """Whether nothing was done yet but noting what is said, and nothing is to be hidden or left out."""

    @property
    def full(self) -> bool:
        """Whether the quota is used up, so that more output is thrown away but for the last lines."""
        return self._lock is not None and self._quota.full

    @property
    def spoke(self) -> bool:
        """Whether anything was said."""
        return self._lock is not None or bool(self.said)

    def keep_quiet(self) -> None:
        """Tell the shipper nothing until `speak_up`, unless it is much.

        It could not ask anyway, as long as the run does not let go of the loop that both live in.
        """
        self.room = _ROOM

    def speak_up(self) -> None:
        """Tell the shipper of words from now on, and of those that there are."""
        self.room = 0
        if self.said:
            self.press("")

    def hide(self, secrets: Sequence[str]) -> None:
        """Keep secrets out of all that is said from now on; before anything is."""
        if secrets:
            self._masks = Masks(secrets)
            self._is_plain = False

    def output(self, stream: Literal["stdout", "stderr"], data: bytes | str) -> None:
        """Take output, in chunks as they come."""
        self._hear(NUMBERS[stream], data)

    def log(self, level: str, text: str) -> None:
        """Take what the task logged; several lines become several lines."""
        self._hear(level if level in LEVELS else _Level(level), text)

    def _hear(self, what: object, data: bytes | str) -> None:
        said = self.said  # `self.said +=` would put it back, where another thread has ended the run meanwhile
        said += (self.time(), what, data)
        if len(said) > self.room or len(data) > LARGE:
            self.press(data)

    def press(self, text: bytes | str) -> None:
        """See `RunSink`."""
        if self._ended:
            return
        if (len(text) > LARGE or len(self.said) > _ROOM) and self._give(wait=False):
            return
        if self.room == 0:
            self.room = _ROOM
            self._shipper.expect(self)

    def _begin(self) -> threading.Lock:
        """Be ready to make lines."""
        lock = self._lock
        if lock is None:
            lines: Said = []  # all that may have garbage collected, which may speak, is made before the lock is held
            cutters: dict[LogStream, LineCutter] = {}
            quota = Quota(self._max_bytes)
            with _BEGINNING:
                lock = self._lock
                if lock is None:
                    self._lines, self._cutters, self._quota, self._is_plain = lines, cutters, quota, False
                    lock = self._lock = threading.Lock()
        return lock

    def give(self) -> None:
        """Hand the lines of what was said to the shipper."""
        self._give(wait=True)

    def _give(self, *, wait: bool) -> bool:
        """Do so, and tell whether it was done: without waiting it is not while lines are made.

        Whoever speaks does not wait, for it may be in the middle of just that: garbage is collected at any moment, and
        may have something to say.
        """
        if self._ended:
            return True
        lock = self._begin()
        if not lock.acquire(blocking=wait):
            return False
        try:
            if not self._ended:
                self.room = 0
                said = self.said[:]
                del self.said[: len(said)]  # other threads may have said more meanwhile
                self._take_in(said)
                self._put()
        finally:
            lock.release()
        return True

    def end(self) -> None:
        """Give out all that is still held; later words are ignored. Then flush the shipper."""
        with self._begin():
            if not self._ended:
                self._ended = True
                self._give_last(self._take_said())

    def end_soon(self, then: Callable[[bool], None]) -> None:
        """End together with other runs, and have it told when all is stored, or took too long, with which it was."""
        self._shipper.finish(self, len(self.said) // 3, then)

    def end_all(self, runs: Sequence["RunLog"]) -> None:
        """End runs of this one's shipper; what is done for many in a row costs a fraction of what it costs for each."""
        end_together(runs, self._shipper.put)

    def end_plainly(self) -> list[Any] | None:
        """End without making lines, if nothing is special about this run, and return what was said; None if it is."""
        with _BEGINNING:
            if not self._is_plain:
                return None
            self._is_plain, self._ended = False, True
            return self._take_said()

    def give_last(self, said: list[Any]) -> None:
        """Give out lines of what was said after all."""
        with self._begin():
            self._give_last(said)

    def _take_said(self) -> list[Any]:
        said, self.said = self.said, _GRAVE
        return said[:]  # a thread that goes on speaking may still have hold of it

    def _give_last(self, said: list[Any]) -> None:
        self._take_in(said)
        for stream, cutter in self._cutters.items():
            if texts := cutter.flush():
                self._keep(self._now(), stream, None, texts)
        if self._quota.full:
            self._take_tail()
        self._put()
        self._shipper.forget(self)

    def _take_in(self, said: list[Any]) -> None:
        """Make lines of what was said."""
        for seconds, what, data in zip(said[0::3], said[1::3], said[2::3], strict=True):
            at = self._micros(seconds)
            stream = _STREAMS.get(what, "log") if isinstance(what, int) else "log"
            if stream == "log":
                self._keep(at, stream, clean_text(_level_of(what), MAX_LEVEL), lines_of_text(data, self._masks.raw))
                continue
            raw = data if isinstance(data, bytes) else data.encode(errors="replace")
            if self._quota.full:
                self._held().take_raw(at, stream, raw)
            elif texts := self._cutter(stream).feed(raw):
                self._keep(at, stream, None, texts)

    def _keep(self, at: int, stream: LogStream, level: str | None, texts: list[str]) -> None:
        texts = self._masks.hide_in(texts)
        was_full = self._quota.full
        kept = 0 if was_full else self._quota.fit(texts)
        mark = mark_of(stream, level)
        for text in texts[:kept]:
            self._lines += (at, mark, text)
        for text in texts[kept:]:
            self._held().take_line(Line(at, stream, level, text))
        if self._quota.full and not was_full:
            self._lines += (at, _SYSTEM, self._quota.mark)
            for name, cutter in self._cutters.items():
                self._held().take_raw(at, name, cutter.take_pending())

    def _now(self) -> int:
        return round(self.time() * 1e6)

    def _micros(self, seconds: object) -> int:
        """Return a time in microseconds; a record may have been given any, and one that is none is now."""
        if isinstance(seconds, int | float) and EARLIEST <= seconds < LATEST:
            return round(seconds * 1e6)
        return self._now()

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
            self._lines += (self._now(), _SYSTEM, left_out)
        for line in lines:
            self._lines += (line.at, mark_of(line.stream, line.level), line.text)

    def _put(self) -> None:
        lines, self._lines = self._lines, []
        if lines:
            self._shipper.put(pieces_of_run(self.job_id, self.token, self._number, lines, self.lane))
            self._number += len(lines) // 3


def _level_of(what: object) -> str:
    """Return the name of a level; a record may have been given anything in place of one."""
    if isinstance(what, _Level):
        return what.name
    return str.lower(what) if isinstance(what, str) else type(what).__name__.lower()
