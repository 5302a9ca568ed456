"""Bytes on their way out: files that runs left behind, and whatever else an address was signed for."""

from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Final
from urllib.parse import quote

import msgspec

from tidewheel.blobs.names import output_location
from tidewheel.errors import Invalid, NotFound
from tidewheel.server.endpoint import Answer, Call, NoQuery
from tidewheel.server.grants import Download, seal, unseal
from tidewheel.server.names import id_in
from tidewheel.server.places import Places
from tidewheel.server.problems import Refused
from tidewheel.server.service import Service

REDIRECT: Final = 307
DOWNLOAD_WITHIN: Final = timedelta(minutes=15)
BYTES: Final = "application/octet-stream"
_LARGEST_TOKEN: Final = 2**63


class OutputDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a run left behind."""

    token: int
    """Which run."""
    name: str
    size: int
    content: str
    """Where to fetch it."""


class OutputList(msgspec.Struct, frozen=True, kw_only=True):
    """The files that all runs of a job left behind, by run and by name."""

    outputs: list[OutputDocument]


class Leaving:
    """A download under way; it takes one of the places for such until the last piece was sent."""

    def __init__(self, pieces: AsyncGenerator[bytes, None], places: Places, tenant: str) -> None:
        self._pieces = pieces
        self._places: Places | None = places
        self._tenant = tenant

    def __aiter__(self) -> "Leaving":
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._pieces)

    async def aclose(self) -> None:
        """End it, and give the place to another."""
        places, self._places = self._places, None
        if places is not None:
            try:
                await self._pieces.aclose()
            finally:
                places.leave(self._tenant)


async def leave(service: Service, location: str, tenant: str) -> tuple[int, Leaving]:
    """Return how many bytes are at a location, and have them leave in the name of a tenant."""
    await service.downloads.take(tenant)
    try:
        size = await service.blobs.size(location)
        return size, Leaving(service.blobs.stream(location), service.downloads, tenant)
    except BaseException:
        service.downloads.leave(tenant)
        raise


async def outputs(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Return the files that the runs of a job left behind."""
    job = await service.store.get(id_in(call), tenant=call.tenant)
    found = await service.blobs.list_outputs(job.id)
    documents = [
        OutputDocument(
            token=one.token,
            name=one.name,
            size=one.size,
            content=f"/v1/jobs/{job.id}/outputs/{one.token}/{quote(one.name)}",
        )
        for one in found
    ]
    return Answer(OutputList(outputs=documents))


async def output(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Lead to the bytes of a file that a run left behind."""
    job = await service.store.get(id_in(call), tenant=call.tenant)
    token, name = call.path["token"], call.path["name"]
    number = int(token) if token.isascii() and token.isdecimal() and len(token) < len(str(_LARGEST_TOKEN)) else -1
    try:
        location = output_location(job.id, number, name)
        await service.blobs.size(location)
    except (Invalid, NotFound):
        raise NotFound("output", repr(f"{token}/{name}"[:200])) from None
    return await redirect(service, location, name.rpartition("/")[2], job.tenant)


async def redirect(service: Service, location: str, name: str, tenant: str) -> Answer:
    """Lead to where an object of a tenant can be fetched for a while without a key."""
    exchange = service.blobs.exchange
    if exchange is not None:
        place = await exchange.download(location, DOWNLOAD_WITHIN)
    else:
        until = int((service.clock.now() + DOWNLOAD_WITHIN).timestamp())
        grant = Download(location=location, name=name, tenant=tenant, until=until)
        place = f"/v1/downloads/{seal(grant, await service.signing_key())}"
    return Answer(None, REDIRECT, (("location", place), ("cache-control", "no-store")))


async def download(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Send what an address was signed for."""
    grant = unseal(call.path["grant"], await service.signing_key(), service.clock.now())
    if not isinstance(grant, Download):
        raise Refused("forbidden", "this address is for an upload")
    size, stream = await leave(service, grant.location, grant.tenant)
    headers = (
        ("content-length", str(size)),
        ("content-disposition", f"attachment; filename*=UTF-8''{quote(grant.name, safe='')}"),
        ("content-security-policy", "default-src 'none'; sandbox"),
    )
    return Answer(headers=headers, media_type=BYTES, stream=stream)
