"""A line between client and server that breaks when it is told to."""

import asyncio
import contextlib
from typing import Self

from tidewheel.server import Address


class Relay:
    """Passes bytes on; `cut_answers` are the requests whose answer is swallowed, the connection closed with it."""

    def __init__(self, target: Address) -> None:
        self._target = target
        self._server: asyncio.Server | None = None
        self.cut_answers = 0
        self.requests = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        """Cut all connections that there are."""
        for task in self._tasks:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        there, back = await asyncio.open_connection(self._target.host, self._target.port)
        try:
            await asyncio.wait(
                [asyncio.create_task(self._forth(reader, back)), asyncio.create_task(self._back(there, writer))],
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            self._tasks.discard(task)
            for end in (writer, back):
                with contextlib.suppress(OSError):
                    end.close()

    async def _forth(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            self.requests += data.startswith((b"POST", b"GET", b"PUT", b"DELETE"))
            writer.write(data)

    async def _back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            if self.cut_answers:
                self.cut_answers -= 1
                return
            writer.write(data)
