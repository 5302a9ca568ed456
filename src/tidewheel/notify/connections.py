"""Holds what a foreign client connects to against the guard: such a client resolves names by itself.

What a library does in one call is watched where it ends, at the sockets of Python (`sys.addaudithook`), so that neither
an odd spelling of a host, nor a redirect, nor a name that changes its meaning leads anywhere else. A thread that the
library starts is not seen; the hosts that an address names are therefore looked at beforehand, too.
"""

import functools
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

_CONNECTING: Final = ("socket.connect", "socket.sendto")
_watch: ContextVar["Watch | None"] = ContextVar("watch", default=None)


class Watch:
    """What is allowed in one call, and whether something else was tried: its library may hide that."""

    def __init__(self, allows: Callable[[str], bool]) -> None:
        self.refused = False
        self._allows = allows

    def judge(self, address: Any) -> None:
        """Raise, as the network does, for an address that must not be connected to."""
        if not isinstance(address, tuple) or not all(map(self._allows, _numbers(str(address[0])))):
            self.refused = True
            raise PermissionError("the host has a private address, which is not allowed")


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Let all that this thread connects to be judged."""
    _install()
    before = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(before)


def _numbers(host: str) -> list[str]:
    """Return what a host stands for; nothing is asked for what is a number already."""
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, None)]


@functools.cache
def _install() -> None:
    """Once for all: a hook stays for as long as the process."""
    sys.addaudithook(_look)


def _look(event: str, values: tuple[Any, ...]) -> None:
    if event in _CONNECTING and (watch := _watch.get()) is not None:
        watch.judge(values[1])
