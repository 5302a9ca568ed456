"""Endpoints of queues and workers."""

from typing import Final

from tidewheel.model.access import Action
from tidewheel.server.endpoint import Endpoint
from tidewheel.server.endpoints import fleet

FLEET: Final = (
    Endpoint(
        method="GET",
        path="/v1/queues",
        name="list_queues",
        summary="List the queues with their numbers",
        group="fleet",
        action=Action.JOBS_READ,
        handler=fleet.queues,
        query=fleet.QueueQuery,
        answers={200: fleet.QueueList},
    ),
    Endpoint(
        method="GET",
        path="/v1/workers",
        name="list_workers",
        summary="List the workers",
        group="fleet",
        action=Action.WORKERS_READ,
        handler=fleet.workers,
        query=fleet.WorkerQuery,
        answers={200: fleet.WorkerList},
    ),
)
