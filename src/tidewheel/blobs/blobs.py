"""Artifacts, results and outputs, over any place for objects."""

import asyncio
import hashlib
import os
import secrets
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final
from uuid import UUID

from tidewheel.blobs import names
from tidewheel.blobs.backend import CHUNK, Backend, Signing
from tidewheel.blobs.disk import open_plain, part_in, told_plainly
from tidewheel.blobs.exchange import Exchange
from tidewheel.blobs.names import Digest, Left, Output
from tidewheel.errors import Damaged, Invalid, NotFound, Unavailable
from tidewheel.model.outcome import MAX_LARGE_RESULT, own_location, result_key

OWNER: Final = "owner/outputs"
"""Whose outputs are here: whatever another database knows nothing of is not for it to remove."""
MOST_MARK: Final = 200
Moved = Callable[[int], object]
"""Is told how many bytes more have come or gone."""


def _unheard(_: int) -> None:
    """Nobody wants to know."""


class Blobs:
    """Large things, by digest or by location. Memory stays bounded, whatever their size."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @property
    def exchange(self) -> Exchange | None:
        """How others reach the objects without us, if this place can do that."""
        return Exchange(self._backend) if isinstance(self._backend, Signing) else None

    # Artifacts

    async def put_file(self, path: Path, moved: Moved = _unheard) -> Digest:
        """Keep a file under the digest of its content; nothing is sent if that is there already."""
        with await asyncio.to_thread(open_plain, path) as file:
            size = os.fstat(file.fileno()).st_size
            digest = await asyncio.to_thread(_digest_of, _chunks(file, size))
            if not await self._has(digest, size):
                file.seek(0)
                chunks = _checked(_told(_chunks(file, size), moved), digest, path)
                await self._backend.put(names.artifact_key(digest), chunks, size)
        return digest

    async def put_bytes(self, data: bytes) -> Digest:
        """Keep bytes under their digest; nothing is sent if they are there already."""
        digest = await asyncio.to_thread(_digest_of, iter([data]))
        if not await self._has(digest, len(data)):
            await self._backend.put(names.artifact_key(digest), _slices(data), len(data))
        return digest

    async def put_known(self, file: BinaryIO, digest: str, size: int) -> None:
        """Keep a file whose digest is known, also if it is there already. Raises Invalid if that is not its digest."""
        key = names.artifact_key(names.check_digest(digest))
        file.seek(0)
        await self._backend.put(key, _checked(_chunks(file, size), Digest(digest), Path("the upload")), size)

    async def delete_artifact(self, digest: str) -> None:
        """Remove an artifact, if it is there."""
        await self._backend.delete(names.artifact_key(names.check_digest(digest)))

    async def has(self, digest: str) -> bool:
        """Tell whether there is an artifact."""
        return await self._backend.size(names.artifact_key(names.check_digest(digest))) is not None

    async def _has(self, digest: Digest, size: int) -> bool:
        return await self._backend.size(names.artifact_key(digest)) == size

    async def fetch(
        self, digest: str, to: Path, *, mode: int = 0o644, replace: bool = True, moved: Moved = _unheard
    ) -> None:
        """Copy an artifact to a file that appears whole and right, maybe in place of an earlier one, or not at all."""
        key = names.artifact_key(names.check_digest(digest))
        with told_plainly(), part_in(to.parent) as part:
            hasher = hashlib.sha256()
            try:
                await self._backend.get(key, _all_of(hasher.update, part.file.write, lambda chunk: moved(len(chunk))))
            except NotFound:
                raise NotFound("artifact", digest) from None
            if hasher.hexdigest() != digest:
                raise Damaged("artifact", digest)
            os.fchmod(part.file.fileno(), mode)
            await asyncio.to_thread(part.publish, to, replace=replace)

    # Results and outputs

    async def store_result(self, job_id: UUID, token: int, json_text: str) -> str:
        """Keep a result that is too large for a row, and return its location."""
        return await self._store(result_key(job_id, token), json_text.encode())

    async def read_result(self, job_id: UUID, token: int, location: str) -> bytes:
        """Return the result of a run as JSON. A location that is not this run's own is not followed: NotFound."""
        if location != own_location(job_id, token):
            raise NotFound("blob", location)
        return await self.read(location, MAX_LARGE_RESULT)

    async def store_output(self, job_id: UUID, token: int, name: str, path: Path, *, inside: Path | None = None) -> str:
        """Keep a file that a run left behind, and return its location.

        Only a plain file is read. With `inside`, the folder that the run could write to, no folder on the way from
        there may be a symbolic link.
        """
        key = names.output_key(job_id, token, name)
        with await asyncio.to_thread(open_plain, path, inside) as file:
            size = os.fstat(file.fileno()).st_size
            await self._backend.put(key, _chunks(file, size), size)
        return names.location_of(key)

    async def store_brought(self, left: Left, file: BinaryIO, size: int) -> str:
        """Keep what a worker elsewhere brought for a run, and return its location."""
        key = names.left_key(*left)
        file.seek(0)
        await self._backend.put(key, _chunks(file, size), size)
        return names.location_of(key)

    async def _store(self, key: str, data: bytes) -> str:
        await self._backend.put(key, _slices(data), len(data))
        return names.location_of(key)

    async def list_outputs(self, job_id: UUID) -> list[Output]:
        """Return the files that all runs of a job left behind, by run and by name."""
        found = await self._backend.find(f"outputs/{job_id}")
        outputs = [output for key, size in found if (output := names.output_of(key, size))]
        return sorted(outputs, key=lambda output: (output.token, output.name))

    async def fetch_output(self, output: Output, to: Path) -> None:
        """Copy a file that a run left behind; it appears whole, maybe in place of an earlier one, or not at all."""
        with told_plainly(), part_in(to.parent) as part:
            try:
                await self._backend.get(names.key_of(output.location), part.file.write)
            except NotFound:
                raise NotFound("blob", output.location) from None
            await asyncio.to_thread(part.publish, to, replace=True)

    async def read(self, location: str, max_bytes: int) -> bytes:
        """Return the content at a location; more than `max_bytes` is Invalid."""
        parts = _Parts(max_bytes)
        try:
            await self._backend.get(names.key_of(location), parts.take)
        except NotFound:
            raise NotFound("blob", location) from None
        return parts.joined()

    async def size(self, location: str) -> int:
        """Return how many bytes are at a location. Raises NotFound."""
        size = await self._backend.size(names.key_of(location))
        if size is None:
            raise NotFound("blob", location)
        return size

    def stream(self, location: str) -> AsyncGenerator[bytes, None]:
        """Return the content at a location piece by piece; close it when no more is wanted."""
        return self._backend.pieces(names.key_of(location))

    async def delete(self, location: str) -> None:
        """Remove what is at a location, if anything is."""
        await self._backend.delete(names.key_of(location))

    async def delete_outputs(self, job_id: UUID) -> int:
        """Remove the results and files of all runs of a job, and return how many there were."""
        found = await self._backend.find(f"outputs/{job_id}")
        for key, _ in found:
            await self._backend.delete(key)
        return len(found)

    async def jobs_with_outputs(self, after: str, limit: int) -> tuple[list[UUID], str | None]:
        """Return the next so many jobs whose runs left something behind, by id, and after what to go on, if at all."""
        steps = await self._backend.steps("outputs", after, limit)
        return [job_id for step in steps if (job_id := names.job_of(step))], steps[-1] if steps else None

    async def owner(self, new: str) -> str:
        """Return the mark of the database that outputs here are of; if there was none, it is `new` from now on."""
        parts = _Parts(MOST_MARK)
        try:
            await self._backend.get(OWNER, parts.take)
        except NotFound:
            await self._backend.put(OWNER, iter([new.encode()]), len(new))
            return new
        return parts.joined().decode(errors="replace")

    async def check(self) -> None:
        """Write, read and remove something, or raise why that cannot be done."""
        location = await self._store(result_key(UUID(int=0), secrets.randbits(62)), b"{}")
        if await self.read(location, max_bytes=2) != b"{}":
            raise Unavailable("what was written for a check did not come back")
        await self.delete(location)


def _all_of(*takers: Callable[[bytes], object]) -> Callable[[bytes], None]:
    def take(chunk: bytes) -> None:
        for each in takers:
            each(chunk)

    return take


def _told(chunks: Iterator[bytes], moved: Moved) -> Iterator[bytes]:
    """Pass chunks on, and say how large each was once the next is wanted."""
    for chunk in chunks:
        yield chunk
        moved(len(chunk))


class _Parts:
    """Collects bytes, up to a bound."""

    def __init__(self, max_bytes: int) -> None:
        self._left = self._max = max_bytes
        self._parts: list[bytes] = []

    def take(self, chunk: bytes) -> None:
        self._left -= len(chunk)
        if self._left < 0:
            raise Invalid("location", f"holds more than {self._max} bytes")
        self._parts.append(chunk)

    def joined(self) -> bytes:
        return b"".join(self._parts)


def _chunks(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Read so many bytes; a file that grows meanwhile is cut there."""
    while size > 0 and (chunk := _read(file, min(CHUNK, size))):
        size -= len(chunk)
        yield chunk


def _read(file: BinaryIO, size: int) -> bytes:
    with told_plainly():
        return file.read(size)


def _slices(data: bytes) -> Iterator[bytes]:
    return (data[start : start + CHUNK] for start in range(0, len(data), CHUNK))


def _digest_of(chunks: Iterator[bytes]) -> Digest:
    hasher = hashlib.sha256()
    for chunk in chunks:
        hasher.update(chunk)
    return Digest(hasher.hexdigest())


def _checked(chunks: Iterator[bytes], digest: Digest, path: Path) -> Iterator[bytes]:
    """Pass chunks on, and refuse to end well if they are not those that the digest was made of."""
    hasher = hashlib.sha256()
    for chunk in chunks:
        hasher.update(chunk)
        yield chunk
    if hasher.hexdigest() != digest:
        raise Invalid("path", f"{path}: was changed while it was read")
