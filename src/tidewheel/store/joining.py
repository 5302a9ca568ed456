"""What every store promises about jobs that are part of someone else's transaction.

The rules of `store.base` hold here, too.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from tidewheel.model.job import JobSpec, Submitted

T = TypeVar("T")


class Inside(Protocol):
    """What work gets that is run inside a transaction of the store."""

    def execute(self, sql: str, values: Sequence[Any] | dict[str, Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement on tables that are not the store's and return its rows. Raises Invalid."""
        ...

    def submit(self, specs: Sequence[JobSpec]) -> list[Submitted]:
        """Do what `JobStore.submit` does."""
        ...


class JoinStore(Protocol):
    """For those who want jobs and changes of their own to happen together, or neither."""

    async def make_lanes(self, specs: Sequence[JobSpec]) -> None:
        """Add the lanes of jobs that are about to come, so that the transaction that brings them need not."""
        ...

    async def submit_within(self, connection: Any, specs: Sequence[JobSpec], *, waits: bool) -> list[Submitted]:
        """Do what `submit` does by the caller's own connection, inside its transaction, after `make_lanes`.

        The jobs are there once the caller commits, and never if it does not. `waits` tells whether the caller has an
        event loop; without one nothing is awaited. Raises Invalid for a connection that cannot be used, before anything
        was done with it. No hint is given: `expect_commit` does that.
        """
        ...

    async def expect_commit(self) -> None:
        """Give hints now and then for a second, for a transaction with jobs whose end nobody here sees."""
        ...

    async def transact(self, work: Callable[[Inside], T]) -> T:
        """Run short work inside one transaction of the store and return its answer; what it raises undoes all of it.

        Raises Invalid where the store has more than one writer; there `submit_within` serves.
        """
        ...
