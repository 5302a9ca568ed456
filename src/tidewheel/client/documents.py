"""What only a client sees: events and the numbers of queues."""

from datetime import datetime
from typing import Any, Literal

import msgspec

from tidewheel.model.states import State


class Event(msgspec.Struct, frozen=True):
    """Something that happened to a job."""

    name: Literal["state", "log", "end"]
    data: dict[str, Any]
    """`state`: the job without arguments and result; `log`: a line; `end`: the last state."""
    id: str
    """Where to go on from, for one who was interrupted."""


class Queue(msgspec.Struct, frozen=True):
    """How many jobs of a queue are in which state."""

    queue: str
    jobs: dict[State, int]
    kinds: dict[str, dict[State, int]]


class QueueList(msgspec.Struct, frozen=True):
    """The queues with their numbers."""

    queues: list[Queue]
    as_of: datetime | None
