"""Frames between the host and a runner: four bytes of length, then JSON."""

import socket
import struct
from collections.abc import Iterator
from typing import Final

from tidewheel.model.outcome import MAX_LARGE_RESULT

MAX_FRAME: Final = MAX_LARGE_RESULT + 256 * 1024

_LENGTH: Final = struct.Struct("!I")


class TooLong(Exception):
    """A frame is longer than any that is sent on purpose."""


def frame(data: bytes) -> bytes:
    """Return data as a frame."""
    return _LENGTH.pack(len(data)) + data


def read_frame(source: socket.socket) -> bytes | None:
    """Wait for one frame; None if the other side has closed."""
    header = _read_exactly(source, _LENGTH.size)
    return None if header is None else _read_exactly(source, _LENGTH.unpack(header)[0])


class Frames:
    """Puts frames together from data as they come."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take data, and yield each frame that is complete."""
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > MAX_FRAME:
                raise TooLong(f"a frame of {length} bytes")
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            complete = bytes(memoryview(self._buffer)[_LENGTH.size : end])
            del self._buffer[:end]
            yield complete


def _read_exactly(source: socket.socket, count: int) -> bytes | None:
    parts = []
    while count:
        part = source.recv(min(count, 1 << 20))
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
