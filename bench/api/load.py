"""A generator of load that costs far less than what it loads: raw requests over plain sockets, in a process of its own.

`python -m bench.api.load` reads an `Order` as JSON from its standard input and writes a `Done` to its standard output.
"""

import asyncio
import sys
import time
from typing import cast

import msgspec
import uvloop


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What to ask, how often, and over how many connections."""

    host: str
    port: int
    connections: int
    requests: int
    method: str
    paths: list[str]
    """Asked for in turn."""
    body: str = ""
    tenant: str = "default"
    status: int
    """What every answer must be."""


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """How it went."""

    seconds: float
    cpu: float
    """Of the generator itself."""
    latencies: list[float]
    """Seconds of each request, in no order."""


class Asking(asyncio.Protocol):
    """One connection: the next request goes out when the last was answered."""

    def __init__(self, run: "Run") -> None:
        self._run = run
        self._got = b""
        self._need = 0
        self._sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._got += data
        if not self._need:
            end = self._got.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self._got[:end].lower()
            if not head.startswith(self._run.expected):
                self._run.fail(self._got)
                return
            self._need = end + 4 + int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(self._got) >= self._need:
            self._run.latencies.append(time.perf_counter() - self._sent)
            self._got, self._need = b"", 0
            self._ask()

    def connection_lost(self, _: Exception | None) -> None:
        if self._sent:
            self._run.fail(b"the connection was lost")

    def _ask(self) -> None:
        request = self._run.next()
        if request is None:
            self._sent = 0.0
            self._transport.close()
            return
        self._sent = time.perf_counter()
        self._transport.write(request)


class Run:
    """All connections together."""

    def __init__(self, order: Order) -> None:
        self.expected = f"http/1.1 {order.status} ".encode()
        self.latencies: list[float] = []
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        body = order.body.encode()
        kind = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n" if body else ""
        self._requests = [
            f"{order.method} {path} HTTP/1.1\r\nhost: localhost\r\ntide-tenant: {order.tenant}\r\n{kind}\r\n".encode()
            + body
            for path in order.paths
        ]
        self._left = self._all = order.requests

    def next(self) -> bytes | None:
        if len(self.latencies) >= self._all and not self.over.done():
            self.over.set_result(None)
        if not self._left:
            return None
        self._left -= 1
        return self._requests[self._left % len(self._requests)]

    def fail(self, answer: bytes) -> None:
        if not self.over.done():
            self.over.set_exception(RuntimeError(answer[:1000].decode(errors="replace")))


async def load(order: Order) -> Done:
    """Ask until all was answered."""
    run, loop = Run(order), asyncio.get_running_loop()
    begun, cpu = time.perf_counter(), time.process_time()
    for _ in range(order.connections):
        await loop.create_connection(lambda: Asking(run), order.host, order.port)
    await run.over
    return Done(seconds=time.perf_counter() - begun, cpu=time.process_time() - cpu, latencies=run.latencies)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        done = runner.run(load(msgspec.json.decode(sys.stdin.buffer.read(), type=Order)))
    sys.stdout.buffer.write(msgspec.json.encode(done))
