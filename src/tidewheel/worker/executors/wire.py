"""A socket that keeps messages apart and takes descriptors along, in an event loop."""

import asyncio
import collections
import contextlib
import os
import socket
from collections.abc import Callable
from typing import Final

from tidewheel.worker.launcher.messages import MAX_MESSAGE

_AT_ONCE: Final = 64


class Wire:
    """The host's end. Nothing sent blocks, and descriptors are closed here once they were sent."""

    def __init__(self, sock: socket.socket, heard: Callable[[bytes], None], closed: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = sock
        self._heard = heard
        self._closed = closed
        self._unsent: collections.deque[tuple[bytes, list[int]]] = collections.deque()
        self._open = True
        sock.setblocking(False)  # noqa: FBT003 - it has no name
        self._loop.add_reader(sock, self._hear)

    def send(self, data: bytes, fds: list[int] | None = None) -> None:
        """Send a message as soon as there is room; to a wire that is closed it is lost."""
        self._unsent.append((data, fds or []))
        if not self._open:
            self._forget()
        elif len(self._unsent) == 1:
            self._send()

    def close(self) -> None:
        """Hear and send no more."""
        if self._open:
            self._open = False
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket.close()
            self._forget()

    def _send(self) -> None:
        while self._unsent:
            data, fds = self._unsent[0]
            try:
                socket.send_fds(self._socket, [data], fds)
            except BlockingIOError:
                self._loop.add_writer(self._socket, self._go_on)
                return
            except OSError:  # the other side has gone, which is noticed where its words are heard
                pass
            self._unsent.popleft()
            _close(fds)

    def _go_on(self) -> None:
        self._loop.remove_writer(self._socket)
        self._send()

    def _hear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            for _ in range(_AT_ONCE):
                try:
                    data = self._socket.recv(MAX_MESSAGE)
                except ConnectionError:
                    data = b""
                if not data:
                    self.close()
                    self._closed()
                    return
                self._heard(data)
                if not self._open:
                    return

    def _forget(self) -> None:
        while self._unsent:
            _close(self._unsent.popleft()[1])


def _close(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)
