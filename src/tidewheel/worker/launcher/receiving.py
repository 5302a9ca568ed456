"""Receiving a message together with the descriptors that come along."""

import socket
import struct
from typing import Final

from tidewheel.worker.launcher.messages import MAX_MESSAGE

_INT: Final = struct.Struct("i")
_MOST: Final = 3


def receive(source: socket.socket) -> tuple[bytes, list[int]]:
    """Return a message and its descriptors, which no program inherits: `socket.recv_fds` cannot do that."""
    try:
        data, ancillary, _, _ = source.recvmsg(MAX_MESSAGE, socket.CMSG_LEN(_MOST * _INT.size), socket.MSG_CMSG_CLOEXEC)
    except ConnectionError:
        return b"", []
    return data, [fd for _, _, packed in ancillary for (fd,) in _INT.iter_unpack(packed)]
