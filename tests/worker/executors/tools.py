"""What the tests of the executors share: a sink that remembers, orders, and a look at the machine's processes."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import msgspec

from tidewheel.clock import SystemClock
from tidewheel.tasks.definition import Isolation
from tidewheel.worker.execution import Ended, Execution, Executor, Order, Stream
from tidewheel.worker.executors.command import Artifacts, CommandExecutor
from tidewheel.worker.executors.launching import LauncherOptions
from tidewheel.worker.executors.process import ProcessExecutor
from tidewheel.worker.sandbox.layers import Grounds

APP = "tests.worker.executors.sample_app:app"
PATIENCE = 60.0


class Remembering:
    """A sink that keeps what it gets, up to some bytes, and says when it has had enough."""

    def __init__(self, most: int = 1 << 20) -> None:
        self._most = most
        self.said: dict[Stream, bytes] = {"stdout": b"", "stderr": b""}
        self.bytes_seen = 0
        self.largest = 0
        self.logs: list[tuple[str, str]] = []
        self.checkpoints: list[str] = []
        self.progressed: list[tuple[float, str]] = []
        self.up = asyncio.Event()
        """Set at the first progress or output: the task is running."""

    @property
    def full(self) -> bool:
        return self.bytes_seen >= self._most

    def output(self, stream: Stream, data: bytes) -> None:
        self.bytes_seen += len(data)
        self.largest = max(self.largest, len(data))
        if not self.full:
            self.said[stream] += data
        self.up.set()

    def log(self, level: str, text: str) -> None:
        self.logs.append((level, text))

    def progress(self, fraction: float, message: str) -> None:
        self.progressed.append((fraction, message))
        self.up.set()

    def checkpoint(self, data: str) -> None:
        self.checkpoints.append(data)


JOB = UUID("11111111-2222-3333-4444-555555555555")


def order(kind: str, args: dict[str, Any] | None = None, **more: Any) -> Order:
    fields = {"job_id": JOB, "token": 5, "epoch": 2, "attempt": 3, **more}
    return Order(kind=kind, args=json.dumps(args or {}), **fields)


def command(*argv: str, **more: Any) -> Order:
    fields = {name: more.pop(name) for name in list(more) if name in ("isolation", "memory")}
    return order("command", {"argv": list(argv), **more}, **fields)


async def ended(execution: Execution) -> Ended:
    async with asyncio.timeout(PATIENCE):
        return await execution.wait()


async def outcome(executor: Executor, given: Order, sink: Remembering | None = None) -> Ended:
    """Run something to its end, and clean up."""
    execution = await executor.start(given, sink or Remembering())
    try:
        return await ended(execution)
    finally:
        execution.close()


async def begun(executor: Executor, given: Order) -> tuple[Execution, Remembering]:
    """Start something that stays, and wait until it runs."""
    sink = Remembering()
    execution = await executor.start(given, sink)
    async with asyncio.timeout(PATIENCE):
        await sink.up.wait()
    return execution, sink


def result(of: Ended) -> Any:
    assert of.result is not None, of
    return msgspec.json.decode(of.result)


@asynccontextmanager
async def process_executor(
    directory: Path, slots: int = 2, grounds: Grounds | None = None
) -> AsyncIterator[ProcessExecutor]:
    options = LauncherOptions(app=APP, grounds=grounds or Grounds())
    executor = ProcessExecutor(options, clock=SystemClock(), directory=directory, slots=slots, warm=1)
    await executor.open()
    try:
        yield executor
    finally:
        await executor.close()


@asynccontextmanager
async def command_executor(
    directory: Path,
    grounds: Grounds | None = None,
    artifacts: Artifacts | None = None,
    least: Isolation = "none",
) -> AsyncIterator[CommandExecutor]:
    options = LauncherOptions(grounds=grounds or Grounds())
    executor = CommandExecutor(
        options, clock=SystemClock(), directory=directory, slots=4, least=least, artifacts=artifacts
    )
    await executor.open()
    try:
        yield executor
    finally:
        await executor.close()


def processes_with(mark: str) -> list[int]:
    """Return the processes that have a mark among their arguments."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and int(path.name) != os.getpid():
            try:
                if mark.encode() in (path / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(path.name))
            except OSError:
                continue
    return found


async def until(true: Callable[[], object], what: str) -> None:
    """Poll for what other processes do."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not true():
                await SystemClock().sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"it never came true that {what}") from None


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def new_mark() -> str:
    return f"mark-{uuid4().hex}"
