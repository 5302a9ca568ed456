"""The calls of the client that are about files that runs left behind."""

from pathlib import Path
from urllib.parse import quote
from uuid import UUID

import msgspec

from tidewheel.client.artifacts import fetch
from tidewheel.clock import Clock
from tidewheel.store.remote.transport import Transport


class OutputInfo(msgspec.Struct, frozen=True):
    """A file that a run left behind."""

    job_id: UUID
    token: int
    """Which run."""
    name: str
    size: int


class OutputDocument(msgspec.Struct, frozen=True):
    """A file as the server shows it."""

    token: int
    name: str
    size: int


class OutputList(msgspec.Struct, frozen=True):
    """The files of a job."""

    outputs: list[OutputDocument]


class OutputCalls:
    """A part of `AsyncClient`."""

    _transport: Transport
    _clock: Clock

    async def outputs(self, job_id: UUID) -> list[OutputInfo]:
        """Return the files that all runs of a job left behind, by run and by name. Raises NotFound."""
        found = await self._transport.get(f"/v1/jobs/{job_id}/outputs", OutputList)
        return [OutputInfo(job_id, output.token, output.name, output.size) for output in found.outputs]

    async def fetch_output(self, output: OutputInfo, to: Path) -> None:
        """Copy such a file here; it appears whole, maybe in place of an earlier one, or not at all. Raises NotFound."""
        path = f"/v1/jobs/{output.job_id}/outputs/{output.token}/{quote(output.name)}"
        await fetch(self._transport, self._clock, path, to)
