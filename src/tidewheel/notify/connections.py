"""Holds what a foreign client connects to against the guard: such a client resolves names by itself.

What a library does in one call is watched where it ends, at the sockets of Python (`sys.addaudithook`), so that neither
an odd spelling of a host, nor a redirect, nor a name that changes its meaning leads anywhere else. A socket that is
given a name looks it up by itself, and nobody sees what it found: only numbers may be handed to it. A thread that the
library starts is not seen; the hosts that an address names are therefore looked at beforehand, too.
"""

import functools
import ipaddress
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeGuard

_CONNECTING: Final = ("socket.connect", "socket.sendto", "socket.sendmsg")
PRIVATE: Final = "the host has a private address, which is not allowed"
NAMED: Final = "the service looks up the name of its host unseen, which is not allowed: give its address as a number"
_watch: ContextVar["Watch | None"] = ContextVar("watch", default=None)


class Watch:
    """What is allowed in one call, and whether something else was tried: its library may hide that."""

    def __init__(self, allows: Callable[[str], bool]) -> None:
        self.refused: str | None = None
        """Why, if something was."""
        self._allows = allows

    def judge(self, address: Any) -> None:
        """Raise, as the network does, for an address that must not be connected to."""
        host = address[0] if isinstance(address, tuple) else None
        why = NAMED if not _is_number(host) else None if self._allows(host) else PRIVATE
        if why is not None:
            self.refused = why
            raise PermissionError(why)


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Let all that this thread connects to be judged."""
    _install()
    before = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(before)


def _is_number(host: Any) -> TypeGuard[str]:
    """Tell whether nothing is looked up for a host: it is an address in its one usual spelling."""
    try:
        return isinstance(host, str) and bool(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError:
        return False


@functools.cache
def _install() -> None:
    """Once for all: a hook stays for as long as the process."""
    sys.addaudithook(_look)


def _look(event: str, values: tuple[Any, ...]) -> None:
    if event not in _CONNECTING or (watch := _watch.get()) is None:
        return
    if event == "socket.sendmsg" and values[1] is None:  # goes where the socket was connected to
        return
    watch.judge(values[1])
