"""What a task writes to stdout and stderr, read by the host as it comes and never faster than it can be kept."""

import asyncio
import os
import select
from typing import Final

from tidewheel.worker.execution import Sink, Stream

_CHUNK: Final = 64 * 1024
RATE_WHEN_FULL: Final = 16 * 1024 * 1024
"""Bytes a second that are read of each stream once its sink has had enough: a task that floods is slowed down."""


class Output:
    """One stream of a task. The pipe is the only buffer."""

    def __init__(self, stream: Stream, *, tail: int = 0) -> None:
        self._loop = asyncio.get_running_loop()
        self._stream = stream
        self._fd, self.write_end = os.pipe()
        os.set_blocking(self._fd, False)
        self.sink: Sink | None = None
        """Who gets it; without one it is thrown away."""
        self._keep = tail
        self.tail = b""
        """The last bytes that were read, as many as were asked for."""
        self._slowed: asyncio.TimerHandle | None = None
        self._loop.add_reader(self._fd, self._read)

    def register(self, poll: "select.poll") -> None:
        """Have a poll tell whether there is anything to read; one look at several streams is cheaper than reading."""
        poll.register(self._fd, select.POLLIN)

    def drain(self) -> None:
        """Read what is in the pipe now."""
        while self._fd >= 0 and self._take():
            pass

    def close(self) -> None:
        """Read no more."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
        if self._slowed is not None:
            self._slowed.cancel()

    def _read(self) -> None:
        got = self._take()
        if got and self.sink is not None and getattr(self.sink, "full", False):
            self._loop.remove_reader(self._fd)
            self._slowed = self._loop.call_later(got / RATE_WHEN_FULL, self._go_on)

    def _go_on(self) -> None:
        self._slowed = None
        if self._fd >= 0:
            self._loop.add_reader(self._fd, self._read)

    def _take(self) -> int:
        try:
            data = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return 0
        if not data:  # nobody can write to it any more
            self.close()
            return 0
        if self._keep:
            self.tail = (self.tail + data)[-self._keep :]
        if self.sink is not None:
            self.sink.output(self._stream, data)
        return len(data)
