"""The blobs of a server, for workers that reach nothing but the server: what runs leave behind, results, artifacts."""

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import IO, Final
from urllib.parse import quote, urljoin

import httpx
import msgspec

from tidewheel.blobs.backend import Found
from tidewheel.blobs.names import Left, digest_of, left_of
from tidewheel.client.artifacts import PIECE, SILENCE, Upload, signed
from tidewheel.clock import Clock
from tidewheel.errors import Invalid, NotFound, Unavailable
from tidewheel.store.remote.transport import Place, Transport, checked_url, tenant_header

IN_MEMORY: Final = 8 * 1024 * 1024
"""Bytes on their way that are kept in memory; more is kept in a file."""
TRIES: Final = 6
FIRST_PAUSE: Final = 0.5
PATIENCE: Final = 60.0
_BYTES: Final = {"content-type": "application/octet-stream"}
_ANYONES: Final = tenant_header(None)
_REDIRECT: Final = 307


class BringingOffer(msgspec.Struct, frozen=True):
    """How to bring what a run leaves behind."""

    upload: Upload


class ServerBackend:
    """See `blobs.backend.Backend`: as much of it as workers need."""

    def __init__(self, place: Place, clock: Clock) -> None:
        self._place = Place(checked_url(place.url), place.key)
        self._clock = clock

    async def put(self, key: str, chunks: Iterator[bytes], size: int) -> None:
        del size  # a file may have become shorter meanwhile
        left = left_of(key)
        if left is None:
            raise Invalid("blobs", "a server takes from a worker only what its runs leave behind")
        with tempfile.SpooledTemporaryFile(IN_MEMORY) as file:
            await asyncio.to_thread(_fill, file, chunks)
            await self._bring_patiently(left, file)

    async def _bring_patiently(self, left: Left, file: IO[bytes]) -> None:
        """Bring it, again if the server was busy or went away: a run that is over is not thrown away for that."""
        pause = FIRST_PAUSE
        for _ in range(TRIES - 1):
            try:
                return await self._bring(left, file)
            except Unavailable:
                await self._clock.sleep(pause)
                pause = 2 * pause
        return await self._bring(left, file)

    async def _bring(self, left: Left, file: IO[bytes]) -> None:
        path, size = f"/v1/jobs/{left.job_id}/outputs", file.seek(0, os.SEEK_END)
        body = {"token": left.token, "size": size, "name": left.name}
        async with self._server() as server:
            offer = (await server.post(path, body, BringingOffer, safe=True, headers=_ANYONES)).upload
            place = urljoin(str(server.client.base_url), offer.url)
            headers = {"content-length": str(size), **({} if offer.complete else _BYTES)}
            async with self._elsewhere(place) as elsewhere:
                request = elsewhere.client.build_request(offer.method, place, headers=headers, content=_pieces(file))
                await elsewhere.send(request, safe=False)
            if offer.complete is not None:
                await server.write("POST", offer.complete, safe=True)

    async def get(self, key: str, take: Callable[[bytes], object]) -> None:
        left, digest = left_of(key), digest_of(key)
        if left is None and digest is None:
            raise NotFound("blob", key)
        path = f"/v1/artifacts/{digest}/content" if left is None else _path_of(left)
        async with self._server() as server, server.stream(path, silence=SILENCE, headers=_ANYONES) as answer:
            if answer.status_code != _REDIRECT:
                return await _hand(answer, take)
            place = urljoin(str(answer.request.url), answer.headers["location"])
        async with self._elsewhere(place) as elsewhere, elsewhere.stream(place, silence=SILENCE) as answer:
            return await _hand(answer, take)

    def pieces(self, key: str) -> AsyncGenerator[bytes, None]:
        raise _not_offered(key)

    async def size(self, key: str) -> int | None:
        raise _not_offered(key)

    async def find(self, folder: str) -> list[Found]:
        raise _not_offered(folder)

    async def steps(self, folder: str, after: str, limit: int) -> list[str]:
        del after, limit
        raise _not_offered(folder)

    async def delete(self, key: str) -> None:
        raise _not_offered(key)

    @asynccontextmanager
    async def _server(self) -> AsyncIterator[Transport]:
        transport = Transport(self._place, self._clock, patience=PATIENCE)
        try:
            yield transport
        finally:
            await transport.close()

    @asynccontextmanager
    async def _elsewhere(self, place: str) -> AsyncIterator[Transport]:
        transport = signed(place, self._clock)
        try:
            yield transport
        finally:
            await transport.close()


def _path_of(left: Left) -> str:
    if left.name is None:
        return f"/v1/jobs/{left.job_id}/result"
    return f"/v1/jobs/{left.job_id}/outputs/{left.token}/{quote(left.name)}"


def _fill(file: IO[bytes], chunks: Iterator[bytes]) -> None:
    for chunk in chunks:
        file.write(chunk)


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    file.seek(0)
    while piece := await asyncio.to_thread(file.read, PIECE):
        yield piece


async def _hand(answer: httpx.Response, take: Callable[[bytes], object]) -> None:
    async for piece in answer.aiter_bytes(PIECE):
        await asyncio.to_thread(take, piece)


def _not_offered(key: str) -> Invalid:
    return Invalid("blobs", f"{key}: not offered over HTTP; name the place of the server itself")
