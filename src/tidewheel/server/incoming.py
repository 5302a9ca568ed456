"""A body that is taken piece by piece, for what is too large for memory."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import BinaryIO, Final

from starlette.types import Receive

from tidewheel.server.problems import Refused

PIECE_WITHIN: Final = 30.0
"""Seconds for a client to send the next piece."""
LEAST_RATE: Final = 8 * 1024
"""Bytes a second that a client must send in the long run, for while it does it takes one of few places."""


class ClientGone(Exception):
    """The client went away before it had sent all."""


class Incoming:
    """The pieces of a body, as they come."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._most = most
        self._size = 0
        self._ended = False
        self._began: float | None = None

    def __aiter__(self) -> "Incoming":
        return self

    async def __anext__(self) -> bytes:
        if self._ended:
            raise StopAsyncIteration
        now = asyncio.get_running_loop().time()
        self._began = now if self._began is None else self._began
        latest = min(now, self._began + self._size / LEAST_RATE) + PIECE_WITHIN
        try:
            async with asyncio.timeout_at(latest):
                message = await self._receive()
        except TimeoutError:
            why = f"nothing came for {PIECE_WITHIN:g} seconds, or less than {LEAST_RATE} bytes a second"
            raise Refused("too-slow", why) from None
        if message["type"] == "http.disconnect":
            raise ClientGone
        piece: bytes = message.get("body", b"")
        self._ended = not message.get("more_body", False)
        self._size += len(piece)
        if self._size > self._most:
            raise Refused("too-large", f"at most {self._most} bytes")
        return piece


async def receive(pieces: AsyncIterator[bytes], file: BinaryIO, size: int) -> str:
    """Write a body of just that size to a file, and return its SHA-256."""
    hasher, came = hashlib.sha256(), 0
    async for piece in pieces:
        came += len(piece)
        if came > size:
            raise Refused("wrong-content", f"more than the {size} bytes came that were said")
        hasher.update(piece)
        await asyncio.to_thread(file.write, piece)
    if came != size:
        raise Refused("wrong-content", f"{came} bytes came, and {size} were said")
    return hasher.hexdigest()
