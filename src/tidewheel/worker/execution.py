"""What the host and its executors say to one another about one run."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal, Protocol
from uuid import UUID

import msgspec

from tidewheel.errors import Damaged, Unavailable
from tidewheel.model.trace import Trace
from tidewheel.tasks.definition import Isolation
from tidewheel.tasks.ending import End, Ended
from tidewheel.tasks.registry import CatalogueEntry

__all__ = [
    "AGAIN_AFTER",
    "Away",
    "End",
    "Ended",
    "Execution",
    "Executor",
    "HostTask",
    "Order",
    "Sink",
    "Stream",
    "fetching",
]

Stream = Literal["stdout", "stderr"]

AGAIN_AFTER: Final = timedelta(seconds=5)
"""When a run that could not begin is tried again."""


class Away(Exception):
    """What a run needs cannot be fetched, since store or blobs are away. It did not begin, which is not its fault."""


@contextmanager
def fetching() -> Iterator[None]:
    """Tell apart what cannot be fetched now and what cannot be fetched at all."""
    try:
        yield
    except Damaged:
        raise
    except Unavailable as error:
        raise Away(str(error)) from error


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A run, as an executor gets it."""

    job_id: UUID
    token: int
    epoch: int
    attempt: int
    """1 for the first try."""
    kind: str
    args: str
    """JSON text."""
    saved: str | None = None
    """JSON text of the last checkpoint of an earlier attempt."""
    isolation: Isolation = "standard"
    memory: int | None = None
    """How many bytes the whole tree of processes may use; None for no bound."""
    trace: Trace | None = None
    """Where it is in a trace, for what it calls."""


class Sink(Protocol):
    """Where an execution's words go while it runs. None of these may block or raise.

    A sink that has had enough may say so by an attribute `full`: as long as that is true it is given no more than some
    megabytes a second, and the task waits.
    """

    def output(self, stream: Stream, data: bytes) -> None:
        """Take raw output, in chunks as they come."""

    def log(self, level: str, text: str) -> None:
        """Take one line that the task logged."""

    def progress(self, fraction: float, message: str) -> None:
        """Take how far it has come."""

    def checkpoint(self, data: str) -> None:
        """Take what the next attempt is to find."""


class Execution(Protocol):
    """One run under way."""

    async def wait(self) -> Ended:
        """Return how it ended, once it and every process that it left behind are gone."""

    def stop(self, end: End, grace: float) -> None:
        """Ask it to end (TIMEOUT or STOPPED), and kill all of it if it has not within `grace` seconds."""

    def pause(self) -> None:
        """Stop all of its processes where they are."""

    def resume(self) -> None:
        """Let them go on."""

    def close(self) -> None:
        """Remove its scratch directory; after `wait`."""


class Executor(Protocol):
    """Starts runs of some kinds."""

    async def start(self, order: Order, sink: Sink) -> Execution:
        """Begin a run. What cannot be started ends at once, as FATAL with the reason; Away for what can be later."""

    async def close(self) -> None:
        """End everything at once."""


@dataclass(frozen=True)
class HostTask:
    """A kind that a host runs, and how."""

    executor: Executor
    entry: CatalogueEntry
