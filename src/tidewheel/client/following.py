"""Following a job as it happens: server-sent events, taken up again where they were interrupted."""

from collections.abc import AsyncIterator
from typing import Final
from uuid import UUID

import msgspec

from tidewheel.client.documents import Event
from tidewheel.clock import Clock
from tidewheel.errors import Unavailable
from tidewheel.store.remote.transport import Transport

SILENCE: Final = 40.0
"""Seconds without a word after which a stream counts as lost; a server says something every 15."""
FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0
MOST_FAILURES: Final = 10
"""Tries in a row that bring nothing, after which a stream is given up."""
_END: Final = "end"


async def follow(transport: Transport, clock: Clock, job_id: UUID, last: str | None = None) -> AsyncIterator[Event]:
    """Return what happens to a job until its end, each event once."""
    failures = 0
    while True:
        try:
            async for event in _listen(transport, job_id, last):
                failures, last = 0, event.id
                yield event
                if event.name == _END:
                    return
            if last is not None and last.endswith(f".{_END}"):
                return
            failures += 1
        except Unavailable:
            failures += 1
            if failures >= MOST_FAILURES:
                raise
        await clock.sleep(min(FIRST_PAUSE * 2**failures, LONGEST_PAUSE))


async def _listen(transport: Transport, job_id: UUID, last: str | None) -> AsyncIterator[Event]:
    headers = {} if last is None else {"last-event-id": last}
    async with transport.stream(f"/v1/jobs/{job_id}/events", silence=SILENCE, headers=headers) as answer:
        fields: dict[str, str] = {}
        async for line in answer.aiter_lines():
            name, _, value = line.partition(": ")
            if line and name:
                fields[name] = value
            elif "data" in fields:
                yield msgspec.convert({**fields, "name": fields["event"], "data": _json(fields["data"])}, Event)
                fields = {}


def _json(text: str) -> object:
    return msgspec.json.decode(text)
