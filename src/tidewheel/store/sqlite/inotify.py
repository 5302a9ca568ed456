"""Waiting until someone touches a file, without opening it and at no cost meanwhile; Linux alone can tell."""

import ctypes
import errno
import os
import select
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

_ATTRIB: Final = 0x004
_MOVED_TO: Final = 0x080
_CREATE: Final = 0x100
_EVENT: Final = struct.Struct("iIII")
_READ: Final = 64 * 1024


class FileWatch:
    """Tells when a file was touched or created; it may come and go while it is watched."""

    def __init__(self, path: Path) -> None:
        """Raise OSError where the system does not tell, or has no watches left."""
        self._path = path
        self._libc = _libc()
        self._events = self._check(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        try:
            self._stopped, self._stop = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
            self._folder = self._add(path.parent, _CREATE | _MOVED_TO)
            self._watch_file()
        except BaseException:
            os.close(self._events)
            raise
        self._poll = select.poll()
        self._poll.register(self._events, select.POLLIN)
        self._poll.register(self._stopped, select.POLLIN)

    def wait(self, seconds: float | None) -> bool:
        """Return True when the file was touched or created, False when the time has passed or `stop` was called."""
        ready = {descriptor for descriptor, _ in self._poll.poll(None if seconds is None else seconds * 1000)}
        return self._events in ready and self._drain()

    def stop(self) -> None:
        """End a wait, now or next, from whichever thread."""
        os.write(self._stop, b"x")

    def close(self) -> None:
        """Let go of everything; nobody may wait any more."""
        for descriptor in (self._events, self._stopped, self._stop):
            os.close(descriptor)

    def _drain(self) -> bool:
        """Read all events, and tell whether one of them is about the file."""
        ours = False
        with suppress(BlockingIOError):
            while data := os.read(self._events, _READ):
                ours = self._are_ours(data) or ours
        return ours

    def _are_ours(self, data: bytes) -> bool:
        ours, start = False, 0
        while start < len(data):
            watch, mask, _, length = _EVENT.unpack_from(data, start)
            name = data[start + _EVENT.size : start + _EVENT.size + length].rstrip(b"\0")
            start += _EVENT.size + length
            if watch != self._folder or name == os.fsencode(self._path.name):
                ours = True
                if not mask & _ATTRIB:  # it was made or removed, or there were more events than the system keeps
                    self._watch_file()
        return ours

    def _watch_file(self) -> None:
        with suppress(FileNotFoundError):
            self._add(self._path, _ATTRIB)

    def _add(self, path: Path, mask: int) -> int:
        return self._check(self._libc.inotify_add_watch(self._events, os.fsencode(path), mask))

    @staticmethod
    def _check(answer: int) -> int:
        if answer < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return answer


def touch(path: Path) -> None:
    """Wake whoever watches a file; that it could not be done is no reason to fail."""
    with suppress(OSError):
        os.utime(path)


def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "inotify_init1") or not hasattr(os, "pipe2"):
        raise OSError(errno.ENOSYS, "this system has no inotify")
    return libc
