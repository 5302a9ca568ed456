"""Frames between the host and a runner: four bytes of length, then JSON."""

import socket
import struct
from collections.abc import Iterator
from typing import Final

from tidewheel.model.outcome import MAX_LARGE_RESULT

MAX_FRAME: Final = MAX_LARGE_RESULT + 256 * 1024

_AT_ONCE: Final = 256 * 1024
_LENGTH: Final = struct.Struct("!I")


class TooLong(Exception):
    """A frame is longer than any that is sent on purpose."""


def frame(data: bytes) -> bytes:
    """Return data as a frame."""
    return _LENGTH.pack(len(data)) + data


class Frames:
    """Puts frames together from data as they come."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take data, and yield each frame that is complete."""
        if not self._buffer and len(data) == _LENGTH.size + int.from_bytes(data[: _LENGTH.size], "big"):
            yield data[_LENGTH.size :]  # as most come: one frame, whole
            return
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


def read_frames(source: socket.socket) -> Iterator[bytes]:
    """Wait for one frame after the other until the other side closes."""
    frames = Frames()
    while data := source.recv(_AT_ONCE):
        yield from frames.feed(data)
