"""Takes back the runs of workers that died."""

from uuid import UUID

from tidewheel.clock import Clock
from tidewheel.model.liveness import Watched, observe
from tidewheel.store.base import WorkerStore


class Reaper:
    """Watches workers whose lease has passed, and reaps those whose beat stands still for a whole TTL on its own clock.

    The second watch is what a step of the database's clock cannot fool: it lets every lease pass at once, but the
    workers go on beating.
    """

    def __init__(self, store: WorkerStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._watched: dict[UUID, Watched] = {}

    @property
    def watches(self) -> bool:
        """Whether it watches someone, and so must look again."""
        return bool(self._watched)

    async def run_once(self) -> int:
        """Look once, and return how many workers were reaped; one that cannot be reaped does not protect the others."""
        expired = await self._store.expired()
        dead, self._watched = observe(self._watched, expired, self._clock.monotonic())
        reaped = 0
        failed: list[Exception] = []
        for worker in dead:
            try:
                reaped += await self._store.reap(worker.id, worker.beat) is not None
            except Exception as error:  # noqa: BLE001 - raised again below
                failed.append(error)
        if failed:
            raise failed[0]
        return reaped
