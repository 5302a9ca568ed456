"""What every store promises about caps: how many jobs may wait in a queue.

The rules of `store.base` hold here, too.
"""

from typing import Protocol

from tidewheel.model.cap import QueueCap


class CapStore(Protocol):
    """For operators who bound what may pile up."""

    async def set_cap(self, cap: QueueCap) -> None:
        """Let no submit that begins from now on bring more than `most` waiting jobs of a tenant into a queue.

        Waiting is who is queued, limited or blocked. `reject` lets such a submit fail as a whole with QueueFull.
        `drop_oldest` drops those that are first in line (due for the longest time) until all fit, of a batch that is
        larger than the cap its first ones included. `replace` drops those that are last in line instead, never the last
        of the new ones. Who is dropped is `dropped`, with the reason. Jobs that go back to the queue or are made by
        schedules are let in in any case, and count.
        """
        ...

    async def remove_cap(self, queue: str, *, tenant: str = "default") -> None:
        """Remove a cap. Raises NotFound."""
        ...

    async def caps(self, *, tenant: str | None = None) -> list[QueueCap]:
        """Return the caps, by tenant and queue."""
        ...
