"""What a place for objects must do; three kinds of places do it, and one suite of tests holds them to it."""

from collections.abc import AsyncGenerator, Callable, Iterator
from datetime import timedelta
from typing import Final, Literal, NamedTuple, Protocol, runtime_checkable

CHUNK: Final = 8 * 1024 * 1024
"""How many bytes of an object are in hand at a time."""
PIECE: Final = 256 * 1024
"""How many of one that is handed out as fast as someone takes it, which may be slowly and many of them."""


class Found(NamedTuple):
    """An object in a list."""

    key: str
    size: int


class Backend(Protocol):
    """A place for objects.

    What is not there raises `NotFound`; a place that cannot be reached, or refuses, `Unavailable`; one that has no room
    left, `StoreFull`.
    """

    async def put(self, key: str, chunks: Iterator[bytes], size: int) -> None:
        """Write an object whole, in place of an earlier one. If `chunks` raises, that is raised, and nothing changed.

        `chunks` is read in a thread; `size` says how much is to be expected.
        """

    async def get(self, key: str, take: Callable[[bytes], object]) -> None:
        """Hand an object to `take`, chunk by chunk, in a thread. If `take` raises, that is raised."""

    def pieces(self, key: str) -> AsyncGenerator[bytes, None]:
        """Return an object piece by piece, each read when it is asked for; no thread waits in between."""
        ...

    async def size(self, key: str) -> int | None:
        """Return how many bytes an object has; None if there is none."""

    async def find(self, folder: str) -> list[Found]:
        """Return all objects whose keys begin with these whole steps."""

    async def steps(self, folder: str, after: str, limit: int) -> list[str]:
        """Return the next so many names that stand directly below a folder, in the order of their characters."""

    async def delete(self, key: str) -> None:
        """Remove an object, if it is there."""


@runtime_checkable
class Signing(Backend, Protocol):
    """A place that others may read from or write to for a while, by an address that we sign."""

    async def sign(self, method: Literal["GET", "PUT"], key: str, lifetime: timedelta) -> str:
        """Return a URL at which this method may be used on an object for that long."""
        ...

    async def copy(self, source: str, target: str) -> None:
        """Copy an object whole, in place of an earlier one. What is not there raises NotFound."""
        ...
