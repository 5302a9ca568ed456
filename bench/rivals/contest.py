"""One run of one contestant: a full queue is drained by fresh workers, which then get single jobs at a steady rate."""

import asyncio
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from bench.rivals.contestants import Contestant
from bench.rivals.environment import ROOT
from bench.rivals.programs.marks import MARKS, URL, Mark, count, read
from bench.rivals.programs.run import WARM
from bench.rivals.sizes import Sizes

PATIENCE: Final = 60.0
"""Seconds for a step: to fill, to drain, to submit steadily."""
END_PATIENCE: Final = 2.0
LOOK_EVERY: Final = 0.05
LEAST: Final = 20
"""Jobs of the smallest drain."""
_MEMORY: Final = Path("/dev/shm")
"""Where the marks lie if it is there: no disk is in their way, and a sandboxed function may write there."""
_NOT_PASSED_ON: Final = "PYTHONDONTWRITEBYTECODE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What came out of one run."""

    rate: float
    """Jobs a second."""
    processes: int
    """How many processes began bodies."""
    waits: list[float]
    """Seconds from each acknowledgement to the body."""
    calls: list[float]
    """Seconds from each call to its acknowledgement."""


class Runner:
    """Starts the program of a contestant at a place."""

    def __init__(self, contestant: Contestant, python: Path, url: str, folder: Path) -> None:
        self._contestant = contestant
        self._words = [str(python), "-m", "bench.rivals.programs.run", contestant.program]
        self._log = folder / "log"
        self.marks = folder / "marks"
        self.marks.mkdir()
        self._crew: list[subprocess.Popen[bytes]] = []
        inherited = {name: value for name, value in os.environ.items() if name != _NOT_PASSED_ON}
        self._options: dict[str, Any] = {
            "cwd": ROOT,
            "env": {**inherited, URL: url, MARKS: str(self.marks)},
            "stdin": subprocess.DEVNULL,
            "start_new_session": True,  # Ctrl-C is for us; we end it
        }

    async def verb(self, *words: object) -> bytes:
        """Run a verb to its end, and return what it printed."""
        child = await asyncio.create_subprocess_exec(
            *self._words, *map(str, words), **self._options, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            out, err = await asyncio.wait_for(child.communicate(), PATIENCE)
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
        if child.returncode:
            raise RuntimeError(f"{words[0]} ended with {child.returncode}: {err.decode(errors='replace')[-2000:]}")
        return out

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Let workers work for as long as the context lasts."""
        with self._log.open("wb") as out:
            self._crew = [
                subprocess.Popen([*self._words, "work"], **self._options, stdout=out, stderr=out)
                for _ in range(self._contestant.copies)
            ]
        try:
            yield
        finally:
            await asyncio.to_thread(_end, self._crew)

    async def begun(self, jobs: int) -> None:
        """Return when so many bodies have begun."""
        deadline = time.monotonic() + PATIENCE
        while (seen := count(self.marks)) < jobs:
            if any(worker.poll() is not None for worker in self._crew):
                raise RuntimeError(f"a worker ended; it said: {self._said()}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"{seen} of {jobs} jobs began within {PATIENCE:.0f} s; said: {self._said()}")
            await asyncio.sleep(LOOK_EVERY)

    def _said(self) -> str:
        return self._log.read_text(errors="replace")[-2000:]


async def run_once(contestant: Contestant, python: Path, url: str, sizes: Sizes) -> Run:
    """Fill an empty place, and measure."""
    jobs = max(LEAST, round(contestant.pace * sizes.drain_seconds))
    singles = round(sizes.start_rate * sizes.start_seconds)
    with tempfile.TemporaryDirectory(prefix="tide-bench-rivals-", dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        runner = Runner(contestant, python, url, Path(folder))
        await runner.verb("fill", jobs)
        async with runner.working():
            await runner.begun(jobs)
            answered = json.loads(await runner.verb("steady", jobs, singles, sizes.start_rate))
            await runner.begun(jobs + WARM + singles)
        marks = read(runner.marks)
    began = {mark.number: mark.at for mark in marks}
    if len(began) != jobs + WARM + singles:
        raise RuntimeError(f"{len(began)} different jobs ran, not {jobs + WARM + singles}")
    return Run(
        rate=rate_of([mark for mark in marks if mark.number < jobs]),
        processes=len({mark.process for mark in marks}),
        # A body may begin before the acknowledgement has arrived: then nobody waited.
        waits=[max(0.0, began[number] - at) for number, _, at in answered],
        calls=[at - called for _, called, at in answered],
    )


def rate_of(marks: Sequence[Mark]) -> float:
    """Return the bodies a second once every process works, leaving out the first tenth, in which they warm up."""
    firsts = {mark.process: place for place, mark in reversed(list(enumerate(marks)))}
    start = max(len(marks) // 10, min(max(firsts.values()), len(marks) // 2))
    return (len(marks) - 1 - start) / (marks[-1].at - marks[start].at)


def _end(crew: Sequence["subprocess.Popen[bytes]"]) -> None:
    """Ask the workers to stop; kill them and all below them if they do not."""
    families = [member for worker in crew for member in _family(worker.pid)]
    for worker in crew:
        worker.send_signal(signal.SIGTERM)
    _, alive = psutil.wait_procs(families, timeout=END_PATIENCE)
    for member in alive:
        with suppress(psutil.NoSuchProcess):
            member.kill()
    for worker in crew:
        worker.wait()


def _family(pid: int) -> list[psutil.Process]:
    try:
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
