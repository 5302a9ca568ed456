"""A body that is taken piece by piece, for what is too large for memory."""

import asyncio
from typing import Final

from starlette.types import Receive

from tidewheel.server.problems import Refused

PIECE_WITHIN: Final = 30.0
"""Seconds for a client to send the next piece."""


class ClientGone(Exception):
    """The client went away before it had sent all."""


class Incoming:
    """The pieces of a body, as they come."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._most = most
        self._size = 0
        self._ended = False

    def __aiter__(self) -> "Incoming":
        return self

    async def __anext__(self) -> bytes:
        if self._ended:
            raise StopAsyncIteration
        try:
            async with asyncio.timeout(PIECE_WITHIN):
                message = await self._receive()
        except TimeoutError:
            raise Refused("too-slow", f"nothing came for {PIECE_WITHIN:g} seconds") from None
        if message["type"] == "http.disconnect":
            raise ClientGone
        piece: bytes = message.get("body", b"")
        self._ended = not message.get("more_body", False)
        self._size += len(piece)
        if self._size > self._most:
            raise Refused("too-large", f"at most {self._most} bytes")
        return piece
