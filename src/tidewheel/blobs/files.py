"""Objects as files in a folder, on the disk before a write returns."""

import asyncio
import errno
import heapq
import os
import stat
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from tidewheel.blobs.backend import CHUNK, PIECE, Found
from tidewheel.blobs.disk import open_beneath, part_in, sweep, sync_folder, told_plainly
from tidewheel.errors import NotFound

_ATTEMPTS: Final = 20


class FileBackend:
    """A folder; several processes may share it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._parts = root / "parts"
        with told_plainly():
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._parts.mkdir(exist_ok=True)
            sweep(self._parts)

    async def put(self, key: str, chunks: Iterator[bytes], size: int) -> None:
        del size
        await asyncio.to_thread(self._put, key, chunks)

    def _put(self, key: str, chunks: Iterator[bytes]) -> None:
        with told_plainly(), part_in(self._parts) as part:
            for chunk in chunks:
                part.file.write(chunk)
            part.make_durable()
            target = self._root / key
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    part.publish(target, replace=True)
                    break
                except FileNotFoundError:  # a delete has just removed the folder, which was empty
                    if attempt == _ATTEMPTS:
                        raise
            for folder in self._folders_of(target):
                sync_folder(folder)

    async def get(self, key: str, take: Callable[[bytes], object]) -> None:
        await asyncio.to_thread(self._get, key, take)

    def _get(self, key: str, take: Callable[[bytes], object]) -> None:
        with self._open(key) as file:
            while chunk := _read(file):
                take(chunk)

    async def pieces(self, key: str) -> AsyncGenerator[bytes, None]:
        with await asyncio.to_thread(self._open, key) as file:
            while piece := await asyncio.to_thread(_read, file, PIECE):
                yield piece

    def _open(self, key: str) -> BinaryIO:
        with told_plainly():
            try:
                handle = open_beneath(self._root, self._root / key)
            except FileNotFoundError:
                raise NotFound("blob", key) from None
            except OSError as error:
                # A link leads out of the folder, which nobody is meant to read by us.
                if error.errno in (errno.ELOOP, errno.ENOTDIR):
                    raise NotFound("blob", key) from None
                raise
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                os.close(handle)
                raise NotFound("blob", key)
            return os.fdopen(handle, "rb")

    async def size(self, key: str) -> int | None:
        return await asyncio.to_thread(self._size, key)

    def _size(self, key: str) -> int | None:
        with told_plainly():
            try:
                found = (self._root / key).lstat()
                return found.st_size if stat.S_ISREG(found.st_mode) else None
            except (FileNotFoundError, NotADirectoryError):
                return None

    async def find(self, folder: str) -> list[Found]:
        return await asyncio.to_thread(self._find, folder)

    def _find(self, folder: str) -> list[Found]:
        found = []
        with told_plainly():
            for place, _, names in os.walk(self._root / folder):
                for name in names:
                    path = Path(place, name)
                    with suppress(FileNotFoundError):  # removed in the meantime
                        found.append(Found(path.relative_to(self._root).as_posix(), path.stat().st_size))
        return found

    async def steps(self, folder: str, after: str, limit: int) -> list[str]:
        return await asyncio.to_thread(self._steps, folder, after, limit)

    def _steps(self, folder: str, after: str, limit: int) -> list[str]:
        with told_plainly():
            try:
                with os.scandir(self._root / folder) as entries:
                    return heapq.nsmallest(limit, (entry.name for entry in entries if entry.name > after))
            except FileNotFoundError:
                return []

    async def delete(self, key: str) -> None:
        await asyncio.to_thread(self._delete, key)

    def _delete(self, key: str) -> None:
        target = self._root / key
        with told_plainly():
            target.unlink(missing_ok=True)
        with suppress(OSError):  # a folder that is not empty stays
            for folder in self._folders_of(target)[:-1]:
                folder.rmdir()

    def _folders_of(self, target: Path) -> tuple[Path, ...]:
        """Return the folders from the innermost one up to the root."""
        steps = len(target.relative_to(self._root).parts)
        return tuple(target.parents[:steps])


def _read(file: BinaryIO, size: int = CHUNK) -> bytes:
    with told_plainly():
        return file.read(size)
