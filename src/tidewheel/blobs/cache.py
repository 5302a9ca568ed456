"""Artifacts kept on a worker's host, so that each is fetched once.

Processes may share the folder. A file appears whole, and never in place of another, which could be in use. Whoever uses
one holds a shared lock on it, which the system drops with the process; whoever wants to remove one must get the lock
for itself, and so never takes away what is in use. The content is compared with the digest when a process first uses a
file, and again whenever size or time of change differ from what it saw then.
"""

import asyncio
import fcntl
import hashlib
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

from tidewheel.blobs.blobs import Blobs
from tidewheel.blobs.disk import remove_unless_locked, sweep, told_plainly
from tidewheel.blobs.names import Digest, check_digest
from tidewheel.clock import Clock, SystemClock
from tidewheel.errors import Invalid, Unavailable

_ATTEMPTS: Final = 5
_MODE: Final = 0o555

_Mark = tuple[int, int, int, int]


class _Download:
    """A download under way, with those who wait for it; its handle is closed when the last has got one of its own."""

    def __init__(self, task: asyncio.Task[int]) -> None:
        self.task = task
        self._waiting = 0
        self._closed = False

    @contextmanager
    def awaited(self) -> Iterator[None]:
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
            self.close_if_unwanted()

    def close_if_unwanted(self) -> None:
        if self._waiting or self._closed or not self.task.done():
            return
        self._closed = True
        if not self.task.cancelled() and self.task.exception() is None:
            os.close(self.task.result())


class ArtifactCache:
    """A folder of artifacts, read-only and executable, the least recently used of which make room for others.

    What is in use is never removed, so the folder may hold more than `max_bytes` while much is in use.
    """

    def __init__(self, folder: Path, blobs: Blobs, max_bytes: int, clock: Clock | None = None) -> None:
        if max_bytes < 0:
            raise Invalid("max_bytes", f"must not be negative, not {max_bytes}")
        self._folder = folder
        self._blobs = blobs
        self._max_bytes = max_bytes
        self._clock = clock or SystemClock()
        self._seen: dict[Digest, _Mark] = {}
        self._downloads: dict[Digest, _Download] = {}
        with told_plainly():
            folder.mkdir(parents=True, exist_ok=True)
            sweep(folder)

    @asynccontextmanager
    async def use(self, digest: str) -> AsyncIterator[Path]:
        """Give the path of an artifact, fetched if need be; it stays until the block is left."""
        checked = check_digest(digest)
        handle = await self._held(checked)
        try:
            yield self._folder / checked
        finally:
            os.close(handle)

    async def _held(self, digest: Digest) -> int:
        holding = asyncio.create_task(asyncio.to_thread(self._hold, digest))
        try:
            handle = await asyncio.shield(holding)
        except asyncio.CancelledError:
            holding.add_done_callback(_let_go)  # a thread cannot be stopped, and nobody else knows its handle
            raise
        return await self._fetched(digest) if handle is None else handle

    def _hold(self, digest: Digest) -> int | None:
        """Return a handle that holds the file, or None if it must be fetched."""
        path = self._folder / digest
        with told_plainly():
            try:
                handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except FileNotFoundError:
                return None
            try:
                fcntl.flock(handle, fcntl.LOCK_SH)
                good = self._is_good(handle, digest)
            except BaseException:
                os.close(handle)
                raise
            if good:
                return handle
            with suppress(FileNotFoundError):
                if os.path.samestat(path.lstat(), os.fstat(handle)):
                    path.unlink()
            os.close(handle)
            return None

    def _is_good(self, handle: int, digest: Digest) -> bool:
        status = os.fstat(handle)
        if status.st_nlink == 0:  # removed before we held it
            return False
        mark = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        if self._seen.get(digest) != mark:
            with open(handle, "rb", closefd=False) as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                    return False
            self._seen[digest] = mark
        # The time of access tells how recently it was used; the time of change stays.
        os.utime(handle, ns=(int(self._clock.now().timestamp() * 1e9), status.st_mtime_ns))
        return True

    async def _fetched(self, digest: Digest) -> int:
        download = self._downloads.get(digest)
        if download is None:
            download = self._downloads[digest] = _Download(asyncio.create_task(self._fetch(digest)))
            download.task.add_done_callback(lambda _: self._downloads.pop(digest).close_if_unwanted())
        with download.awaited():
            return os.dup(await asyncio.shield(download.task))  # whoever gives up does not stop it for the others

    async def _fetch(self, digest: Digest) -> int:
        """Fetch a file and return a handle that holds it, so that nobody makes room of it before it was used."""
        for _ in range(_ATTEMPTS):
            await self._blobs.fetch(digest, self._folder / digest, mode=_MODE, replace=False)
            handle = await asyncio.to_thread(self._hold, digest)
            if handle is not None:
                await asyncio.to_thread(self._make_room)
                return handle
        raise Unavailable(f"artifact {digest} does not stay in {self._folder}")

    def _entries(self) -> Iterator[tuple[os.stat_result, Path]]:
        with told_plainly():
            paths = list(self._folder.iterdir())
        for path in paths:
            with suppress(FileNotFoundError):  # another process made room, or gave a part its name
                yield path.lstat(), path

    def _make_room(self) -> None:
        """Remove what was used least recently until the rest fits."""
        entries = list(self._entries())
        total = sum(status.st_size for status, _ in entries)
        for status, path in sorted(entries, key=lambda entry: entry[0].st_atime_ns):
            if total <= self._max_bytes:
                return
            with suppress(OSError):
                if remove_unless_locked(path):
                    total -= status.st_size
                    self._seen.pop(Digest(path.name), None)


def _let_go(holding: asyncio.Task[int | None]) -> None:
    if not holding.cancelled() and holding.exception() is None and (handle := holding.result()) is not None:
        os.close(handle)
