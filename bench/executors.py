"""How many runs a second one host gets through: `python -m bench.executors [--jobs 10000] [--slots 4]`."""

import argparse
import asyncio
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Final
from uuid import uuid4

import uvloop

from tidewheel.clock import SystemClock
from tidewheel.tasks.definition import Isolation, TaskDefinition, TaskOptions
from tidewheel.tasks.registry import Registry
from tidewheel.worker.execution import End, Executor, Order, Stream
from tidewheel.worker.executors.command import CommandExecutor
from tidewheel.worker.executors.launching import LauncherOptions
from tidewheel.worker.executors.process import ProcessExecutor

ISOLATIONS: Final[tuple[Isolation, ...]] = ("standard", "strict", "none")
STRICT_SHARE: Final = 10
"""Strict commands each get namespaces of their own, and are measured on so many times fewer jobs."""


class App:
    def __init__(self) -> None:
        self.registry = Registry()
        self.registry.add(TaskDefinition(kind="nothing", function=lambda: None, mode="process", options=TaskOptions()))


app = App()


class Deaf:
    def output(self, stream: Stream, data: bytes) -> None: ...
    def log(self, level: str, text: str) -> None: ...
    def progress(self, fraction: float, message: str) -> None: ...
    def checkpoint(self, data: str) -> None: ...


async def rate(executor: Executor, order: Order, jobs: int, slots: int) -> float:
    """Run the same order again and again in all slots, and return how many ended in a second."""
    left = jobs

    async def slot() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            execution = await executor.start(order, Deaf())
            ended = await execution.wait()
            execution.close()
            assert ended.end is End.RETURNED, ended

    began = time.perf_counter()
    await asyncio.gather(*(slot() for _ in range(slots)))
    return jobs / (time.perf_counter() - began)


async def measure(jobs: int, slots: int) -> dict[str, float]:
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as directory:
        options = LauncherOptions(app="bench.executors:app")
        process = ProcessExecutor(options, clock=SystemClock(), directory=Path(directory), slots=slots)
        commands = CommandExecutor(options, clock=SystemClock(), directory=Path(directory), slots=slots, least="none")
        await process.open()
        await commands.open()
        for isolation in ISOLATIONS:
            order = Order(job_id=uuid4(), token=1, epoch=1, attempt=1, kind="nothing", args="{}", isolation=isolation)
            figures[f"process_{isolation}_per_s"] = round(await rate(process, order, jobs, slots))
            order = Order(
                job_id=uuid4(),
                token=1,
                epoch=1,
                attempt=1,
                kind="command",
                args='{"argv": ["/bin/true"]}',
                isolation=isolation,
            )
            count = jobs // 10 // (STRICT_SHARE if isolation == "strict" else 1) or 1
            figures[f"command_{isolation}_per_s"] = round(await rate(commands, order, count, slots))
        await commands.close()
        await process.close()
    return figures | {"jobs": jobs, "slots": slots, "cores": os.cpu_count() or 0, "load": os.getloadavg()[0]}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.executors", description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--slots", type=int, default=4)
    given = parser.parse_args()
    print(json.dumps(uvloop.run(measure(given.jobs, given.slots)), indent=2))


if __name__ == "__main__":
    main()
