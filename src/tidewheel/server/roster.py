"""The workers that speak to this server, as they registered; that never changes, so it is asked for once."""

from collections import OrderedDict
from typing import Final
from uuid import UUID

from tidewheel.errors import NotFound
from tidewheel.model.worker import Worker
from tidewheel.store.base import WorkerStore

MOST_REMEMBERED: Final = 10_000


class Roster:
    """Remembers workers; of too many the one that came first is forgotten."""

    def __init__(self, store: WorkerStore) -> None:
        self._store = store
        self._known: OrderedDict[UUID, Worker] = OrderedDict()

    async def find(self, worker_id: UUID, tenant: str | None) -> Worker:
        """Return a worker of a tenant, or of None: one that serves all. Raises NotFound, also for those of others."""
        worker = self._known.get(worker_id)
        if worker is None:
            worker = self._known[worker_id] = await self._store.worker(worker_id)
            while len(self._known) > MOST_REMEMBERED:
                self._known.popitem(last=False)
        if tenant is not None and worker.tenant != tenant:
            raise NotFound("worker", worker_id)
        return worker
