"""A real `tide server` as a child process, and load on it from another."""

import asyncio
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from bench.api.load import Done, Order
from bench.grounds.ground import Place
from bench.measure import Figures, quantile, say, spread
from bench.worker.process import PATIENCE, ROOT, RunningWorker, Shape

LOAD_WITHIN: Final = 300.0


@dataclass(frozen=True)
class Target:
    """A server, and where it is."""

    process: RunningWorker
    port: int

    async def load(self, **order: object) -> tuple[Done, float]:
        """Let another process ask; return how that went and the seconds of CPU that the server took."""
        told = msgspec.convert({"host": "127.0.0.1", "port": self.port, **order}, Order)
        before = self.process.cpu()
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bench.api.load"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
        )
        async with asyncio.timeout(LOAD_WITHIN):
            out, _ = await child.communicate(msgspec.json.encode(told))
        if child.returncode:
            raise RuntimeError(f"the load failed; the server said:\n{self.process.said()}")
        return msgspec.json.decode(out, type=Done), self.process.cpu() - before


@asynccontextmanager
async def serving(place: Place, workers: int = 1) -> AsyncIterator[Target]:
    """Start a server, and give it when it answers."""
    with tempfile.TemporaryDirectory(prefix="tide-bench-api-") as folder:
        log = Path(folder) / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tidewheel.cli.main", "server", "--port", "0", "--no-keeper"),
                    *("--workers", str(workers), "--database", place.url, "--blobs", (Path(folder) / "blobs").as_uri()),
                ],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,  # Ctrl-C is for us; we end it
            )
        server = RunningWorker(process, log, Shape())
        try:
            yield Target(server, await _port(server))
        finally:
            await server.end()


async def _port(server: RunningWorker) -> int:
    deadline = time.monotonic() + PATIENCE
    while (found := re.search(r"answers at http://127\.0\.0\.1:([0-9]+)", server.said())) is None:
        server.check()
        if time.monotonic() > deadline:
            raise RuntimeError(f"no server after {PATIENCE:g} s:\n{server.said()}")
        await asyncio.sleep(0.05)
    return int(found[1])


def figures_of(name: str, rounds: Sequence[tuple[Done, float]], each: int = 1) -> Figures:
    """Return the rate, the CPU of the server and of the load, and latencies of some rounds."""
    rates = [each * len(done.latencies) / done.seconds for done, _ in rounds]
    latencies = [latency for done, _ in rounds for latency in done.latencies]
    things = each * len(latencies)
    figures: Figures = {
        f"{name}_per_s": round(statistics.median(rates)),
        f"{name}_per_s_spread": spread(rates),
        f"{name}_p50_ms": round(1e3 * quantile(latencies, 0.5), 2),
        f"{name}_p99_ms": round(1e3 * quantile(latencies, 0.99), 2),
        f"{name}_cpu_us": round(1e6 * sum(cpu for _, cpu in rounds) / things, 1),
        f"{name}_load_cpu_us": round(1e6 * sum(done.cpu for done, _ in rounds) / things, 1),
    }
    say(f"{name}: {figures}")
    return figures
