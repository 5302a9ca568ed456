"""Brings lines of many runs to the store, in batches, without ever holding up a run."""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final
from uuid import UUID

import msgspec

from tidewheel.clock import Clock
from tidewheel.errors import Unavailable
from tidewheel.model.log import LogLine

_logger = logging.getLogger(__name__)

Run = tuple[UUID, int]

FLUSH_WITHIN: Final = timedelta(seconds=5)
_FIRST_WAIT: Final = 0.1
_LONGEST_WAIT: Final = 5.0


class ShipperSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How lines are gathered."""

    wait: timedelta = timedelta(milliseconds=100)
    """How long the first line of a batch waits for others."""
    batch_lines: int = 2000
    batch_bytes: int = 1024 * 1024
    buffer_lines: int = 11_000
    buffer_bytes: int = 16 * 1024 * 1024
    """What is held at most while the store does not keep up, or cannot be reached; more is dropped and counted."""


class _Dropped:
    """Lines of a run that found no room."""

    def __init__(self, first: LogLine) -> None:
        self.first = first
        self.lines = 0

    def mark(self) -> LogLine:
        """Return the line that stands for them; it takes the number of the first."""
        text = f"[… {self.lines} lines lost: the log did not keep up, or was refused …]"
        return msgspec.structs.replace(self.first, stream="system", level=None, text=text)


class LogShipper:
    """Collects lines and appends them to the store, in the order in which they came.

    `append` must bear to be given the same lines again: after an error with unknown outcome they are repeated. `put`
    may be called by any thread; all else belongs to the loop that the shipper was made in.
    """

    def __init__(
        self,
        append: Callable[[Sequence[LogLine]], Awaitable[None]],
        clock: Clock,
        settings: ShipperSettings | None = None,
    ) -> None:
        self._append = append
        self._clock = clock
        self._settings = settings or ShipperSettings()
        self._lock = threading.Lock()
        self._buffer: deque[LogLine] = deque()
        self._bytes = 0
        self._dropped: dict[Run, _Dropped] = {}
        self._taken = 0
        self._done = 0
        self.lost = 0
        """Lines that found no room, or were refused."""
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._loop = asyncio.get_running_loop()
        self._some = asyncio.Event()
        self._urgent = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name="log shipper")

    @property
    def behind(self) -> bool:
        """Whether half of the buffer is used, so that whoever can read more slowly should."""
        return 2 * len(self._buffer) > self._settings.buffer_lines or 2 * self._bytes > self._settings.buffer_bytes

    def put(self, lines: Sequence[LogLine], size: int) -> None:
        """Take lines of one run, which have so many bytes of text; what finds no room is dropped and counted."""
        if not lines:
            return
        with self._lock:
            before = len(self._buffer)
            room = self._room(lines, size)
            if self._dropped and room:
                self._say_dropped((lines[0].job_id, lines[0].token))
            self._buffer.extend(lines if room == len(lines) else lines[:room])
            self._bytes += size if room == len(lines) else _size(lines[:room])
            self._taken += room
            if room < len(lines):
                self._drop(lines[room:])
            many = before < self._settings.batch_lines <= len(self._buffer)
        if before == 0 or many:
            with suppress(RuntimeError):  # the loop is closed, and with it the shipper
                self._loop.call_soon_threadsafe(self._wake, many)

    def _room(self, lines: Sequence[LogLine], size: int) -> int:
        """Return how many of these lines are taken: all, or as many as fit."""
        if self._bytes + size > self._settings.buffer_bytes:
            return 0
        return max(0, min(len(lines), self._settings.buffer_lines - len(self._buffer)))

    def _drop(self, lines: Sequence[LogLine]) -> None:
        self.lost += len(lines)
        run = (lines[0].job_id, lines[0].token)
        self._dropped.setdefault(run, _Dropped(lines[0])).lines += len(lines)

    def _say_dropped(self, run: Run) -> None:
        if dropped := self._dropped.pop(run, None):
            mark = dropped.mark()
            self._buffer.append(mark)
            self._bytes += len(mark.text)
            self._taken += 1

    def _wake(self, many: bool) -> None:  # noqa: FBT001 - called by the loop
        self._some.set()
        if many:
            self._urgent.set()

    async def flush(self, job_id: UUID, token: int, within: timedelta = FLUSH_WITHIN) -> bool:
        """Return once all lines of a run are stored (or dropped), and whether that was so within the time."""
        with self._lock:
            self._say_dropped((job_id, token))
        return await self._reach(self._taken, within)

    async def close(self, within: timedelta = FLUSH_WITHIN) -> int:
        """Store what there is, within that time, end, and return how many lines were lost."""
        with self._lock:
            for run in list(self._dropped):
                self._say_dropped(run)
        await self._reach(self._taken, within)
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        return self._taken - self._done

    async def _reach(self, target: int, within: timedelta) -> bool:
        if self._done >= target:
            return True
        self._wake(many=True)
        reached: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((target, reached))
        too_late = asyncio.ensure_future(self._clock.sleep(within.total_seconds()))
        try:
            await asyncio.wait((reached, too_late), return_when=asyncio.FIRST_COMPLETED)
        finally:
            too_late.cancel()
            reached.cancel()
        return self._done >= target

    async def _run(self) -> None:
        while True:
            await self._some.wait()
            await self._gather()
            batch = self._next_batch()
            if batch:
                await self._ship(batch)

    async def _gather(self) -> None:
        """Give the first line's companions time to come, unless there are enough or someone is in a hurry."""
        if len(self._buffer) >= self._settings.batch_lines or self._waiting:
            return
        self._urgent.clear()
        enough = asyncio.ensure_future(self._urgent.wait())
        time_is_up = asyncio.ensure_future(self._clock.sleep(self._settings.wait.total_seconds()))
        try:
            await asyncio.wait((enough, time_is_up), return_when=asyncio.FIRST_COMPLETED)
        finally:
            enough.cancel()
            time_is_up.cancel()

    def _next_batch(self) -> list[LogLine]:
        batch: list[LogLine] = []
        size = 0
        with self._lock:
            while self._buffer and len(batch) < self._settings.batch_lines and size < self._settings.batch_bytes:
                batch.append(self._buffer.popleft())
                size += len(batch[-1].text)
            self._bytes -= size
            if not self._buffer:
                self._bytes = 0
                self._some.clear()
        return batch

    def _count_lost(self, batch: list[LogLine]) -> None:
        """Let a line stand for those that are lost, unless all of them are such lines already."""
        with self._lock:
            for line in batch:
                if line.stream != "system":
                    self._drop([line])
                    self._some.set()
            for run in {(line.job_id, line.token) for line in batch}:
                self._say_dropped(run)

    async def _ship(self, batch: list[LogLine]) -> None:
        wait = _FIRST_WAIT
        while True:
            try:
                await self._append(batch)
            except Unavailable:
                await self._clock.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT)
                continue
            except Exception:
                _logger.exception("%d lines of log are refused, and lost", len(batch))
                self._count_lost(batch)
            break
        self._done += len(batch)
        for target, reached in self._waiting:
            if target <= self._done and not reached.done():
                reached.set_result(None)
        self._waiting = [waiting for waiting in self._waiting if not waiting[1].done()]


def _size(lines: Sequence[LogLine]) -> int:
    return sum(len(line.text) for line in lines)
