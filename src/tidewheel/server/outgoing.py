"""Answers on their way out, in the form that ASGI has for them."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from starlette.types import Message, Receive

from tidewheel.server.endpoint import Answer, Stream

PIECE: Final = 128 * 1024
"""Bytes that are handed over at a time; the next ones when these are on their way."""
NO_CONTENT: Final = 204
encode: Final = msgspec.json.Encoder().encode


def content_of(body: Any) -> bytes:
    """Return the bytes of a body."""
    return b"" if body is None else body if isinstance(body, bytes) else encode(body)


def pieces_of(content: bytes) -> Iterator[Message]:
    """Return the messages of a body."""
    for start in range(0, len(content), PIECE):
        yield {"type": "http.response.body", "body": content[start : start + PIECE], "more_body": True}
    yield {"type": "http.response.body", "body": b""}


def start_of(answer: Answer, request_id: str, length: int | None) -> Message:
    """Return the head of an answer, with the length of its body if that is known and not yet told."""
    headers = [("x-request-id", request_id), ("x-content-type-options", "nosniff"), *answer.headers]
    told = any(name == "content-length" for name, _ in answer.headers)
    if length is not None and answer.status != NO_CONTENT and not told:
        headers.append(("content-length", str(length)))
    if answer.body is not None or answer.stream is not None:
        headers.append(("content-type", answer.media_type))
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    return {"type": "http.response.start", "status": answer.status, "headers": encoded}


async def until_gone(receive: Receive) -> None:
    """Wait until the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def next_of(stream: Stream, gone: "asyncio.Future[None]") -> bytes | None:
    """Return the next piece of a stream, or None at its end or when the client is gone."""
    piece: asyncio.Future[bytes | None] = asyncio.ensure_future(anext(stream, None))
    try:
        await asyncio.wait((piece, gone), return_when=asyncio.FIRST_COMPLETED)
        return piece.result() if piece.done() and not gone.done() else None
    finally:
        if not piece.done():
            piece.cancel()
            await asyncio.wait([piece])
