"""What a replica promises: to be read like a store, and to say how far it is behind."""

from typing import Protocol

from tidewheel.store.base import Store


class ReplicaStore(Store, Protocol):
    """A store that can only be read."""

    async def lag(self) -> float:
        """Return for how many seconds it has heard nothing new, 0 if there was nothing new to hear."""
        ...
