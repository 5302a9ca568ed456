"""A connection to SQLite must not be carried over a fork: in the child it is neither used nor closed.

Closing it there, or letting it be collected, could drop what the parent relies on; so it is kept for good.
"""

import ctypes
import os
import weakref
from typing import Final, Protocol

import apsw


class Forkable(Protocol):
    """Something with connections that learns of a fork in the child."""

    def abandon(self) -> list[apsw.Connection]:
        """Refuse all use from now on, and return the connections."""
        ...


_open: Final[weakref.WeakSet[Forkable]] = weakref.WeakSet()


def guard(holder: Forkable) -> None:
    """Tell a holder of connections, should this process be forked, in the child."""
    _open.add(holder)


def _abandon_all() -> None:
    for holder in list(_open):
        for connection in holder.abandon():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


os.register_at_fork(after_in_child=_abandon_all)
