"""What each contestant's program can do. Only the standard library, for rivals load it as well."""

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Protocol

from bench.rivals.programs.marks import URL

NAME: Final = "noop"
PAD: Final = "user0000000@example.com, welcome, first; " * 2
"""Makes the arguments of a job about as long as those of real ones."""

Send = Callable[[Sequence[int]], Awaitable[None]]
"""Submits the jobs with these numbers, together where that can be done, and returns when they are acknowledged."""


class Program(Protocol):
    """One contestant: its tables, its client and its worker."""

    async def prepare(self) -> None:
        """Make what the queue needs in an empty place."""
        ...

    def sending(self) -> AbstractAsyncContextManager[Send]:
        """Open a client."""
        ...

    def work(self) -> None:
        """Be a worker until SIGTERM."""
        ...


class Ready:
    """A contestant whose queue comes into being by itself, and whose client is there from the beginning."""

    def __init__(self, send: Callable[[Sequence[int]], None], work: Callable[[], None]) -> None:
        self._send = send
        self.work = work

    async def prepare(self) -> None:
        """Do nothing."""

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[Send]:
        async def send(numbers: Sequence[int]) -> None:
            self._send(numbers)

        yield send


def url() -> str:
    """Return where the jobs are kept."""
    return os.environ[URL]


def payload(number: int) -> bytes:
    """Return the arguments of a job, for those who take bytes."""
    return json.dumps({"number": number, "pad": PAD}).encode()
