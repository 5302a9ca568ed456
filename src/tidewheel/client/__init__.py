"""A client of the HTTP API for Python programs, with and without an event loop.

    from tidewheel.client import Client

    with Client("https://tide.example.com", key="tide_…") as tide:
        job = tide.submit("report", {"month": "2026-10"})
        print(tide.result(job.job_id, wait=60))

It raises the errors of `tidewheel.errors`, sends again what is safe to send again (each submit has an idempotency key),
and waits as long as the server asks for when that is busy.
"""

from tidewheel.client.access import CreatedKey
from tidewheel.client.artifacts import ArtifactInfo
from tidewheel.client.asynchronous import AsyncClient
from tidewheel.client.documents import Event, Queue
from tidewheel.client.options import JobOptions, NewJob
from tidewheel.client.outputs import OutputInfo
from tidewheel.client.schedules import Coming
from tidewheel.client.steering import Bulk
from tidewheel.client.synchronous import Client

__all__ = [
    "ArtifactInfo",
    "AsyncClient",
    "Bulk",
    "Client",
    "Coming",
    "CreatedKey",
    "Event",
    "JobOptions",
    "NewJob",
    "OutputInfo",
    "Queue",
]
