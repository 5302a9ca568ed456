"""Artifacts that nothing names any more: first the store forgets them, then their bytes go, then their graves."""

from tidewheel.blobs import Blobs
from tidewheel.clock import Clock
from tidewheel.store.artifacts import ArtifactStore


class Gravedigger:
    """Removes artifacts. Interrupted anywhere, the next one goes on: what is to be deleted stays noted until it is."""

    def __init__(self, store: ArtifactStore, blobs: Blobs, clock: Clock) -> None:
        self._store = store
        self._blobs = blobs
        self._clock = clock

    async def run_once(self) -> int:
        """Remove some that were not used for long, and what was brought and never asked for again."""
        digests = await self._store.bury_artifacts()
        for digest in digests:
            await self._blobs.delete_artifact(digest)
        await self._store.close_graves(digests)
        exchange = self._blobs.exchange
        return len(digests) + (0 if exchange is None else await exchange.sweep(self._clock.now().timestamp()))
