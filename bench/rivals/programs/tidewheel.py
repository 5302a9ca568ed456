"""Tidewheel as a user has it: the SDK submits, and one `tide worker` has two runners and a keeper."""

import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from bench.rivals.programs.marks import MARKS, URL, began
from bench.rivals.programs.program import NAME, PAD, Send, url
from tidewheel import App
from tidewheel.sdk.task import Task
from tidewheel.wiring import database_of

app = App(url())


@app.task(name=NAME)
async def noop(number: int, pad: str) -> None:  # noqa: ARG001 - a row like real ones
    began(number)


@app.task(name=f"{NAME}.plain")
def plain(number: int, pad: str) -> None:  # noqa: ARG001
    began(number)


class Tidewheel:
    """One of the two tasks, and a worker for it."""

    def __init__(self, task: Task[..., Any], shape: Sequence[str]) -> None:
        self._task = task
        self._shape = shape

    async def prepare(self) -> None:
        await database_of(url()).migrate()

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[Send]:
        async def send(numbers: Sequence[int]) -> None:
            await app.aenqueue_many([self._task.s(number, PAD) for number in numbers])

        async with app:
            yield send

    def work(self) -> None:
        blobs = f"file://{os.environ[MARKS]}-blobs"
        seen = ("--env", URL, "--env", MARKS)  # a plain function sees no other variables
        words = (
            "worker",
            "--app",
            "bench.rivals.programs.tidewheel:app",
            "--database",
            url(),
            "--blobs",
            blobs,
            "--keeper",
            *seen,
        )
        os.execv(sys.executable, [sys.executable, "-m", "tidewheel", *words, *self._shape])


program = Tidewheel(noop, ("--inline", "2", "--slots", "0"))
