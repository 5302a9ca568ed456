"""An object on its way out: the place pushes pieces from a thread, whoever wants them pulls."""

import asyncio
import contextlib
from concurrent.futures import CancelledError
from typing import Final

from tidewheel.blobs.backend import Backend

PIECE: Final = 256 * 1024


class _Closed(Exception):
    """Nobody wants more."""


class Pull:
    """The pieces of an object. No more than a chunk is read ahead, however slow the reader is."""

    def __init__(self, backend: Backend, key: str) -> None:
        self._backend = backend
        self._key = key
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=1)
        self._loop = asyncio.get_running_loop()
        self._pushing: asyncio.Task[None] | None = None
        self._rest = b""
        self._closed = False

    def __aiter__(self) -> "Pull":
        return self

    async def __anext__(self) -> bytes:
        if self._pushing is None:
            self._pushing = asyncio.create_task(self._push())
        if not self._rest:
            chunk = await self._pieces.get()
            if chunk is None:
                await self._pushing  # raises what went wrong
                raise StopAsyncIteration
            self._rest = chunk
        piece, self._rest = self._rest[:PIECE], self._rest[PIECE:]
        return piece

    async def aclose(self) -> None:
        """End it; the thread that reads is let go."""
        self._closed = True
        if self._pushing is None:
            return
        while not self._pushing.done():
            with contextlib.suppress(asyncio.QueueEmpty):
                self._pieces.get_nowait()
            await asyncio.wait([self._pushing], timeout=0.01)
        with contextlib.suppress(BaseException):
            self._pushing.result()

    async def _push(self) -> None:
        try:
            await self._backend.get(self._key, self._take)
        except _Closed:
            return
        finally:
            if not self._closed:
                await self._pieces.put(None)

    def _take(self, chunk: bytes) -> None:
        if self._closed:
            raise _Closed
        try:
            asyncio.run_coroutine_threadsafe(self._pieces.put(chunk), self._loop).result()
        except (CancelledError, RuntimeError):  # the loop is gone
            raise _Closed from None
