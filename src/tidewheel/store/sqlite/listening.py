"""Listeners: their bells, and the watcher that there is while anyone listens."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import apsw

from tidewheel.clock import Clock
from tidewheel.errors import Unavailable
from tidewheel.store.bell import Bell
from tidewheel.store.sqlite.connection import translate
from tidewheel.store.sqlite.watching import Watcher
from tidewheel.store.sqlite.writer import Writer


class Listeners:
    """Rings the bells of this process after its own commits, and after those of others."""

    def __init__(self, path: Path, writer: Writer, clock: Clock) -> None:
        self._path = path
        self._writer = writer
        self._clock = clock
        self._bells: dict[Bell, asyncio.AbstractEventLoop] = {}
        self._watcher: Watcher | None = None
        self._lock = threading.Lock()
        self._healthy = True
        self._closed = False
        writer.on_hint = self._ring

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[Bell]:
        """See `store.base.HintStore.listen`."""
        if self._closed:
            raise Unavailable(f"{self._path} was closed")
        bell = Bell(self._clock)
        self._bells[bell] = asyncio.get_running_loop()
        try:
            await asyncio.to_thread(self._adjust)
            bell.healthy = self._healthy
            yield bell
        finally:
            del self._bells[bell]
            await asyncio.to_thread(self._adjust)

    def close(self) -> None:
        """Stop watching; blocks until that is done."""
        self._closed = True
        self._adjust()
        self._note_health(ails=True)

    def abandon(self) -> list[apsw.Connection]:
        """Forget the watcher in a process that was forked off, and return its connection."""
        watcher, self._watcher, self._closed = self._watcher, None, True
        self._lock = threading.Lock()  # which a thread may have held that is not in this process
        return [] if watcher is None else [watcher.connection]

    def _adjust(self) -> None:
        """Start or stop watching, as there are listeners or not."""
        with self._lock:
            wanted = bool(self._bells) and not self._closed
            if wanted and self._watcher is None:
                try:
                    self._watcher = Watcher(self._path, self._writer.look, self._note_health)
                except apsw.Error as error:
                    raise translate(error, self._path) from error
            elif not wanted and self._watcher is not None:
                self._watcher.close()
                self._watcher = None

    def _ring(self) -> None:
        for bell, loop in list(self._bells.items()):
            _call(loop, bell)

    def _note_health(self, ails: bool) -> None:  # noqa: FBT001 - the watcher's answer
        self._healthy = not ails
        for bell in list(self._bells):
            bell.healthy = self._healthy
        self._ring()


def _call(loop: asyncio.AbstractEventLoop, bell: Bell) -> None:
    try:
        loop.call_soon_threadsafe(bell.ring)
    except RuntimeError:
        return  # the loop is gone, and with it whoever listened
