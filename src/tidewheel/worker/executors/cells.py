"""A cell as the host sees it: a tree in which one command runs at a time."""

import asyncio
import socket
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from tidewheel.tasks.definition import Isolation
from tidewheel.worker.executors.launching import Launcher
from tidewheel.worker.executors.scratch import Place
from tidewheel.worker.executors.wire import Wire
from tidewheel.worker.launcher.messages import BodyEnded, Exited, Program, Say, Word
from tidewheel.worker.sandbox.layers import Confinement

MAX_COMMANDS: Final = 1_000
"""A cell that has had so many is replaced by a fresh one."""

_decode = msgspec.json.Decoder(Exited).decode
_encode = msgspec.json.Encoder().encode


class Tenant(Protocol):
    """Whose command runs in a cell."""

    def left(self, exited: Exited) -> None:
        """Take how the command ended; nothing of it is left."""

    def evicted(self, body: BodyEnded | None) -> None:
        """Take how the cell ended, before the command did."""


class Cell:
    """One cell, from the fork to its end."""

    def __init__(self, launcher: Launcher, isolation: Isolation, place: Place) -> None:
        self.isolation = isolation
        self.place = place
        self._launcher = launcher
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        confinement = Confinement(isolation=isolation, scratch=place.directory)
        self.tree = launcher.fork("cell", confinement, [theirs.detach()])
        self._silent: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._wire = Wire(ours, self._hear, lambda: self._silent.set_result(None))
        self._tenant: Tenant | None = None
        self._commands = 0
        self._is_clean = True
        self._ending = asyncio.get_running_loop().create_task(self._end())

    def at_end(self, do: Callable[["Cell"], object]) -> None:
        """Say when nothing of it is left."""
        self._ending.add_done_callback(lambda _: do(self))

    async def ended(self) -> None:
        """Return once nothing of it is left."""
        await asyncio.shield(self._ending)

    @property
    def pid(self) -> int | None:
        """The init, once it is known."""
        return self.tree.pid

    @property
    def is_usable(self) -> bool:
        """Whether it can have another command. A strict one has only one: it could leave things in its namespaces."""
        used_up = self._commands >= (1 if self.isolation == "strict" else MAX_COMMANDS)
        return not used_up and self._is_clean and not self.tree.gone.done() and self._launcher.lives

    def begin(self, program: Program, fds: list[int], tenant: Tenant) -> None:
        """Run a command; takes its stdin, stdout and stderr over."""
        self._commands += 1
        self._tenant = tenant
        self._wire.send(_encode(program), fds)

    def tell(self, word: Word) -> None:
        """Pass a word on to the command; `kill` ends the whole cell, for that cannot fail."""
        if word == "kill":
            self.tree.tell("kill")
        else:
            self._wire.send(_encode(Say(word)))

    def retire(self) -> None:
        """End it."""
        self.tree.tell("kill")

    def _hear(self, data: bytes) -> None:
        tenant, self._tenant = self._tenant, None
        assert tenant is not None
        self._is_clean = self.place.is_clean
        tenant.left(_decode(data))

    async def _end(self) -> None:
        """When the tree is gone, hear the last words out and end what may have run in it."""
        await self.tree.gone
        await self._silent
        if self._tenant is not None:
            self._tenant.evicted(self.tree.body)
        self.place.close()
