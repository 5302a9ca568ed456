"""The calls of the client that bring files to a server and fetch them."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any, BinaryIO, Final
from urllib.parse import urljoin, urlsplit
from uuid import UUID

import msgspec

from tidewheel.blobs.disk import part_in
from tidewheel.clock import Clock
from tidewheel.errors import Conflict, Invalid
from tidewheel.store.remote.transport import Place, Transport, read

PAGE: Final = 200
PIECE: Final = 256 * 1024
SILENCE: Final = 60.0
"""Seconds without a byte after which a download counts as lost."""
_ALL: Final = "/v1/artifacts"


class ArtifactInfo(msgspec.Struct, frozen=True):
    """A file that a server has. Jobs name it by its digest."""

    id: UUID
    digest: str
    """Its SHA-256."""
    size: int
    name: str
    created_at: datetime
    created_by: str
    used_at: datetime
    """When it was last brought or named by a job."""


class Upload(msgspec.Struct, frozen=True):
    """How to bring a file."""

    method: str
    url: str
    complete: str | None


class Offer(msgspec.Struct, frozen=True):
    """The file if it is there, or else how to bring it."""

    artifact: ArtifactInfo | None
    upload: Upload | None


class ArtifactPage(msgspec.Struct, frozen=True):
    """Files, newest first."""

    artifacts: list[ArtifactInfo]
    next_cursor: str | None


Moved = Callable[[int], object]
"""Is told how many bytes more have come or gone."""


class ArtifactCalls:
    """A part of `AsyncClient`."""

    _transport: Transport
    _clock: Clock

    async def put_artifact(self, path: Path, *, name: str | None = None, moved: Moved | None = None) -> ArtifactInfo:
        """Bring a file, unless it is there, and return what is known of it. Raises Invalid.

        `moved` is told how many bytes each piece had that went.
        """
        with _opened(path) as file:
            digest, size = await asyncio.to_thread(_digest_of, file)
            body = {"digest": digest, "size": size, "name": path.name if name is None else name}
            offer = await self._transport.post(_ALL, body, Offer, safe=True)
            if offer.artifact is not None:
                return offer.artifact
            assert offer.upload is not None
            return await self._bring(offer.upload, _pieces(file, moved), size)

    async def artifacts(self) -> AsyncIterator[ArtifactInfo]:
        """Return all files, newest first."""
        query: dict[str, Any] = {"limit": PAGE}
        while True:
            page = await self._transport.get(_ALL, ArtifactPage, query)
            for artifact in page.artifacts:
                yield artifact
            if page.next_cursor is None:
                return
            query["cursor"] = page.next_cursor

    async def artifact(self, digest: str) -> ArtifactInfo:
        """Return what is known of a file. Raises NotFound."""
        return await self._transport.get(f"{_ALL}/{digest}", ArtifactInfo)

    async def fetch_artifact(self, digest: str, to: Path, *, moved: Moved | None = None) -> None:
        """Copy a file here; it appears whole and right, maybe in place of an earlier one, or not at all.

        `moved` is told how many bytes each piece had that came.
        """
        await fetch(self._transport, self._clock, f"{_ALL}/{digest}/content", to, digest, moved=moved)

    async def _bring(self, upload: Upload, content: AsyncIterator[bytes], size: int) -> ArtifactInfo:
        place = urljoin(str(self._transport.client.base_url), upload.url)
        elsewhere = signed(place, self._clock)
        try:
            headers = {"content-length": str(size)}
            if upload.complete is None:
                headers["content-type"] = "application/octet-stream"
            request = elsewhere.client.build_request(upload.method, place, headers=headers, content=content)
            answer = await elsewhere.send(request, safe=False)
        finally:
            await elsewhere.close()
        if upload.complete is not None:
            answer = await self._transport.write("POST", upload.complete, safe=True)
        return read(answer, ArtifactInfo)


async def fetch(
    transport: Transport, clock: Clock, path: str, to: Path, digest: str | None = None, *, moved: Moved | None = None
) -> None:
    """Copy what a path leads to; it appears whole, and with that digest if one is named, or not at all."""
    async with transport.stream(path, silence=SILENCE) as answer:
        place = urljoin(str(answer.request.url), answer.headers["location"])
    elsewhere = signed(place, clock)
    try:
        with _appearing(to) as file:
            hasher = hashlib.sha256()
            async with elsewhere.stream(place, silence=SILENCE) as answer:
                async for piece in answer.aiter_bytes(PIECE):
                    hasher.update(piece)
                    await asyncio.to_thread(file.write, piece)
                    _tell(moved, piece)
            if digest is not None and hasher.hexdigest() != digest:
                raise Conflict(f"what came is not what has the digest {digest}")
    finally:
        await elsewhere.close()


def signed(place: str, clock: Clock) -> Transport:
    """Return a way to a signed address, which may be that of a bucket and must not see the key."""
    parts = urlsplit(place)
    return Transport(Place(f"{parts.scheme}://{parts.netloc}"), clock)


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise Invalid("path", f"{path} cannot be read: {error.strerror}") from None


def _digest_of(file: BinaryIO) -> tuple[str, int]:
    hasher, size = hashlib.sha256(), 0
    while piece := file.read(PIECE):
        hasher.update(piece)
        size += len(piece)
    return hasher.hexdigest(), size


async def _pieces(file: BinaryIO, moved: Moved | None) -> AsyncIterator[bytes]:
    file.seek(0)
    while piece := await asyncio.to_thread(file.read, PIECE):
        yield piece
        _tell(moved, piece)


def _tell(moved: Moved | None, piece: bytes) -> None:
    if moved is not None:
        moved(len(piece))


@contextmanager
def _appearing(to: Path) -> Iterator[IO[bytes]]:
    """Give a file to write to that takes its place at the end, if nothing goes wrong."""
    if to.exists() and not to.is_file():  # a device would be replaced by a file, too
        raise Invalid("to", f"{to} is no file")
    try:
        with part_in(to.parent) as part:
            yield part.file
            part.publish(to, replace=True)
    except OSError as error:
        raise Invalid("to", f"{to} cannot be written: {error.strerror}") from None
