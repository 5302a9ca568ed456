"""Who gets new connections, where several sockets listen on one port.

A socket that is closed takes along the connections that nobody has accepted yet. So before a server ends whose place
another has taken, the kernel is told to give new connections to the others alone; then nothing is left to lose.
"""

import ctypes
import os
import socket
import stat
import struct
from pathlib import Path
from typing import Final

_SO_ATTACH_REUSEPORT_CBPF: Final = 51
_RANDOM: Final = 0xFFFFF000 + 56
_LOAD: Final = 0x20
_MODULO: Final = 0x94
_ADD: Final = 0x04
_RETURN: Final = 0x16


class _Program(ctypes.Structure):
    """What the kernel calls a `sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def listening_on(port: int) -> socket.socket:
    """Return a handle of the socket of this process that listens on a port; the library that made it gives none."""
    for entry in Path("/proc/self/fd").iterdir():
        try:
            if not stat.S_ISSOCK(entry.stat().st_mode):
                continue
            end = socket.socket(fileno=os.dup(int(entry.name)))
        except OSError:  # closed meanwhile
            continue
        listens = end.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        if end.family in (socket.AF_INET, socket.AF_INET6) and listens and end.getsockname()[1] == port:
            return end
        end.close()
    raise OSError(f"nothing here listens on port {port}")


def prefer_newest(listening: socket.socket, older: int, newest: int) -> None:
    """Let the newest sockets of a port have all new connections; `listening` is one of them.

    The kernel numbers them in the order in which they began to listen, and chooses by itself again when the older ones
    are gone.
    """
    steps = ((_LOAD, _RANDOM), (_MODULO, newest), (_ADD, older), (_RETURN, 0))
    raw = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", code, 0, 0, value) for code, value in steps))
    program = _Program(len(steps), ctypes.addressof(raw))
    listening.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_REUSEPORT_CBPF, bytes(program))
