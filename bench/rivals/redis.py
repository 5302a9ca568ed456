"""A Redis server of our own: on loopback, every change in its log, which is synced each second."""

import asyncio
import shutil
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from bench.rivals.environment import NoRival
from harness.servers import free_ports

SETTINGS: Final = {"appendonly": "yes", "appendfsync": "everysec", "save": ""}
PATIENCE: Final = 10.0


@asynccontextmanager
async def redis() -> AsyncIterator[str]:
    """Start a server, and give its URL; it keeps nothing beyond the context."""
    if shutil.which("redis-server") is None:
        raise NoRival("redis-server is not installed")
    [port] = free_ports(1)
    with tempfile.TemporaryDirectory(prefix="tide-bench-redis-") as folder:
        where = {"port": str(port), "bind": "127.0.0.1", "dir": folder}
        words = [part for name, value in {**where, **SETTINGS}.items() for part in (f"--{name}", value)]
        server = subprocess.Popen(
            ["redis-server", *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
        )
        try:
            await _answers(server, port)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.kill()  # nothing in it is wanted any more
            server.wait()


async def _answers(server: "subprocess.Popen[bytes]", port: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while server.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            await asyncio.sleep(0.01)
    raise NoRival(f"redis-server ended with {server.returncode}")
