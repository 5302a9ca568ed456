"""A port on which a worker shows its numbers, and whether it is alive and ready: three pages, and nothing else."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from tidewheel.errors import Invalid
from tidewheel.observe import MEDIA_TYPE

HEAD_WITHIN: Final = 5.0
MOST_HEAD: Final = 16 * 1024
MOST_AT_ONCE: Final = 16
"""Whoever comes on top is not answered: this must not get in the way of the beats."""
_PLAIN: Final = "text/plain; charset=utf-8"


class MetricsPort:
    """Answers `GET /metrics`, `/livez` and `/readyz`; `/healthz` is another name for the last."""

    def __init__(self, page: Callable[[], Awaitable[bytes]], ready: Callable[[], bool]) -> None:
        self._page = page
        self._ready = ready
        self._server: asyncio.Server | None = None
        self._open = 0

    async def start(self, host: str, port: int) -> str:
        """Listen, and return where. Raises Invalid."""
        try:
            self._server = await asyncio.start_server(self._serve, host, port, limit=MOST_HEAD)
        except (OSError, UnicodeError) as error:
            raise Invalid("metrics-port", f"{host} port {port} cannot be listened on: {error}") from None
        end = self._server.sockets[0]
        shown = f"[{end.getsockname()[0]}]" if end.family == socket.AF_INET6 else end.getsockname()[0]
        return f"http://{shown}:{end.getsockname()[1]}"

    def close(self) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open <= MOST_AT_ONCE:
                async with asyncio.timeout(HEAD_WITHIN):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(await self._answer(head.split(b"\r\n", 1)[0].decode("latin-1")))
                    await writer.drain()
        except (TimeoutError, OSError, EOFError, asyncio.LimitOverrunError):
            pass  # whoever does not speak plainly is not answered
        finally:
            self._open -= 1
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, line: str) -> bytes:
        method, _, rest = line.partition(" ")
        status, media, body = await self._find(method, rest.partition(" ")[0].partition("?")[0])
        head = (
            f"HTTP/1.1 {status}\r\ncontent-type: {media}\r\ncontent-length: {len(body)}\r\n"
            "x-content-type-options: nosniff\r\nconnection: close\r\n\r\n"
        )
        return head.encode() + (b"" if method == "HEAD" else body)

    async def _find(self, method: str, path: str) -> tuple[str, str, bytes]:
        if method not in ("GET", "HEAD"):
            return "405 Method Not Allowed\r\nallow: GET, HEAD", _PLAIN, b"only GET\n"
        match path:
            case "/metrics":
                return "200 OK", MEDIA_TYPE, await self._page()
            case "/livez":
                return "200 OK", _PLAIN, b"ok\n"
            case "/readyz" | "/healthz":
                ready = self._ready()
                return ("200 OK", _PLAIN, b"ok\n") if ready else ("503 Service Unavailable", _PLAIN, b"not ready\n")
        return "404 Not Found", _PLAIN, b"there are /metrics, /livez and /readyz\n"
