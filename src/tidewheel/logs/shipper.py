"""Brings lines of many runs to the store, in batches, without ever holding up a run."""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from math import inf
from typing import Any, Final, Protocol
from uuid import UUID

import msgspec

from tidewheel.clock import Clock
from tidewheel.errors import Unavailable
from tidewheel.logs.lost import Dropped, Mark
from tidewheel.model.log_piece import Piece

_logger = logging.getLogger(__name__)

Run = tuple[UUID, int]

FLUSH_WITHIN: Final = timedelta(seconds=5)
FEW: Final = 1000
FOLLOWS: Final = 0.005
GATHER: Final = 0.003
"""While one batch follows the other, a small one waits so many seconds for more: a commit costs the same for all."""
_MOMENT: Final = 0.001
_TOGETHER: Final = 0.1
"""Seconds within which runs end together; no longer, for they also wait together."""
_FIRST_WAIT: Final = 0.1
_LONGEST_WAIT: Final = 5.0


class ShipperSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How lines are gathered."""

    wait: timedelta = timedelta(milliseconds=100)
    """How long the first line of a batch waits for others."""
    batch_lines: int = 5000
    batch_bytes: int = 1024 * 1024
    buffer_lines: int = 100_000
    buffer_bytes: int = 16 * 1024 * 1024
    """What is held at most while the store does not keep up, or cannot be reached; more is dropped and counted."""


class Speaker(Protocol):
    """Who has lines to give, such as a `RunLog`."""

    def give(self) -> None:
        """Put them."""

    def end_all(self, speakers: Sequence[Any]) -> None:
        """Put the last of the lines of all of these, who are of the same kind."""


_Then = Callable[[bool], None]
"""What to call once lines are stored, or it took too long, with which of both it was."""


class _Waiting:
    """Those who wait for the same lines."""

    def __init__(self, target: float, until: float) -> None:
        self.target = target
        """How many lines must be stored; infinite, as long as that is not known."""
        self.until = until
        self.thens: list[_Then] = []

    def tell(self, *, in_time: bool) -> None:
        for then in self.thens:
            then(in_time)


class LogShipper:
    """Collects lines and appends them to the store, in the order in which they came.

    `append` must bear to be given the same lines again: after an error with unknown outcome they are repeated. `put`
    and `expect` may be called by any thread; all else belongs to the loop that the shipper was made in.
    """

    def __init__(
        self,
        append: Callable[[Sequence[Piece]], Awaitable[None]],
        clock: Clock,
        settings: ShipperSettings | None = None,
    ) -> None:
        self._append = append
        self._clock = clock
        self._settings = settings or ShipperSettings()
        self._longest = self._settings.wait.total_seconds()
        self._lock = threading.RLock()  # garbage that is collected while it is held may have something to say
        self._buffer: deque[Piece] = deque()
        self._lines = self._bytes = 0
        self._speakers: dict[Speaker, None] = {}
        self._spoken_at = 0.0
        """When the first of them announced itself."""
        self._dropped: dict[Run, Dropped] = {}
        self._taken = 0
        self._done = 0
        self.lost = 0
        """Lines that found no room, or were refused."""
        self._waiting: deque[_Waiting] = deque()
        self._ended: list[Speaker] = []
        self._ended_lines = 0
        """Runs that have ended, and about how many lines they still hold."""
        self._ended_since = 0.0
        """When the first of them did."""
        self._shipped_at = float("-inf")
        self._hurried = 0
        """How many stand still until their lines are stored."""
        self._watching: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._some = asyncio.Event()
        self._awake = False
        """Whether it was told that there is something; to tell it across threads is dear."""
        self._urgent = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name="log shipper")

    @property
    def behind(self) -> bool:
        """Whether half of the buffer is used, so that whoever can wait should."""
        lines = self._lines + self._ended_lines
        return 2 * lines > self._settings.buffer_lines or 2 * self._bytes > self._settings.buffer_bytes

    def expect(self, speaker: Speaker) -> None:
        """Ask someone for his lines when they have waited for others as long as lines may."""
        with self._lock:
            if not self._speakers:
                self._spoken_at = self._clock.monotonic()
            self._speakers[speaker] = None
            is_awake, self._awake = self._awake, True
        if not is_awake:
            self._call(many=False)

    def put(self, pieces: Sequence[Piece]) -> None:
        """Take lines; what finds no room is dropped and counted."""
        lines, size = _sum_of(pieces)
        with self._lock:
            before = self._lines
            if not self._dropped and self._has_room(lines, size):
                self._buffer.extend(pieces)
                self._count(lines, size)
            else:
                for piece in pieces:
                    self._take(piece)
            many = before < self._settings.batch_lines <= self._lines
            is_awake, self._awake = self._awake, True
        if many or not is_awake:
            self._call(many=many)

    def _take(self, piece: Piece) -> None:
        lines, size = _sum_of((piece,))
        if not self._has_room(lines, size):
            self._drop(piece)
            return
        if self._dropped:
            self._say_dropped((piece.job_id, piece.token))
        self._buffer.append(piece)
        self._count(lines, size)

    def _has_room(self, lines: int, size: int) -> bool:
        settings = self._settings
        return self._lines + lines <= settings.buffer_lines and self._bytes + size <= settings.buffer_bytes

    def _count(self, lines: int, size: int) -> None:
        self._lines += lines
        self._bytes += size
        self._taken += lines

    def _drop(self, piece: Piece) -> None:
        lines = piece.last - piece.first + 1
        self.lost += lines
        self._dropped.setdefault((piece.job_id, piece.token), Dropped(piece)).lines += lines

    def _say_dropped(self, run: Run) -> None:
        if dropped := self._dropped.pop(run, None):
            mark = dropped.mark(self._clock.time())
            self._buffer.append(mark)
            self._count(1, len(mark.lines))

    def _call(self, *, many: bool) -> None:
        with suppress(RuntimeError):  # the loop is closed, and with it the shipper
            self._loop.call_soon_threadsafe(self._wake, many)

    def _wake(self, many: bool) -> None:  # noqa: FBT001 - called by the loop
        self._awake = True
        self._some.set()
        if many:
            self._urgent.set()

    def finish(self, speaker: Speaker, lines: int, then: _Then, within: timedelta = FLUSH_WITHIN) -> None:
        """Call `then` once the last lines of a run are stored (or dropped), or that time has passed, with which it was.

        The run has ended, with about so many lines to give. It is asked for them together with others that end at about
        the same time: what is done for many in a row costs half of what it costs here and there.
        """
        now = self._clock.monotonic()
        if not self._ended or now - self._ended_since > _TOGETHER:
            self._take_ended()
            self._ended_since = now
            self._wait_until(inf, within)
        self._ended.append(speaker)
        self._ended_lines += lines
        self._waiting[-1].thens.append(then)

    def _take_ended(self) -> None:
        """Hear out those that have ended."""
        if not self._ended:
            return
        ended, self._ended, self._ended_lines = self._ended, [], 0
        ended[0].end_all(ended)
        if self._speakers:
            for speaker in ended:
                self.forget(speaker)
        self._say_all_dropped()
        for waiting in self._waiting:
            waiting.target = min(waiting.target, self._taken)

    def _say_all_dropped(self) -> None:
        if self._dropped:
            with self._lock:
                for run in list(self._dropped):
                    self._say_dropped(run)

    async def flush(self, job_id: UUID, token: int, within: timedelta = FLUSH_WITHIN) -> bool:
        """Return once all lines of a run are stored (or dropped), and whether that was so within the time."""
        self._take_ended()
        if self._dropped:
            with self._lock:
                self._say_dropped((job_id, token))
        return await self._all_stored(within)

    async def close(self, within: timedelta = FLUSH_WITHIN) -> int:
        """Store what there is, within that time, end, and return how many lines were lost."""
        self._hear()
        self._take_ended()
        self._say_all_dropped()
        await self._all_stored(within)
        for task in (self._task, self._watching):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        return self._taken - self._done

    async def _all_stored(self, within: timedelta) -> bool:
        """Return once all that was taken is stored, or that time has passed, and which it was."""
        if self._done >= self._taken:
            return True
        stored: asyncio.Future[bool] = self._loop.create_future()
        self._wait_until(self._taken, within)
        self._waiting[-1].thens.append(partial(_resolve, stored))
        self._hurried += 1
        try:
            return await stored
        finally:
            self._hurried -= 1

    def _wait_until(self, target: float, within: timedelta) -> None:
        self._wake(many=True)  # also if it is awake: it may be about to sleep
        self._waiting.append(_Waiting(target, self._clock.monotonic() + within.total_seconds()))
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch(), name="log patience")

    async def _watch(self) -> None:
        """Tell those who have waited for too long; there is one watch for all."""
        while self._waiting:
            await self._clock.sleep(min(one.until for one in self._waiting) - self._clock.monotonic())
            self._take_ended()  # so that all know what they wait for
            now = self._clock.monotonic()
            late = [one for one in self._waiting if one.until <= now]
            self._waiting = deque(one for one in self._waiting if one.until > now)
            for one in late:
                one.tell(in_time=False)
        self._watching = None

    async def _run(self) -> None:
        while True:
            await self._some.wait()
            await self._gather()
            self._take_ended()
            if self._speakers and self._time_left() <= 0:
                self._hear()
            self._tell_stored()
            batch = self._next_batch()
            if batch:
                await self._ship(batch)

    async def _gather(self) -> None:
        """Give the first line's companions time to come, unless there are enough or someone is in a hurry."""
        lines = self._lines + self._ended_lines
        if lines >= self._settings.batch_lines:
            return
        if self._waiting:
            if not self._hurried and lines < FEW and self._clock.monotonic() - self._shipped_at < FOLLOWS:
                await self._clock.sleep(GATHER)
            return
        self._urgent.clear()
        enough = asyncio.ensure_future(self._urgent.wait())
        left = self._time_left() if self._speakers else self._longest
        time_is_up = asyncio.ensure_future(self._clock.sleep(left))
        try:
            await asyncio.wait((enough, time_is_up), return_when=asyncio.FIRST_COMPLETED)
        finally:
            enough.cancel()
            time_is_up.cancel()

    def _time_left(self) -> float:
        """Return for how many seconds those who announced themselves may still wait; a moment more is none."""
        left = self._spoken_at + self._longest - self._clock.monotonic()
        return left if left > _MOMENT else 0.0

    def _hear(self) -> None:
        with self._lock:
            speakers, self._speakers = self._speakers, {}
        for speaker in speakers:
            speaker.give()

    def forget(self, speaker: Speaker) -> None:
        """Do not ask someone who has given all."""
        self._speakers.pop(speaker, None)

    def _next_batch(self) -> list[Piece]:
        settings = self._settings
        with self._lock:
            if self._lines <= settings.batch_lines and self._bytes <= settings.batch_bytes:
                batch = list(self._buffer)
                self._buffer.clear()
                self._lines = self._bytes = 0
            else:
                batch = self._first_batch()
            if not self._buffer and not self._speakers:
                self._some.clear()
                self._awake = False
        return batch

    def _first_batch(self) -> list[Piece]:
        batch: list[Piece] = []
        lines = size = 0
        while self._buffer and lines < self._settings.batch_lines and size < self._settings.batch_bytes:
            piece = self._buffer.popleft()
            batch.append(piece)
            lines += piece.last - piece.first + 1
            size += len(piece.lines)
        self._lines -= lines
        self._bytes -= size
        return batch

    def _count_lost(self, batch: list[Piece]) -> None:
        """Let a line stand for those that are lost, unless all of them are such lines already."""
        with self._lock:
            for piece in batch:
                if not isinstance(piece, Mark):
                    self._drop(piece)
                    self._wake(many=False)
            for run in {(piece.job_id, piece.token) for piece in batch}:
                self._say_dropped(run)

    async def _ship(self, batch: list[Piece]) -> None:
        wait = _FIRST_WAIT
        while True:
            try:
                await self._append(batch)
            except Unavailable:
                await self._clock.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT)
                continue
            except Exception:
                _logger.exception("%d pieces of log are refused, and lost", len(batch))
                self._count_lost(batch)
            break
        self._shipped_at = self._clock.monotonic()
        self._done += _sum_of(batch)[0]
        self._tell_stored()

    def _tell_stored(self) -> None:
        while self._waiting and self._waiting[0].target <= self._done:
            self._waiting.popleft().tell(in_time=True)


def _sum_of(pieces: Sequence[Piece]) -> tuple[int, int]:
    """Return how many lines there are in pieces, and how many characters."""
    lines = size = 0
    for _, _, first, last, text, _ in pieces:
        lines += last - first + 1
        size += len(text)
    return lines, size


def _resolve(future: asyncio.Future[bool], yes: bool) -> None:  # noqa: FBT001 - what it is told
    if not future.done():
        future.set_result(yes)
