"""Keeps an open page up to date: its changing part is rendered again and again, and sent when it differs."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

import msgspec

from tidewheel.errors import NotFound
from tidewheel.server.endpoint import EVENTS, Answer
from tidewheel.server.problems import Refused
from tidewheel.server.service import Service

KEEP_ALIVE: Final = 15.0


def live_answer(service: Service, every: float, render: Callable[[], Awaitable[str]]) -> Answer:
    """Return the stream of a page. `render` returns its changing part."""
    headers = (("cache-control", "no-store"), ("x-accel-buffering", "no"))
    return Answer(headers=headers, media_type=EVENTS, stream=_renderings(service, every, render))


async def _renderings(
    service: Service, every: float, render: Callable[[], Awaitable[str]]
) -> AsyncGenerator[bytes, None]:
    last, quiet = "", 0.0
    yield b"retry: 2000\n\n"
    while not service.stopping.is_set():
        try:
            now = await render()
        except (NotFound, Refused):
            yield b"event: over\ndata: \n\n"
            return
        if now != last:
            yield b"event: page\ndata: %b\n\n" % msgspec.json.encode(now)
            last, quiet = now, 0.0
        quiet += every
        if quiet >= KEEP_ALIVE:
            yield b": still here\n\n"
            quiet = 0.0
        await service.pause(every)
