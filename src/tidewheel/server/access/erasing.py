"""Erasure: what a job was about goes from the store and from the blobs."""

from uuid import UUID

from tidewheel.blobs import Blobs
from tidewheel.model.access import Action, Actor
from tidewheel.model.job import Job
from tidewheel.store.access import ErasureStore


class Eraser:
    """Forgets jobs."""

    def __init__(self, store: ErasureStore, blobs: Blobs) -> None:
        self._store = store
        self._blobs = blobs

    async def erase(self, job_id: UUID, actor: Actor) -> Job:
        """Erase a finished job and return what is left of it: see `ErasureStore.erase`.

        The store comes first, for it knows whether the job has ended. If the blobs cannot be reached then, that is
        raised, and doing it again goes on where it stopped: they are found by the id, not by what was erased.
        """
        actor.check(Action.JOBS_ERASE)
        left = await self._store.erase(job_id, by=actor)
        await self._blobs.delete_outputs(job_id)
        return left
