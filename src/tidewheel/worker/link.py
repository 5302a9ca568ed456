"""The word between the supervisor and a child: messages as lines of JSON over a socket pair that only they hold."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Final
from uuid import UUID

import msgspec

from tidewheel.model.resources import Offer
from tidewheel.model.retention import Upkeep
from tidewheel.observe import Numbers
from tidewheel.observe.own_log import LogSetup
from tidewheel.tasks.definition import Isolation
from tidewheel.tasks.registry import CatalogueEntry

MAX_MESSAGE: Final = 16 * 1024 * 1024


class ServerSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What a server is told besides: where it listens, and whom it lets in."""

    host: str
    port: int
    auth: str = "auto"
    """Whether keys are asked for: auto, required or off."""
    rate: float | None = None
    """Requests a second for each key that has no rate of its own; None for any number."""
    burst: int | None = None
    tls_cert: str | None = None
    """The file of its certificate; None for plain HTTP."""
    tls_key: str | None = None
    behind_tls: bool = False
    """Whether a proxy before it speaks HTTPS."""


class Setup(msgspec.Struct, frozen=True, kw_only=True, tag="setup"):
    """The first word to a child: what it is and where it works. It holds secrets, so it is not on the command line."""

    database: str
    blobs: str
    app: str | None
    worker_id: UUID
    name: str
    queues: tuple[str, ...]
    catalogue: tuple[CatalogueEntry, ...]
    offer: Offer
    slots: int
    ttl: timedelta
    scratch: str
    grace: timedelta
    environment: Mapping[str, str]
    longest_pause: timedelta
    reserve_after: timedelta
    upkeep: Upkeep
    log: LogSetup
    """How it writes its own log."""
    otel: str | None = None
    """Where it sends spans."""
    secrets: str | None = None
    """The folder of secrets."""
    hidden: tuple[str, ...] = ()
    """Files that no task may read."""
    least_isolation: Isolation
    """What commands have at least, whatever they ask for."""
    serve: ServerSetup | None = None
    """For servers."""
    replica: str | None = None
    """A replica of the database, for servers."""
    max_args_bytes: int | None = None
    """How large the arguments of jobs may be."""

    @property
    def part(self) -> str:
        """Which child of its worker it is, such as `runner-0`."""
        return self.name.rpartition("/")[2]


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """These runs were asked to stop."""

    runs: tuple[tuple[UUID, int], ...]


class Drain(msgspec.Struct, frozen=True, tag="drain"):
    """Take no more; what has not ended after so many seconds is given back. Then end."""

    seconds: float


class TakeOver(msgspec.Struct, frozen=True, tag="take_over"):
    """New connections are for the newest servers alone: the older ones are about to end."""

    older: int
    newest: int


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The child is about to take jobs."""


class Count(msgspec.Struct, frozen=True, tag="count"):
    """Say what you have counted; the answer has the same number."""

    number: int


class Counted(msgspec.Struct, frozen=True, tag="counted"):
    """What was counted here so far; also the last word of a child, with the number 0."""

    number: int
    numbers: list[Numbers]


Message = Setup | Stop | Drain | TakeOver | Ready | Count | Counted
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Message).decode


class Link:
    """One end of the pair."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def over(cls, end: socket.socket) -> "Link":
        """Speak over this end."""
        end.setblocking(False)  # noqa: FBT003 - the name of the method says it
        return cls(*await asyncio.open_unix_connection(sock=end, limit=MAX_MESSAGE))

    def send(self, message: Message) -> None:
        """Say something; a child that is gone does not hear it."""
        if not self._writer.is_closing():
            self._writer.write(_encode(message) + b"\n")

    async def messages(self) -> AsyncIterator[Message]:
        """Return what the other end says, until it is gone."""
        try:
            while line := await self._reader.readline():
                yield _decode(line)
        except ConnectionError:
            return

    async def close(self) -> None:
        """Hang up."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except OSError:
            return
