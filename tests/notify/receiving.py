"""A receiver of webhooks on a real socket, which answers as it is told and keeps what it got."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from tidewheel.server.serving import Certificate

DROP = 0
HANG = -1


class Got(NamedTuple):
    """A request that came."""

    path: str
    headers: dict[str, str]
    body: bytes


class Receiver:
    """Answers 200 unless told otherwise; DROP cuts the connection and HANG says nothing."""

    def __init__(self) -> None:
        self.got: list[Got] = []
        self.answer: Callable[[Got], int] = lambda _: 200
        self.location = ""
        self.came = asyncio.Event()
        self.port = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?x=1"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            got = Got(first.split(" ")[1], headers, body)
            self.got.append(got)
            self.came.set()
            status = self.answer(got)
            if status == HANG:
                await reader.read()
            elif status != DROP:
                where = f"location: {self.location}\r\n" if self.location else ""
                writer.write(f"HTTP/1.1 {status} X\r\n{where}content-length: 0\r\n\r\n".encode())
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def receiving(certificate: Certificate | None = None) -> AsyncIterator[Receiver]:
    """Receive until the end, by HTTPS if there is a certificate."""
    receiver = Receiver()
    tls = None
    if certificate is not None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(certificate.chain, certificate.key)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    async with server:
        yield receiver
